"""``badbatch explain`` and ``badbatch list``: the names and words of badbatch."""

from __future__ import annotations

import sys

import click

from ..kinds import KINDS
from .printing import terminal


@click.command()
@click.argument("name", metavar="[NAME]", nargs=-1)
def explain(name: tuple[str, ...]) -> None:
    """Explain a name or a word of badbatch.

    NAME is a check, a scenario, a fault, a diagnosis, a source, or a word of the reports (contested, flaky, topology
    …). Without a name: how they are related, and all names.
    """
    from .. import articles

    width, colour = terminal()
    text = articles.render(" ".join(name), width, colour) if name else articles.overview(width, colour)
    click.echo(text, color=colour)


@click.command("list")
@click.argument("kind", type=click.Choice(list(KINDS)), required=False)
def list_names(kind: str | None) -> None:
    """List all names of a kind, with one line about each.

    Without a kind: the kinds of names.
    """
    from .. import articles

    width, colour = terminal()
    if kind is None:
        click.echo(articles.kinds(colour), color=colour)
        return
    click.echo(articles.listing(kind, width if sys.stdout.isatty() else None, colour), color=colour)
