"""Text for ``badbatch explain`` and ``badbatch list``."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from rich.text import Text

from ..report.terminal import field, heading, to_string
from . import explain
from .kinds import KINDS


def render(name: str, width: int, colour: bool) -> str:
    """Everything that has this name.

    Raises:
        UserError: nothing has.
    """
    return to_string(_articles(explain.find(name), width), colour)


def _articles(articles: list[explain.Article], width: int) -> Iterator[Text]:
    for number, article in enumerate(articles):
        if number:
            yield Text("")
        yield Text.assemble((article.name, "bold"), (f"   {article.kind}", "dim"))
        for line in textwrap.wrap(_plain(article.title), width - 2):
            yield Text(f"  {line}")
        for label, text in article.parts:
            yield from field(label, _plain(text), width)


def _plain(text: str) -> str:
    """A docstring's text without its markup."""
    return re.sub(r":\w+:`~?([^`]+)`", r"\1", text).replace("``", "")


def overview(width: int, colour: bool) -> str:
    """How scenarios, trials, checks and diagnoses are related, and all names of each kind."""
    return to_string(_overview(width), colour)


def _overview(width: int) -> Iterator[Text]:
    for number, paragraph in enumerate(explain.OVERVIEW.split("\n\n")):
        if number:
            yield Text("")
        for line in textwrap.wrap(paragraph, width):
            yield Text(line)
    for kind in KINDS:
        names = explain.names_of(kind)
        yield from heading(f"{len(names)} {kind}")
        for line in textwrap.wrap(", ".join(names), width - 2, break_on_hyphens=False):
            yield Text(f"  {line}")
    yield Text("")
    yield Text("badbatch explain NAME says more about any of them.")


def kinds(colour: bool) -> str:
    """One line for each kind of names: how many there are, and what they are."""
    return to_string(_kinds(), colour)


def _kinds() -> Iterator[Text]:
    for kind in KINDS:
        yield Text.assemble((f"{kind:11}", "bold"), f"{len(explain.names_of(kind)):4}  {KINDS[kind]}")
    yield Text("")
    yield Text("badbatch list KIND lists the names of a kind, and badbatch explain NAME says more about any of them.")


def listing(kind: str, width: int | None, colour: bool) -> str:
    """One line for each name of a kind: the name, blanks, its title; cut at the width, if one is given."""
    return to_string(_listing(kind, width), colour)


def _listing(kind: str, width: int | None) -> Iterator[Text]:
    entries = explain.listing(kind)
    label = max(len(name) for name, _ in entries) + 2
    for name, title in entries:
        shown = title if width is None else textwrap.shorten(title, max(20, width - label), placeholder=" …")
        yield Text.assemble((name.ljust(label), "bold"), shown)
