"""A read that returns a good sample with an empty tensor in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .base import Effect, Fault, Read, fault
from .fields import copy_of, is_array, vector, with_changed_field
from .parameters import check_parameters


@fault("empty-tensor", effect=Effect.LEGAL)
@dataclass(frozen=True)
class EmptyTensor(Fault):
    """The read returns the sample with an empty field, of shape (0,): odd, but legal, so it must arrive.

    This happens if a sample has no events, no boxes, no words. The field is replaced by a tensor, array or sequence of
    the same kind without entries; that is not a missing value.
    """

    field: str = "x"
    """The key in a mapping; in a tuple or list without such a field, the first vector."""

    def __post_init__(self) -> None:
        check_parameters(self)

    def strike(self, read: Read) -> Any:
        odd = with_changed_field(read.value(), self.field, _emptied)
        read.took_hold()
        return odd


def _emptied(value: Any) -> Any:
    if is_array(vector(value, "empty-tensor")):
        # Copied: pickling an empty view would still include the whole storage.
        return copy_of(value.reshape(-1)[:0])
    return value[:0]
