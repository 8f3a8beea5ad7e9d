"""For kinds with several samples in a file: which file contains which sample, and which files and samples get a fault."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ..errors import UserError
from ..nearest import hint
from .base import Choice, Chunk, DiskFault, Recipe
from .damage import disk_faults
from .draws import Lottery, draw


@dataclass(frozen=True)
class Regions:
    """Where the parts of a finished file are, as (start, stop) in bytes, for faults that damage bytes."""

    groups: tuple[tuple[int, int], ...]
    """The data of each row group or record batch; for a compressed stream or a zip archive, its one body."""
    bodies: tuple[tuple[int, int], ...]
    """The largest part of each group: for Parquet, its largest column."""
    footer: int
    """The offset of the table of contents at the end; the file's length if there is none."""


class StoredFault(DiskFault):
    """Base class of the faults of kinds with several samples in a file.

    Each fault overrides the one hook that it needs.

    Hooks draw nothing at random: the fault's parameters contain everything that was drawn.
    """

    formats: ClassVar[tuple[str, ...]] = ()
    """The storage formats of its kinds that it can be used in; empty: all."""
    adds_file: ClassVar[str | None] = None
    """For an oddity that is a legal file without samples: the extension of that file, which is put beside the drawn
    file."""

    def change_row(self, row: dict[str, Any]) -> None:
        """Change one sample's fields (by name) in place, before it is stored."""

    def change_bytes(self, data: bytes, regions: Regions) -> bytes:
        """The finished file's bytes, damaged."""
        return data

    @classmethod
    def fits(cls, kind: str, storage: str) -> bool:
        return super().fits(kind, storage) and (not cls.formats or storage in cls.formats)


class Layout:
    """The files of one recipe, numbered from 0, and the exact choice of files and samples that get a fault.

    The budget ``damage * samples`` is divided between faults of samples and faults of whole files by their weights. A
    fault of a file counts as damage to all its samples. What remains of the files' share goes to faults of samples. If
    faults were named by the user, at least one file gets a fault of files, and at least one sample a fault of samples.
    The samples of a file with a fault have no other damage.

    Args:
        storage: the storage format.
        per_file: samples in one file; 1: a file is a sample, and both sorts of fault are drawn together.
    """

    def __init__(self, recipe: Recipe, storage: str, per_file: int) -> None:
        self._recipe = recipe
        self.per_file = per_file
        self.files = -(-recipe.samples // per_file)
        budget = round(recipe.damage * recipe.samples)
        odd_budget = round(recipe.oddities * recipe.samples)
        damage = _choices(recipe, storage, recipe.faults, odd=False)
        oddities = _choices(recipe, storage, recipe.odd_faults, odd=True)
        if per_file == 1:
            self._of_file = None
            self._of_sample = Lottery(recipe.seed, recipe.samples, budget, damage, odd_budget, oddities)
            return
        file_damage, damage, share = _split(recipe, damage)
        file_oddities, oddities, odd_share = _split(recipe, oddities)
        struck = int(budget * share / per_file)
        of_samples = budget - struck * per_file
        if recipe.faults and budget:
            struck = max(struck, 1 if file_damage else 0)
            of_samples = max(of_samples, 1 if damage else 0)
        odd_files = max(round(odd_budget * odd_share / per_file), 1 if odd_budget and file_oddities else 0)
        self._of_file = Lottery(recipe.seed, self.files, struck, file_damage, odd_files, file_oddities)
        self._of_sample = Lottery(
            recipe.seed, recipe.samples, of_samples, damage, round(odd_budget * (1 - odd_share)), oddities
        )

    def ids(self, file: int) -> range:
        """The samples of the file."""
        return range(file * self.per_file, min((file + 1) * self.per_file, self._recipe.samples))

    def of_file(self, file: int) -> DiskFault | None:
        """The damage or oddity of the whole file."""
        return None if self._of_file is None or not 0 <= file < self.files else self._of_file[file]

    def of_sample(self, sample: int) -> DiskFault | None:
        """The damage or oddity of the sample itself."""
        fault = self._of_sample[sample]
        if fault is None or fault.odd:
            return fault
        whole = self.of_file(sample // self.per_file)
        return None if whole is not None and not whole.odd else fault

    def chunks(self, about: int) -> Iterator[Chunk]:
        """Whole files in chunks of about this many samples; the payload is the range of file numbers."""
        step = max(1, about // self.per_file)
        for first in range(0, self.files, step):
            last = min(first + step, self.files)
            yield Chunk(first * self.per_file, self.ids(last - 1).stop, range(first, last))


def storage_of(recipe: Recipe, formats: Sequence[str]) -> str:
    """The recipe's storage format, or the kind's default (its first format)."""
    return recipe.format or formats[0]


def check_choices(recipe: Recipe, storage: str) -> None:
    """Refuse faults that the user named and this kind and format cannot have.

    Raises:
        UserError: a fault that does not fit; the message names the nearest one that does.
    """
    fitting = [name for name, cls in disk_faults(recipe.kind).items() if cls.fits(recipe.kind, storage)]
    for choice in (*recipe.faults, *recipe.odd_faults):
        if choice.fault not in fitting:
            raise UserError(f"fault {choice.fault!r} does not fit {recipe.kind} as {storage}{hint(choice.fault, fitting)}")


def _choices(recipe: Recipe, storage: str, named: Sequence[Choice], odd: bool) -> list[Choice]:
    if named:
        return list(named)
    known = disk_faults(recipe.kind).items()
    return [
        Choice(name, cls.weight)
        for name, cls in known
        if cls.odd == odd and not cls.by_name and cls.fits(recipe.kind, storage)
    ]


def _split(recipe: Recipe, choices: Sequence[Choice]) -> tuple[list[Choice], list[Choice], float]:
    """Choices for files, choices for samples, and the files' share of the total weight."""
    known = disk_faults()
    of_files = [choice for choice in choices if known[choice.fault].level != "sample"]
    of_samples = [choice for choice in choices if known[choice.fault].level == "sample"]
    total = sum(choice.weight for choice in choices)
    # Only few files get a fault. The order of the faults is drawn; otherwise the same faults would always be left out.
    draw(recipe.seed, 0, "order of file faults").shuffle(of_files)
    return of_files, of_samples, sum(choice.weight for choice in of_files) / total if total else 0.0
