"""A read that raises an exception of any importable class."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import NoReturn

from .base import Effect, Fault, Read, fault
from .parameters import check_parameters


@fault("raise", effect=Effect.ERROR)
@dataclass(frozen=True)
class Raise(Fault):
    """The read raises an exception: ``OSError`` by default, as an unreadable file does.

    The class is imported by its name and raised with one message, as decoders, parsers and file systems raise theirs.
    """

    error: str = "builtins.OSError"
    """Dotted name of an exception class that takes one message."""
    message: str = "sample {sample} cannot be read"
    """``{sample}`` stands for the sample's id."""

    def __post_init__(self) -> None:
        check_parameters(self)
        try:
            message = self.message.format(sample=0)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise ValueError(f"message {self.message!r} may hold {{sample}} and no other field") from error
        try:
            self._class()(message)
        except (AttributeError, LookupError, TypeError) as error:
            raise ValueError(f"{self.error!r} cannot be raised with one message: {error}") from error

    def strike(self, read: Read) -> NoReturn:
        error = self._class()(self.message.format(sample=read.sample))
        read.took_hold()
        raise error

    def _class(self) -> type[BaseException]:
        module, _, name = self.error.rpartition(".")
        try:
            found = getattr(importlib.import_module(module or "builtins"), name, None)
        except (ImportError, TypeError, ValueError) as error:
            raise ValueError(f"{self.error!r} is no exception class: {error}") from error
        if isinstance(found, type) and issubclass(found, BaseException):
            return found
        raise ValueError(f"{self.error!r} is no exception class")
