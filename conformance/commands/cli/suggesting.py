"""A group of commands that suggests a name for one that it does not know."""

from __future__ import annotations

import click

from ....harness.nearest import hint


class SuggestingGroup(click.Group):
    """Suggests commands similar to an unknown one."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            ctx.fail(f"No such command {args[0]!r}{hint(args[0], self.list_commands(ctx))}.")
        return super().resolve_command(ctx, args)
