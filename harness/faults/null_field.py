"""A read that returns a sample in which one field has no value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .base import Effect, Fault, Read, fault
from .fields import with_changed_field
from .parameters import check_parameters


@fault("null-field", effect=Effect.VALUE)
@dataclass(frozen=True)
class NullField(Fault):
    """The read returns the sample with ``None`` in one of its fields, like a table row with a null.

    This happens in tables, where a nullable column or a failed join gives nulls. The sample is a real copy with that
    one field set to ``None``.
    """

    field: str = "x"
    """The key in a mapping; in a tuple or list without such a field, the first vector, otherwise the first element."""

    def __post_init__(self) -> None:
        check_parameters(self)

    def strike(self, read: Read) -> Any:
        damaged = with_changed_field(read.value(), self.field, lambda _: None)
        read.took_hold()
        return damaged
