"""Random numbers that belong to one sample, the same in any process, and the exact choice of which sample has which fault."""

from __future__ import annotations

import bisect
import hashlib
import itertools
import random
from collections.abc import Callable, Sequence

from .base import Choice, DiskFault, Recipe
from .damage import disk_faults, instance

_ALL = (1 << 64) - 1


def draw(seed: int, sample: int, purpose: str) -> random.Random:
    """A random generator for one sample and one purpose.

    Neither the order of work nor another purpose changes its output.
    """
    return random.Random(number(seed, sample, purpose))


def number(seed: int, sample: int, purpose: str) -> int:
    """One whole number below 2**64 for one sample and purpose, where a generator would be too slow."""
    return int.from_bytes(hashlib.blake2b(f"{seed}/{sample}/{purpose}".encode(), digest_size=8).digest(), "big")


def _mixed(bits: int) -> int:
    """64 bits, each of which depends on all the given bits (the finaliser of SplitMix64, Steele et al. 2014)."""
    bits = ((bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9) & _ALL
    bits = ((bits ^ (bits >> 27)) * 0x94D049BB133111EB) & _ALL
    return bits ^ (bits >> 31)


class Shuffle:
    """A pseudo-random permutation of 0 … n-1, computed for one number at a time (a Feistel network with cycle walking)."""

    def __init__(self, seed: int, n: int, purpose: str) -> None:
        self.n = n
        self._half = max(1, (max(n - 1, 1).bit_length() + 1) // 2)
        self._mask = (1 << self._half) - 1
        self._keys = [number(seed, i, purpose) for i in range(4)]

    def __getitem__(self, number: int) -> int:
        if not 0 <= number < self.n:
            raise IndexError(number)
        while True:  # the network permutes 0 … 4**half - 1 < 16n; follow its cycle back into 0 … n-1
            left, right = number >> self._half, number & self._mask
            for key in self._keys:
                left, right = right, left ^ (_mixed(right ^ key) & self._mask)
            number = left << self._half | right
            if number < self.n:
                return number


class Lottery:
    """Which unit has which fault: exact counts, each fault in proportion to its weight, computed for any unit at once.

    A unit is a sample, or a file or shard if ``units`` says so.
    """

    def __init__(
        self, seed: int, units: int, damage: int, faults: Sequence[Choice], oddities: int, odd: Sequence[Choice]
    ) -> None:
        self._placed = {choice.at: choice for choice in (*odd, *faults) if choice.at is not None}
        faults = [choice for choice in faults if choice.at is None]
        odd = [choice for choice in odd if choice.at is None]
        damage = min(damage, units) if faults else 0
        oddities = min(oddities, units - damage) if odd else 0
        self.seed = seed
        self._damage = list(faults)
        self._struck = damage + oddities
        self._shuffle = Shuffle(seed, max(units, 1), "lottery")
        self._ends: list[int] = []
        self._choices: list[Choice] = []
        for first, count, choices in ((0, damage, faults), (damage, oddities, odd)):
            total = sum(choice.weight for choice in choices)
            for choice, reached in zip(choices, itertools.accumulate(choice.weight for choice in choices)):
                self._ends.append(first + round(count * reached / total))
                self._choices.append(choice)

    @classmethod
    def of_samples(cls, recipe: Recipe) -> Lottery:
        """The lottery in which each sample of the recipe is a unit and every fault that fits the kind is included."""
        known = {kind: cls_ for kind, cls_ in disk_faults(recipe.kind).items() if not cls_.by_name}
        return cls(
            recipe.seed,
            recipe.samples,
            round(recipe.damage * recipe.samples),
            recipe.faults or [Choice(kind, cls_.weight) for kind, cls_ in known.items() if not cls_.odd],
            round(recipe.oddities * recipe.samples),
            recipe.odd_faults or [Choice(kind, cls_.weight) for kind, cls_ in known.items() if cls_.odd],
        )

    def __getitem__(self, unit: int) -> DiskFault | None:
        """The fault (or oddity: see its ``odd``) of this unit, or None."""
        if unit in self._placed:
            return instance(self._placed[unit], 0, draw(self.seed, unit, "fault"))
        place = self._shuffle[unit]
        if place >= self._struck:
            return None
        which = bisect.bisect_right(self._ends, place)
        turn = place - (self._ends[which - 1] if which else 0)
        return instance(self._choices[which], turn, draw(self.seed, unit, "fault"))

    def redraw(self, source: random.Random, fits: Callable[[type[DiskFault]], bool]) -> DiskFault | None:
        """Another fault, by weight, to replace one that does not fit its unit; None: none of them fits."""
        known = disk_faults()
        fitting = [choice for choice in self._damage if fits(known[choice.fault])]
        if not fitting:
            return None
        choice = source.choices(fitting, [choice.weight for choice in fitting])[0]
        return instance(choice, source.randrange(1 << 16), source)
