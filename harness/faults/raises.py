"""A read that raises an exception of any importable class."""

from __future__ import annotations

import builtins
import importlib
import re
from dataclasses import dataclass
from typing import Any, NoReturn

from .base import Effect, Fault, Read, fault
from .parameters import check_parameters

_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


@fault("raise", effect=Effect.ERROR)
@dataclass(frozen=True)
class Raise(Fault):
    """The read raises an exception: ``OSError`` by default, as for an unreadable file.

    The class is imported by its name and raised with one message, like the errors of decoders, parsers and file
    systems. It is imported only when the fault acts: reading a stored plan executes no code and needs no library.
    """

    error: str = "builtins.OSError"
    """Dotted name of an exception class that takes one message."""
    message: str = "sample {sample} cannot be read"
    """``{sample}`` is replaced by the sample's id."""

    def __post_init__(self) -> None:
        check_parameters(self)
        try:
            message = self.message.format(sample=0)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise ValueError(f"message {self.message!r} may contain {{sample}} and no other field") from error
        if not _DOTTED.fullmatch(self.error):
            raise ValueError(f"{self.error!r} is no exception class: a dotted name is needed, like builtins.OSError")
        module, _, name = self.error.rpartition(".")
        if module in ("", "builtins"):  # without an import this can be checked now
            self._made(getattr(builtins, name, None), message)

    def strike(self, read: Read) -> NoReturn:
        """Raise the error.

        Raises:
            ValueError: the class cannot be imported, or cannot be raised with one message; then the fault has no
                effect.
        """
        error = self._made(self._found(), self.message.format(sample=read.sample))
        read.took_hold()
        raise error

    def _found(self) -> Any:
        module, _, name = self.error.rpartition(".")
        try:
            return getattr(importlib.import_module(module or "builtins"), name, None)
        except ImportError as error:
            raise ValueError(f"{self.error!r} cannot be imported: {error}") from error

    def _made(self, cls: Any, message: str) -> BaseException:
        if not (isinstance(cls, type) and issubclass(cls, BaseException)):
            raise ValueError(f"{self.error!r} is no exception class")
        try:
            return cls(message)
        except (AttributeError, LookupError, TypeError) as error:
            raise ValueError(f"{self.error!r} cannot be raised with one message: {error}") from error
