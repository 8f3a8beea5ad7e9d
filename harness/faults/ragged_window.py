"""A read that returns a sample of the wrong width."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from .base import Effect, Fault, Read, fault
from .fields import is_array, vector, with_changed_field
from .parameters import Within, check_parameters


@fault("ragged-window", effect=Effect.VALUE)
@dataclass(frozen=True)
class RaggedWindow(Fault):
    """The read returns the sample with a field that is shorter or longer than that of its neighbours.

    This happens in time series, where the window at the edge of a recording or beside a gap is not full, and in list
    columns. The field is really cut, or repeated from its start, to ``width`` entries along its first dimension.
    """

    width: Annotated[int, Within(1, 1_000_000)] = 5
    """Entries that the field has afterwards; must differ from its correct width."""
    field: str = "x"
    """The key in a mapping; in a tuple or list without such a field, the first vector."""

    def __post_init__(self) -> None:
        check_parameters(self)

    def strike(self, read: Read) -> Any:
        damaged = with_changed_field(read.value(), self.field, self._resized)
        read.took_hold()
        return damaged

    def _resized(self, value: Any) -> Any:
        length = len(vector(value, "ragged-window"))
        if length in (0, self.width):
            raise TypeError(f"ragged-window cannot give a field of {length} entries a wrong width of {self.width}")
        places = [place % length for place in range(self.width)]
        if is_array(value):
            return value[places]
        entries = [value[place] for place in places]
        return tuple(entries) if isinstance(value, tuple) else entries
