"""A read that returns a good sample which cannot be pickled."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..articles import with_article
from .base import Effect, Fault, Read, fault
from .fields import is_array


@fault("unpicklable-sample", effect=Effect.UNPICKLABLE)
@dataclass(frozen=True)
class UnpicklableSample(Fault):
    """The read returns the good sample in a form that cannot be pickled, so that it cannot leave a worker.

    This happens if a sample contains an open file, a lazily opened picture or a lambda. The sample gets its own class
    whose ``__reduce_ex__`` raises ``TypeError``. Collating by ``torch.utils.data.default_collate`` works; if this
    sample is the first of its batch, the batch cannot be pickled either.
    """

    def strike(self, read: Read) -> Any:
        refusing = unpicklable(read.value())
        read.took_hold()
        return refusing


def unpicklable(value: Any) -> Any:
    """A shallow copy of ``value`` that equals it and cannot be pickled.

    Raises:
        TypeError: values of this class cannot be made unpicklable.
    """
    if isinstance(value, Mapping):
        return _refusing(dict)(value)
    if isinstance(value, tuple):
        if hasattr(value, "_fields"):
            return tuple.__new__(_refusing(type(value)), value)
        return _refusing(tuple)(_within_tuple(value))
    if isinstance(value, (list, str, bytes, int, float)) and not isinstance(value, bool):
        return _refusing(type(value))(value)
    if is_array(value):
        cls = _refusing(type(value))
        return value.as_subclass(cls) if hasattr(value, "as_subclass") else value.view(cls)
    try:
        duplicate = copy.copy(value)
        object.__setattr__(duplicate, "__class__", _refusing(type(value)))
    except TypeError as error:
        raise TypeError(f"{with_article(type(value).__name__)} cannot be made unpicklable: {error}") from error
    return duplicate


def _within_tuple(elements: tuple[Any, ...]) -> list[Any]:
    # Collating makes a list of tensors from plain tuples, so the tensors themselves must refuse to be pickled.
    return [unpicklable(element) if hasattr(element, "as_subclass") else element for element in elements]


_REFUSING: dict[type[Any], type[Any]] = {}


def _refusing(cls: type[Any]) -> type[Any]:
    """The subclass of ``cls`` that can be copied but not pickled.

    It is cached, as torch does not stack two different classes.
    """
    if cls not in _REFUSING:

        def refuse(self: Any, protocol: int) -> Any:
            raise TypeError(f"cannot pickle {cls.__name__!r} object")

        members: dict[str, Any] = {"__reduce_ex__": refuse}
        if cls in (dict, list):
            # Collating copies the first sample of a batch and fills it; copy.copy() would call __reduce_ex__.
            members["__copy__"] = lambda self: type(self)(self)
        _REFUSING[cls] = type(f"Unpicklable{cls.__name__.capitalize()}", (cls,), members)
    return _REFUSING[cls]
