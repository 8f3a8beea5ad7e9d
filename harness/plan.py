"""Which sample has which fault."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .articles import with_article
from .errors import UserError
from .faults import Fault, from_json


class FaultPlan(Mapping[int, Fault]):
    """An immutable mapping from sample id to :class:`Fault`.

    All random choices are made when a plan is drawn; applying it draws nothing.

    >>> from badbatch.harness.faults.hang import Hang
    >>> FaultPlan({5: Hang()})
    FaultPlan({5: Hang(release_after_s=None)})
    """

    __slots__ = ("_faults",)

    def __init__(self, faults: Mapping[int, Fault] | None = None) -> None:
        checked: dict[int, Fault] = {}
        for sample, fault in (faults or {}).items():
            if isinstance(sample, bool) or not isinstance(sample, int) or sample < 0:
                raise UserError(f"a fault plan maps sample ids 0, 1, 2 … to faults, and {sample!r} is no such id")
            if not isinstance(fault, Fault):
                raise UserError(f"sample {sample} is planned to have {fault!r}, which is no fault")
            checked[sample] = fault
        self._faults = dict(sorted(checked.items()))

    @classmethod
    def draw(cls, seed: int, samples: int, faults: Sequence[Fault], share: float) -> FaultPlan:
        """Damage ``round(share * samples)`` samples, each with one of ``faults``. The same seed gives the same plan.

        Raises:
            UserError: ``share`` is not in 0…1, or there is no fault to choose from.
        """
        if samples < 0:
            raise UserError(f"a source cannot have {samples} samples")
        if not isinstance(share, (int, float)) or not 0 <= share <= 1:
            raise UserError(f"a share of damaged samples must be between 0 and 1, not {share!r}")
        count = round(share * samples)
        if count and not faults:
            raise UserError("a plan needs at least one fault to draw from")
        source = random.Random(seed)
        struck = source.sample(range(samples), count)
        return cls({sample: source.choice(faults) for sample in sorted(struck)})

    def __getitem__(self, sample: int) -> Fault:
        return self._faults[sample]

    def __iter__(self) -> Iterator[int]:
        return iter(self._faults)

    def __len__(self) -> int:
        return len(self._faults)

    def __hash__(self) -> int:
        return hash(tuple(self._faults.items()))

    def __eq__(self, other: object) -> bool:
        return self._faults == other._faults if isinstance(other, FaultPlan) else NotImplemented

    def __repr__(self) -> str:
        return f"FaultPlan({self._faults!r})"

    def without(self, samples: Sequence[int]) -> FaultPlan:
        """The same plan without the faults of these samples: one step in making a failing plan smaller."""
        healed = set(samples)
        return FaultPlan({sample: fault for sample, fault in self.items() if sample not in healed})

    def shrinks(self) -> Iterator[FaultPlan]:
        """Smaller plans, the smallest first: the empty plan, either half, then each with one fault fewer."""
        ids = list(self._faults)
        seen = {self}
        halves = [ids, ids[len(ids) // 2 :], ids[: len(ids) // 2]]
        for healed in [*halves, *([sample] for sample in ids)]:
            smaller = self.without(healed)
            if smaller not in seen:
                seen.add(smaller)
                yield smaller

    def to_json(self) -> dict[str, Any]:
        """``{"5": {"fault": "hang", "release_after_s": null}}``: the keys are sample ids in decimal."""
        return {str(sample): fault.to_json() for sample, fault in self.items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | str) -> FaultPlan:
        """The inverse of :meth:`to_json`; accepts the mapping or its text.

        Raises:
            UserError: not JSON, a key that is not a sample id, or an unknown fault.
        """
        if isinstance(data, str):
            try:
                data = json.loads(data)
            except ValueError as error:
                raise UserError(f"the fault plan is not JSON: {error}") from error
        if not isinstance(data, Mapping):
            raise UserError(f"a fault plan is a JSON object from sample id to fault, not {with_article(type(data).__name__)}")
        plan: dict[int, Fault] = {}
        for key, value in data.items():
            if not str(key).isdecimal() or str(int(key)) != str(key):
                raise UserError(f"a fault plan maps sample ids to faults, and {key!r} is no such id")
            if not isinstance(value, Mapping):
                raise UserError(f"sample {key} is planned to have {value!r}, which is no fault")
            plan[int(key)] = from_json(dict(value))
        return cls(plan)
