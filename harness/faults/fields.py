"""Finds one field of a sample, and changes it without changing the sample itself."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any

from ..articles import with_article


def with_changed_field(sample: Any, field: str, change: Callable[[Any], Any]) -> Any:
    """A shallow copy of ``sample`` in which ``change`` was applied to one field.

    In a mapping the field is ``sample[field]``; in a named tuple it is the field of that name. In any other tuple or
    list it is the first vector, or the first element if there is no vector. A vector is a tensor or an array of at
    least one dimension, or a sequence that is not text.

    Raises:
        TypeError: there is no such field.
    """
    if isinstance(sample, Mapping):
        if field not in sample:
            raise TypeError(
                f"the sample has no field {field!r} to damage; its fields are {', '.join(map(repr, sample))}"
            )
        changed = copy.copy(sample) if isinstance(sample, MutableMapping) else dict(sample)
        changed[field] = change(sample[field])
        return changed
    if isinstance(sample, (tuple, list)) and sample:
        names: tuple[str, ...] = getattr(sample, "_fields", ())
        first_vector = next((at for at, element in enumerate(sample) if is_vector(element)), 0)
        position = names.index(field) if field in names else first_vector
        elements = [change(element) if at == position else element for at, element in enumerate(sample)]
        return type(sample)(*elements) if names else type(sample)(elements)
    raise TypeError(
        f"the sample is {with_article(type(sample).__name__)}, which has no field {field!r} to damage: "
        "a mapping, a tuple or a list is needed"
    )


def is_vector(value: Any) -> bool:
    """Whether ``value`` is a tensor or array of at least one dimension, or a sequence that is not text."""
    if is_array(value):
        return bool(value.ndim)
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))


def is_array(value: Any) -> bool:
    """Whether ``value`` is a tensor or a NumPy array. Checked by attributes, since neither library may be installed."""
    return hasattr(value, "dtype") and hasattr(value, "ndim") and hasattr(value, "reshape")


def copy_of(array: Any) -> Any:
    """A contiguous copy of a tensor or array, with its own storage."""
    return array.contiguous().clone() if hasattr(array, "clone") else array.copy()


def vector(value: Any, purpose: str) -> Any:
    """``value`` itself.

    Raises:
        TypeError: it is not a vector; the message says that ``purpose`` needs one.
    """
    if not is_vector(value):
        raise TypeError(f"{purpose} needs a tensor, an array or a sequence, not {with_article(type(value).__name__)}")
    return value
