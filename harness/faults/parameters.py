"""The allowed values of a fault's parameters: declared once, in the annotations of its fields, for checks and strategies."""

from __future__ import annotations

import dataclasses
import math
import types
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from ..nearest import hint


@dataclasses.dataclass(frozen=True)
class Within:
    """``Annotated[int, Within(0, 255)]``: a number from ``least`` to ``most``, both included unless ``below`` is set."""

    least: float
    most: float
    below: bool = False
    """Whether ``most`` itself is excluded."""

    def holds(self, number: Any) -> bool:
        """Whether ``number`` is within the bounds."""
        return bool(self.least <= number and (number < self.most if self.below else number <= self.most))

    def __str__(self) -> str:
        return f"from {self.least} to {'below ' if self.below else ''}{self.most}"


Share = Annotated[float, Within(0, 1, below=True)]
"""A part of something, never all of it."""


@dataclasses.dataclass(frozen=True)
class Parameter:
    """The allowed values of one parameter of a fault."""

    base: type[bool | int | float | str]
    optional: bool = False
    """Whether None is allowed too."""
    choices: tuple[str, ...] = ()
    """For a str: all allowed values; empty: any."""
    within: Within | None = None
    """For a number: its bounds; None: any finite number."""

    def problem(self, value: Any) -> str | None:
        """What is wrong with ``value``, worded to follow the parameter's name; None if nothing is."""
        if value is None and self.optional:
            return None
        # In Python a bool is an int, and an int is valid where a float is expected.
        accepted = (int, float) if self.base is float else self.base
        if not isinstance(value, accepted) or (isinstance(value, bool) and self.base is not bool):
            return f"must be {self}, not {value!r}"
        if isinstance(value, float) and not math.isfinite(value):
            return f"must be {self}, not {value!r}"
        if self.within is not None and not self.within.holds(value):
            return f"must be {self}, not {value!r}"
        if self.choices and value not in self.choices:
            return f"must be {self}, not {value!r}{hint(value, self.choices, '')}"
        return None

    def __str__(self) -> str:
        if self.choices:
            words = f"one of {', '.join(map(repr, self.choices))}"
        else:
            words = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}[self.base]
        if self.within is not None:
            words += f" {self.within}"
        return f"{words}, or null" if self.optional else words


_READ: dict[type[Any], dict[str, Parameter]] = {}


def parameters(cls: type[Any]) -> dict[str, Parameter]:
    """The parameters of a fault's class by name, read from the annotations of its fields.

    Raises:
        TypeError: an annotation is none of ``bool``, ``int``, ``float``, ``str``, ``Literal[…]`` of texts, these
            ``Annotated[…, Within(…)]``, and these ``| None``.
    """
    if cls not in _READ:
        hints = get_type_hints(cls, include_extras=True)
        _READ[cls] = {field.name: _parameter(cls, field.name, hints[field.name]) for field in dataclasses.fields(cls)}
    return _READ[cls]


def check_parameters(fault: Any) -> None:
    """For ``__post_init__``: check that all parameters of this fault are what their annotations say.

    Raises:
        ValueError: one is not; the message names it and says what is allowed.
    """
    for name, parameter in parameters(type(fault)).items():
        problem = parameter.problem(getattr(fault, name))
        if problem is not None:
            raise ValueError(f"{name} {problem}")


def _parameter(cls: type[Any], name: str, hint: Any) -> Parameter:
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        within = next((extra for extra in args[1:] if isinstance(extra, Within)), None)
        return dataclasses.replace(_parameter(cls, name, args[0]), within=within)
    if origin in (Union, types.UnionType) and len(args) == 2 and type(None) in args:
        other = next(arg for arg in args if arg is not type(None))
        return dataclasses.replace(_parameter(cls, name, other), optional=True)
    if origin is Literal and all(isinstance(choice, str) for choice in args):
        return Parameter(str, choices=args)
    if hint in (bool, int, float, str):
        return Parameter(hint)
    raise TypeError(f"{cls.__name__}.{name}: a fault's parameter cannot be annotated as {hint!r}")
