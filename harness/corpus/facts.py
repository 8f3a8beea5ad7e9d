"""What a trial must know about its corpus: which sample has which damage, and in which file it is."""

from __future__ import annotations

import json
from collections.abc import Iterator

from ..contract.job import FORMATS
from ..faults.base import from_json
from ..plan import FaultPlan
from . import tarfiles
from .base import Recipe, SampleRecord, State
from .damage import disk_faults
from .manifest import read_recipe, read_samples
from .stored import Stored

ODD = "odd"
"""The state of a legal oddity in :attr:`~badbatch.harness.trial.spec.Stored.states`."""


def facts(root: str) -> tuple[Stored, FaultPlan]:
    """The facts about the corpus at ``root`` that a trial needs, and the faults of its samples that are not simply good.

    Raises:
        UserError: there is no corpus.
    """
    disk_faults()
    records = list(read_samples(root))
    states, faults = [], {}
    for record in records:
        state = ODD if record.state is State.GOOD and record.oddity is not None else record.state.value
        if state == State.GOOD.value:
            continue
        states.append((record.id, state))
        struck = record.fault or record.oddity
        if struck is not None:
            faults[record.id] = from_json(dict(struck))
    stored = Stored(
        recipe=recipe_text(read_recipe(root)),
        states=tuple(states),
        files=tuple(_files(records)),
        groups=tuple(_groups(records)),
        idle=tuple((record.id, record.why) for record in records if record.took_hold is False),
        endings=tuple((record.id, ending) for record in records if (ending := _ending_in_shard(record)) not in ("", "jpg")),
        nameless=tuple(
            record.id for record in records if record.state is State.GOOD and record.oddity and record.identity == "path"
        ),
    )
    return stored, FaultPlan(faults)


def recipe_text(recipe: Recipe) -> str:
    """The recipe as compact JSON text."""
    return json.dumps(recipe.to_json(), separators=(",", ":"))


def recipe_of(stored: Stored) -> Recipe:
    """The recipe from which the corpus can be made again."""
    return Recipe.from_json(json.loads(stored.recipe))


def _ending_in_shard(record: SampleRecord) -> str:
    """The extension of the picture among a sample's members; empty: it has none."""
    fields = (tarfiles.split(member)[1] for member in record.members)
    return next((field for field in fields if field in FORMATS), "")


def _files(records: list[SampleRecord]) -> Iterator[tuple[str, int, int]]:
    first = 0
    for place, record in enumerate(records):
        following = records[place + 1].path if place + 1 < len(records) else None
        if record.path != following:
            yield record.path, first, place + 1 - first
            first = place + 1


def _groups(records: list[SampleRecord]) -> Iterator[int]:
    before = None
    for record in records:
        if record.row_group is not None and (record.path, record.row_group) != before:
            before = record.path, record.row_group
            yield record.id
