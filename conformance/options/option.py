"""What one option is: its names in both places, its help, and how a text becomes its value."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from ...harness.errors import UserError
from .values import anything

Place = Literal["pytest", "command"]


@dataclasses.dataclass(frozen=True)
class Option:
    """One option of both places."""

    name: str
    """As on the command line, without prefix: ``batch-size``."""
    help: str
    metavar: str
    default: str = ""
    """As a user would write it; empty: no value."""
    field: str | None = None
    """The field of :class:`Options`; None: an option of the command, not of the suite (where a report is written)."""
    convert: Callable[[str], Any] = str
    check: Callable[[Any], str] = anything
    """What is wrong with a converted value, as the end of a sentence; empty: nothing."""
    repeatable: bool = False
    """May be given several times; an ini file gives several on separate lines, or separated by blanks."""
    is_path: bool = False
    """A relative path in an ini file is relative to that file's folder."""
    is_flag: bool = False
    """Takes no value on the command line; ``true`` or ``false`` in an ini file."""
    places: tuple[Place, ...] = ("pytest", "command")
    in_ini: bool = True
    """Also an ini key of pytest; otherwise an option of only one command line."""

    @property
    def flag_for_pytest(self) -> str:
        """``--loader-batch-size``."""
        return "--loader" if self.name == "loader" else f"--loader-{self.name}"

    @property
    def flag_for_cli(self) -> str:
        """``--batch-size``; the loader itself is an argument there."""
        return f"--{self.name}"

    @property
    def ini(self) -> str:
        """``loader_batch_size``: the key in pytest's ini file, and pytest's name for the flag's value."""
        return self.flag_for_pytest[2:].replace("-", "_")

    @property
    def ini_type(self) -> Literal["args", "string"]:
        """The type that pytest's ``addini`` gets."""
        return "args" if self.repeatable else "string"

    @property
    def full_help(self) -> str:
        """The help with the default and whether it may be repeated, as both places print it."""
        tail = " (may be given more than once)" if self.repeatable else ""
        return f"{self.help}{tail}{f' [default: {self.default}]' if self.default else ''}"

    def parse(self, text: str, where: str, folder: Path | None = None) -> Any:
        """Convert one text to the option's value, and check it.

        Args:
            where: the origin of the text, for the message: ``--loader-workers``, ``loader_workers in pytest.ini``.
            folder: the folder of a relative path; None: the current directory.

        Raises:
            UserError: one line that begins with ``where``.
        """
        try:
            value = self.convert(text)
        except UserError as error:
            raise UserError(f"{where}: {error}") from None
        if problem := self.check(value):
            raise UserError(f"{where}: {problem}")
        if self.is_path and folder is not None and _looks_like_a_path(self, str(text)):
            return type(value)(folder / value)
        return value

    def value(self, given: str | Sequence[str] | bool | None, where: str, folder: Path | None = None) -> Any:
        """The value from the given texts: one text, or several for a repeatable option; nothing: the default.

        Raises:
            UserError: as for :meth:`parse`.
        """
        if self.is_flag:
            return self.parse(given, where) if isinstance(given, str) and given.strip() else given is True
        if isinstance(given, bool):
            raise TypeError(f"{self.name} takes a value")
        texts = [given] if isinstance(given, str) else list(given or ())
        texts = [text for text in texts if text.strip()]
        if self.repeatable:
            return tuple(self.parse(text, where, folder) for text in texts)
        if texts:
            return self.parse(texts[-1], where, folder)
        return self.parse(self.default, "the default") if self.default else None


def _looks_like_a_path(option: Option, text: str) -> bool:
    # A known file may be given by the name of one that comes with badbatch; - is standard output.
    return text != "-" and (option.name != "known" or "/" in text or text.endswith(".toml"))
