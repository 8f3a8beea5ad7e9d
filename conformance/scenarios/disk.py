"""The scenarios on disk: how a corpus of each kind is damaged, with the reason why users meet it. Data, not code."""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...harness.corpus.base import Choice, DiskFault, Recipe
from ...harness.corpus.damage import disk_faults
from ...harness.corpus.kinds import KINDS
from ...harness.errors import UserError
from ...harness.faults.base import Effect
from ...harness.nearest import listed, unknown
from ...harness.plan import FaultPlan
from ...harness.sources.base import Question
from ...harness.trial.phases import Batches, left_early, plain, rebuilt
from .base import SIZES, Scenario

FILES = 8
"""Files or shards of a corpus, unless the scenario says otherwise: whole shares for 1, 2 and 4 processes."""
_MOST_FILES_STRUCK = 4  # every other one, so that good files are between them
_MOST_SAMPLES_STRUCK = 12
_PICTURE = (64, 64)  # pixels: the smallest size that can have an id mark


@dataclasses.dataclass(frozen=True)
class Strike:
    """One fault, and which sample or file gets it."""

    fault: str
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    nth: int | None = None
    """It is the nth (from 0) of several, which are spread over the corpus; None: it is the only one."""
    of: int = 1
    """How many there are."""


@dataclasses.dataclass(frozen=True)
class Damage:
    """How the corpus of one kind is damaged."""

    strikes: tuple[Strike, ...] = ()
    files: int = FILES
    format: str | None = None
    """The kind's storage format; None: its default."""


@dataclasses.dataclass(frozen=True)
class DiskScenario(Scenario):
    """One scenario that every loader runs that reads corpora of certain kinds."""

    on: Mapping[str, Damage] = dataclasses.field(default_factory=dict)
    """From the kind of corpus to its damage; for other kinds the scenario does not exist."""

    @property
    def strikes_process(self) -> bool:
        known = disk_faults()
        return any(known[strike.fault].effect is Effect.CRASH for damage in self.on.values() for strike in damage.strikes)

    @property
    def kills(self) -> str:
        return "signal" if self.strikes_process else ""

    @property
    def sources(self) -> tuple[str, ...]:
        return tuple(self.on)

    def question(self, source: str, given: int, batch_size: int, seed: int) -> Question:
        recipe = self.recipe(source, given, batch_size, seed)
        return Question(recipe.samples, FaultPlan(), recipe)

    def recipe(self, kind: str, given: int, batch_size: int, seed: int) -> Recipe:
        """The recipe of its corpus.

        Args:
            given: the number of samples that the user wants. Kinds with several samples in a file have about as many:
                such that 1, 2 and 4 processes with whole files have equal shares in whole batches.
        """
        damage = self.on[kind]
        if kind == "imagefolder":
            samples, per_file = SIZES[self.size](given, batch_size), 1
        else:
            batches = -(-2 * given // (FILES * batch_size))  # in two files
            batches += batches * batch_size % 2
            per_file = max(2, batches * batch_size // 2)
            if damage.files == 1:
                per_file *= FILES
            samples = damage.files * per_file
            if self.size == "remainder-one":
                samples += 1 - batch_size
        known = disk_faults(kind)
        faults = [_placed(strike, known[strike.fault], kind, samples, per_file) for strike in damage.strikes]
        return Recipe(
            kind=kind,
            samples=samples,
            seed=seed,
            damage=0.0,
            faults=tuple(choice for choice in faults if not known[choice.fault].odd),
            odd_faults=tuple(choice for choice in faults if known[choice.fault].odd),
            format=damage.format,
            size=_PICTURE,
            per_file=per_file,
        )


def _placed(strike: Strike, cls: type[DiskFault], kind: str, samples: int, per_file: int) -> Choice:
    """The fault as a recipe has it.

    If it is the only one, it is on an early sample or file that is neither first nor last.
    """
    files = samples // per_file
    if kind != "imagefolder" and cls.level in ("file", "shard"):
        at = min(1, files - 1) if strike.nth is None else (1 + 2 * strike.nth) % files
    elif kind == "imagefolder":
        at = 5 % samples if strike.nth is None else (strike.nth + 1) * samples // (strike.of + 1)
    elif strike.nth is None:  # the second of the second file, so that more could be lost on both sides
        at = min(per_file + 1, samples - 1)
    else:  # in files without a file fault; never next to each other, since some damage what follows them
        half = max(1, files // 2)
        rows = range(1, per_file, 2)
        at = min(2 * (strike.nth % half) * per_file + rows[strike.nth // half % len(rows)], samples - 1)
    return Choice(strike.fault, parameters=strike.parameters, at=at)


def _variants(names: Sequence[str], most: int) -> list[tuple[str, Mapping[str, Any]]]:
    """Each of these faults with each of its sets of parameters: the first set of each, then the second, up to a maximum number."""
    known = disk_faults()
    rounds: list[tuple[int, str, Mapping[str, Any]]] = []
    for name in names:
        seen: list[DiskFault] = []
        for turn in range(most):
            fault = known[name].turn(turn, random.Random(turn))
            if fault not in seen:
                seen.append(fault)
                parameters = {key: value for key, value in fault.to_json().items() if key != "fault"}
                rounds.append((len(seen), name, parameters))
    return [(name, parameters) for _, name, parameters in sorted(rounds, key=lambda one: one[0])][:most]


def _several(kind: str, names: Sequence[str], most: int) -> tuple[Strike, ...]:
    known = disk_faults(kind)
    whole = [name for name in names if known[name].level in ("file", "shard") and kind != "imagefolder"]
    single = [name for name in names if name not in whole]
    return tuple(
        Strike(name, parameters, nth, len(strikes))
        for strikes in (_variants(single, most), _variants(whole, _MOST_FILES_STRUCK))
        for nth, (name, parameters) in enumerate(strikes)
    )


def _usual(kind: str, cls: type[DiskFault]) -> bool:
    """Whether the fault fits the kind's default storage format."""
    usual = {"imagefolder": "jpeg", "parquet": "parquet", "windows": "parquet", "webdataset": "tar", "jsonl": "jsonl"}
    return cls.fits(kind, usual[kind])


_ALONE = ("missing-file", "hanging-pipe", "trickling-pipe", "no-permission")
"""Faults with their own scenario, which would hide the others of their family."""
_SMALLER: Mapping[str, Mapping[str, Any]] = {"long-line": {"megabytes": 3}}


def _families() -> Iterator[DiskScenario]:
    found: dict[str, dict[str, list[str]]] = {}
    for kind in KINDS:
        for name, cls in disk_faults(kind).items():
            if not cls.odd and not cls.by_name and name not in _ALONE and _usual(kind, cls):
                found.setdefault(cls.family, {}).setdefault(kind, []).append(name)
    for family, kinds in sorted(found.items()):
        on = {}
        for kind, names in kinds.items():
            strikes = _several(kind, names, _MOST_SAMPLES_STRUCK)
            on[kind] = Damage(
                tuple(dataclasses.replace(one, parameters=_SMALLER.get(one.fault, one.parameters)) for one in strikes)
            )
        yield DiskScenario(f"damage-{family.replace(' ', '-')}", _WHY[family], on=on)


_WHY = {
    "bits": "Bits flipped by a bad cable, disk or memory: some decoders notice it, many deliver what they read.",
    "cut": "Files that end too early: a full disk, an interrupted download, a writer that was killed.",
    "encoding": "Text in the wrong encoding, or with bytes that its format forbids.",
    "header": "A header with wrong sizes, lengths or checksums.",
    "identity": "Two samples with one id or key: an index keeps one of them, and the loss of the other is not noticed.",
    "members": "Samples of a shard that lack a member, have one twice, or whose members are not together.",
    "not a picture": "An error page, a pointer or an archive in place of the picture, with the picture's name.",
    "null": "Null where the schema forbids it: a float where an integer was, or a crash in the collating.",
    "path": "A link to a file that does not exist, or a folder, where a file should be.",
    "ragged": "Windows shorter or longer than the others, which cannot be stacked.",
    "schema": "One file whose columns differ from those of the others: the writer was changed while the set was written.",
    "size": "A sample that is many times larger than usual.",
    "structure": "Parts of a file twice, spliced, or with wrong lengths.",
    "value": "A value that the schema forbids, like infinity, which makes every mean infinite.",
    "zeros": "Zeros where data should be: the size was written before the crash, the data was not.",
}


def _oddities() -> dict[str, Damage]:
    on = {}
    for kind in KINDS:
        names = [name for name, cls in disk_faults(kind).items() if cls.odd and _usual(kind, cls)]
        on[kind] = Damage(_several(kind, names, len(names)))
    return on


_LOCKSTEP = {"lockstep": True}


def _everywhere(files: int = FILES, *, pictures: bool = True) -> dict[str, Damage]:
    return {kind: Damage(files=files) for kind in KINDS if pictures or kind != "imagefolder"}


def _pictures(fault: str, **parameters: Any) -> dict[str, Damage]:
    """The fault in a picture, for every kind that has pictures and the fault."""
    return {kind: Damage((Strike(fault, parameters),)) for kind in KINDS if fault in disk_faults(kind)}


def _each(**strikes: Strike) -> dict[str, Damage]:
    return {kind: Damage((strike,)) for kind, strike in strikes.items()}


SCENARIOS: tuple[DiskScenario, ...] = (
    DiskScenario("clean", "No fault at all: a loader that fails here cannot be judged in any other scenario.",
                 settings=_LOCKSTEP, on=_everywhere()),
    DiskScenario("remainder-one", "The last batch has one sample, and the ranks do not divide the set evenly.",
                 size="remainder-one", settings=_LOCKSTEP, on=_everywhere()),
    DiskScenario("oddities", "Grey, CMYK and rotated pictures, names with spaces, empty lists: legal data that careless readers "
                 "treat as damaged.", on=_oddities()),
    DiskScenario("one-bad", "One truncated file, or one bad row, in the set: the most common fault.",
                 settings=_LOCKSTEP, on=_each(
                     imagefolder=Strike("jpeg-cut-scan", {"kept": 0.5}),
                     parquet=Strike("null-integer"),
                     windows=Strike("ragged-values", {"shape": "short"}),
                     webdataset=Strike("missing-member", {"field": "jpg"}),
                     jsonl=Strike("cut-line", {"keep": 0.5, "newline": True}),
                 )),
    *_families(),
    DiskScenario("missing-file", "A file that an index names is missing; a loader that lists the folder never notices.",
                 on=_pictures("missing-file")),
    DiskScenario("no-permission", "A file without permission to read it.", on=_pictures("no-permission")),
    DiskScenario("hung-read", "A read from a stalled network file system never returns.", needs_workers=True, timed=True,
                 on=_pictures("hanging-pipe")),
    DiskScenario("slow-read", "A read takes a large part of the timeout: it is slow, but it does not hang.", timed=True,
                 on=_pictures("trickling-pipe", seconds=0.3)),
    DiskScenario("cut-shard", "One file ends in the middle: a copy that stopped, or a writer that was killed.", on=_each(
        parquet=Strike("cut-row-group", {"keep": 0.5}),
        windows=Strike("cut-row-group", {"keep": 0.5}),
        webdataset=Strike("cut-shard", {"at": "member", "place": 0.5}),
        jsonl=Strike("cut-file", {"keep": 0.5}),
    )),
    DiskScenario("lost-shard", "One file has lost all its content: it was created, and never written.", on=_each(
        parquet=Strike("empty-file"),
        windows=Strike("empty-file"),
        webdataset=Strike("empty-shard", {"marker": False}),
        jsonl=Strike("empty-file"),
    )),
    DiskScenario("three-epochs", "Training runs more than one epoch.", settings={"phases": plain(3)}, on=_everywhere()),
    DiskScenario("early-break", "A sanity check, or an early stop, ends the epoch early; the next one must be whole.",
                 settings={"phases": left_early(2)}, on=_everywhere()),
    DiskScenario("rebuilt", "A sweep, or an evaluation after each epoch, builds one loader after the other in one process: what each "
                 "leaves behind accumulates.", settings={"phases": rebuilt()}, on=_everywhere()),
    DiskScenario("rebuilt-after-break", "The same, with loaders that are dropped in the middle of an epoch.",
                 settings={"phases": rebuilt(until=Batches(2))}, on=_everywhere()),
    DiskScenario("few-shards", "Fewer files than workers: some workers have nothing to do, which must not be an error.",
                 on=_everywhere(1, pictures=False)),
    DiskScenario("uneven-shards", "The number of files is not a multiple of the ranks or the workers.",
                 on=_everywhere(FILES - 1, pictures=False)),
    DiskScenario("decoder-segfault", "The decoder crashes on one file.", needs_workers=True, on=_pictures("decoder-segfault")),
    DiskScenario("decoder-abort", "The decoder aborts on one file: a failed assertion in native code.", needs_workers=True,
                 on=_pictures("decoder-abort")),
    DiskScenario("decoder-hang", "The decoder does not return, with the interpreter lock held.", needs_workers=True, timed=True,
                 on=_pictures("decoder-hang")),
    DiskScenario("decoder-memory", "The decoder takes all memory: a file whose header claims an extreme size.",
                 on=_pictures("decoder-memory")),
    DiskScenario("lazy-picture", "A picture that is opened in a worker and decoded later, perhaps elsewhere: when it is cut, it cannot "
                 "be pickled.", settings={"lazy_decode": True}, on=_pictures("jpeg-cut-scan", kept=0.5)),
)  # fmt: skip


@functools.cache
def offered(kind: str) -> tuple[DiskScenario, ...]:
    """The scenarios that apply to one kind of corpus, in order."""
    return tuple(scenario for scenario in SCENARIOS if kind in scenario.on)


def find(name: str, kind: str) -> DiskScenario:
    """The scenario of that name for a kind of corpus.

    Raises:
        UserError: there is none; the message names the nearest.
    """
    found = next((scenario for scenario in offered(kind) if scenario.name == name), None)
    if found is None:
        raise UserError(unknown(f"scenario of {kind}", name, [scenario.name for scenario in offered(kind)], listed("scenarios")))
    return found
