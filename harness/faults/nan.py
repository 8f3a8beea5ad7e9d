"""A read that returns a good sample with a NaN in it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

from .base import Effect, Fault, Read, fault
from .fields import copy_of, is_array, vector, with_changed_field
from .parameters import Within, check_parameters


@fault("nan", effect=Effect.LEGAL)
@dataclass(frozen=True)
class Nan(Fault):
    """The read returns the sample with one NaN among its numbers: odd, but legal, so it must arrive.

    This happens in measurements, where NaN means a missing value that the model handles. One entry of a real copy of
    the field is overwritten.
    """

    position: Annotated[int, Within(0, 1_000_000_000)] = 0
    """Which entry, counted from 0 over the flattened field."""
    field: str = "x"
    """The key in a mapping; in a tuple or list without such a field, the first vector."""

    def __post_init__(self) -> None:
        check_parameters(self)

    def strike(self, read: Read) -> Any:
        odd = with_changed_field(read.value(), self.field, self._spotted)
        read.took_hold()
        return odd

    def _spotted(self, value: Any) -> Any:
        entries: Any = copy_of(vector(value, "nan")) if is_array(value) else list(vector(value, "nan"))
        flat = entries.reshape(-1) if is_array(value) else entries
        if self.position >= len(flat):
            raise TypeError(f"nan cannot be at position {self.position} of a field of {len(flat)} entries")
        try:
            flat[self.position] = math.nan
            held = bool(flat[self.position] != flat[self.position])
        except (RuntimeError, ValueError):  # integers: torch and NumPy raise different errors, or store another value
            held = False
        if not held:
            raise TypeError(f"nan needs a field of floating-point numbers, not of {value.dtype}")
        return tuple(entries) if isinstance(value, tuple) else entries
