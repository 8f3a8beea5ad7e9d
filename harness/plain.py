"""Converts values to plain data (what JSON contains) and back, by their types.

One library, msgspec, does it for every dataclass.

msgspec is imported on use: a factory's module that declares a contract need not import it.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, TypeVar, get_type_hints

from .errors import UserError
from .nearest import unknown

T = TypeVar("T")
P = TypeVar("P", bound="Plain")


class Plain:
    """A dataclass that can be written as JSON and read back."""

    def to_json(self) -> dict[str, Any]:
        """All fields by name, as a JSON object; the inverse of :meth:`from_json`."""
        data: dict[str, Any] = to_plain(self)
        return data

    @classmethod
    def from_json(cls: type[P], data: Any) -> P:
        """The value that :meth:`to_json` described. Missing fields have their defaults; unknown ones are refused.

        Raises:
            UserError: one line: what is expected, what is there instead, and where.
        """
        known = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
        if isinstance(data, dict) and (others := [name for name in data if name not in known]):
            raise UserError(unknown("field", others[0], known))
        return from_plain(cls, data)


def to_plain(value: Any) -> Any:
    """A value as dicts, lists, texts, numbers, booleans and None."""
    import msgspec

    return _with_lists(msgspec.to_builtins(value, str_keys=True, enc_hook=_describe))


def from_plain(cls: type[T], data: Any) -> T:
    """The value of a type that plain data describe; the inverse of :func:`to_plain`. Unknown fields are ignored.

    Raises:
        UserError: one line: what is expected, what is there instead, and where.
    """
    import msgspec

    try:
        found: T = msgspec.convert(data, cls, str_keys=True, dec_hook=_build)
    except msgspec.ValidationError as error:
        raise UserError(str(error).replace(" - at `", " at `").replace("`$.", "`").replace("`$[", "`[")) from None
    return found


def build(cls: type[T], data: Mapping[str, Any], **built: Any) -> T:
    """A dataclass from the plain data of its fields, some of which are already built. Unknown fields are refused.

    Raises:
        UserError: one line: the field, and what is wrong with it.
    """
    hints: dict[str, Any] = _hints(cls)  # type: ignore[arg-type]
    fields = dict(built)
    for name, value in data.items():
        if name not in hints:
            raise UserError(unknown("field", name, hints))
        try:
            fields[name] = built[name] if name in built else from_plain(hints[name], value)
        except UserError as error:
            raise UserError(f"{name}: {error}") from None
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        optional = field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        if field.name not in fields and not optional:
            raise UserError(f"{field.name} is missing")
    return cls(**fields)


@functools.cache
def _hints(cls: type[Any]) -> dict[str, Any]:
    """The types of a dataclass's fields, by name."""
    found = get_type_hints(cls)
    return {field.name: found[field.name] for field in dataclasses.fields(cls)}


def _describe(value: Any) -> Any:
    """What msgspec does not know: a value that describes itself, or a path."""
    if isinstance(value, PurePath):
        return str(value)
    return value.to_json()


def _build(cls: type[Any], data: Any) -> Any:
    """The inverse of :func:`_describe`."""
    if issubclass(cls, PurePath):
        return cls(data)
    return cls.from_json(data)


def _with_lists(value: Any) -> Any:
    """The same with lists for tuples, as JSON has them."""
    if isinstance(value, dict):
        return {name: _with_lists(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_lists(inner) for inner in value]
    return value
