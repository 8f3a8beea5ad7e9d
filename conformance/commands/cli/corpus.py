"""``badbatch corpus``: the commands of :mod:`badbatch.harness.corpus.cli`, imported when they are used."""

from __future__ import annotations

import click

from .suggesting import SuggestingGroup


class _Corpus(SuggestingGroup):
    """Imports the real group only when it is used, since its imports take time."""

    def _real(self) -> click.Group:
        from ....harness.corpus.cli import corpus

        return corpus

    def list_commands(self, ctx: click.Context) -> list[str]:
        return self._real().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self._real().get_command(ctx, cmd_name)


@click.pass_context
def _help(context: click.Context) -> None:
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


corpus = _Corpus("corpus", help="Make, verify and show corpora of damaged data.", invoke_without_command=True, callback=_help)
