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

    It is met where a sample has no events, no boxes, no words. The field is replaced by a tensor, array or
    sequence of the same kind without entries; that is not a missing value.
    """

    field: str = "x"
    """The key in a mapping; in a tuple or list without such a field it is the first vector."""

    def __post_init__(self) -> None:
        check_parameters(self)

    def strike(self, read: Read) -> Any:
        odd = with_changed_field(read.value(), self.field, _emptied)
        read.took_hold()
        return odd


def _emptied(value: Any) -> Any:
    if is_array(vector(value, "empty-tensor")):
        # Copied, since a view of nothing would still carry the whole storage along when it is pickled.
        return copy_of(value.reshape(-1)[:0])
    return value[:0]
