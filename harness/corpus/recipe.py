"""Checks the user's options, before anything is written."""

from __future__ import annotations

import dataclasses
import importlib
import re
from collections.abc import Mapping
from typing import Any

from ..errors import UserError
from ..nearest import hint
from .base import Choice, CorpusKind, Recipe
from .damage import disk_faults
from .kinds import KINDS

_LISTED = "badbatch corpus faults lists all"
_LARGEST = 16_384  # pixels in each direction; a larger size is probably a typing mistake


def kind_of(name: str) -> CorpusKind:
    """The corpus kind of that name.

    Raises:
        UserError: there is none; the message names the nearest.
    """
    if name not in KINDS:
        raise UserError(f"there is no corpus kind {name!r}{hint(name, KINDS)}")
    kind = importlib.import_module(f".{name}", __package__).KIND
    assert isinstance(kind, CorpusKind)
    return kind


def checked(recipe: Recipe) -> Recipe:
    """The recipe, after a check that it is possible. Oddities among its faults are moved to ``odd_faults``.

    Raises:
        UserError: a number is out of range, a fault is unknown or does not fit, or a library is missing.
    """
    kind = kind_of(recipe.kind)
    if recipe.samples < 1:
        raise UserError(f"a corpus needs at least one sample, not {recipe.samples}")
    for name, share in (("damage", recipe.damage), ("oddities", recipe.oddities)):
        if not 0 <= share <= 1:
            raise UserError(f"--{name} must be between 0 % and 100 %, not {100 * share:g} %")
    if recipe.damage + recipe.oddities > 1:
        raise UserError(
            f"--damage and --oddities select different samples: {100 * recipe.damage:g} % and "
            f"{100 * recipe.oddities:g} % are more than all of them"
        )
    if not all(1 <= pixels <= _LARGEST for pixels in recipe.size):
        raise UserError(f"--size must be between 1x1 and {_LARGEST}x{_LARGEST}, not {recipe.size[0]}x{recipe.size[1]}")
    if recipe.per_file < 1:
        raise UserError(f"--per-file must be at least 1, not {recipe.per_file}")
    if recipe.format is not None and kind.formats and recipe.format not in kind.formats:
        raise UserError(f"{recipe.kind} has no format {recipe.format!r}{hint(recipe.format, kind.formats)}")
    recipe = _sorted_out(recipe)
    kind.check(recipe)
    return recipe


def _sorted_out(recipe: Recipe) -> Recipe:
    fitting = disk_faults(recipe.kind)
    damage: list[Choice] = []
    oddities: list[Choice] = []
    for choice in (*recipe.faults, *recipe.odd_faults):
        if choice.fault not in fitting:
            reason = "there is no fault" if choice.fault not in disk_faults() else f"{recipe.kind} has no fault"
            raise UserError(f"{reason} {choice.fault!r}{hint(choice.fault, fitting, _LISTED)}")
        if not choice.weight > 0:
            raise UserError(f"--fault {choice.fault}: a weight must be more than 0, not {choice.weight:g}")
        cls = fitting[choice.fault]
        known = {field.name for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
        for name in set(choice.parameters) - known:
            raise UserError(f"--fault {choice.fault} has no parameter {name!r}{hint(name, sorted(known))}")
        try:
            cls(**choice.parameters)
        except (TypeError, ValueError) as error:
            raise UserError(f"--fault {choice.fault}: {error}") from error
        if choice.at is not None and not 0 <= choice.at < recipe.samples:
            raise UserError(f"--fault {choice.fault} is for sample {choice.at}, but there are only {recipe.samples} samples")
        (oddities if cls.odd else damage).append(choice)
    drawn = any(choice.at is None for choice in oddities)
    if drawn and not recipe.oddities and not damage:
        raise UserError(f"--fault {oddities[0].fault} is a legal oddity: give the number with --oddities")
    return dataclasses.replace(recipe, faults=tuple(damage), odd_faults=tuple(oddities))


def without_faults(recipe: Recipe, names: set[str]) -> Recipe:
    """The recipe with these faults removed from those it draws from; faults that it names are kept."""
    known = disk_faults(recipe.kind)
    if recipe.faults or not names & set(known):
        return recipe
    left = [name for name, cls in known.items() if not cls.odd and not cls.by_name and name not in names]
    return dataclasses.replace(recipe, faults=tuple(Choice(name, known[name].weight) for name in left))


def without_pipes(recipe: Recipe) -> Recipe:
    """The recipe without named pipes: a program that copies or hashes every path of a folder hangs when it reads one.

    Raises:
        UserError: the recipe names a fault that is a pipe.
    """
    pipes = {name for name, cls in disk_faults(recipe.kind).items() if getattr(cls, "special", None) == "fifo"}
    named = [choice.fault for choice in recipe.faults if choice.fault in pipes]
    if named:
        raise UserError(f"--fault {named[0]} is a named pipe, and --no-pipes allows none: give one of the two")
    return without_faults(recipe, pipes)


def parse_share(text: str) -> float:
    """``5%`` or ``0.05`` as a share.

    Raises:
        UserError: it is neither.
    """
    number = text.strip().removesuffix("%").strip()
    try:
        share = float(number) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        raise UserError(f"a share is written like 5% or 0.05, not {text!r}") from None
    if not 0 <= share <= 1:
        raise UserError(f"a share must be between 0% and 100%, not {text}")
    return share


def parse_size(text: str) -> tuple[int, int]:
    """``256x192`` (or ``256`` for a square) as width and height.

    Raises:
        UserError: it is neither.
    """
    found = re.fullmatch(r"(\d+)(?:[x×](\d+))?", text.strip().lower())
    if not found:
        raise UserError(f"a size is written like 256x256, not {text!r}")
    return int(found[1]), int(found[2] or found[1])


def parse_choice(text: str) -> Choice:
    """``NAME``, ``NAME:WEIGHT`` or ``NAME(parameter=value,…):WEIGHT``.

    Raises:
        UserError: it is none of these.
    """
    found = re.fullmatch(r"([^:()]+)(?:\((.*)\))?(?::([^:()]+))?", text.strip())
    if not found:
        raise UserError(f"a fault is written NAME, NAME:WEIGHT or NAME(parameter=value):WEIGHT, not {text!r}")
    parameters: dict[str, Any] = {}
    for part in filter(None, (found[2] or "").split(",")):
        name, equals, value = part.partition("=")
        if not equals:
            raise UserError(f"--fault {text}: {part!r} is not parameter=value")
        parameters[name.strip()] = _number_or_text(value.strip())
    try:
        weight = float(found[3]) if found[3] else 1.0
    except ValueError:
        raise UserError(f"--fault {text}: the weight {found[3]!r} is not a number") from None
    return Choice(found[1].strip(), weight, _with_types(found[1].strip(), parameters))


def _number_or_text(text: str) -> Any:
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text


def _with_types(fault: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters that the fault declares as text stay text, even if they look like numbers (``at=0.5``)."""
    cls = disk_faults().get(fault)
    if cls is None:
        return dict(parameters)
    texts = {field.name for field in dataclasses.fields(cls) if field.type in ("str", str)}  # type: ignore[arg-type]
    return {name: str(value) if name in texts else value for name, value in parameters.items()}
