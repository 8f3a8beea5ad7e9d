"""The ``badbatch`` command: parse, call, print, exit. Each module here has one command, or two that belong together.

Nothing heavy is imported before a command runs, so that ``badbatch --help`` answers at once.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click

from ....harness.errors import BadbatchError, UserError
from ....harness.exit_codes import ExitCode, table
from ....harness.stopping import stoppable
from .compare import compare
from .corpus import corpus
from .names import explain, list_names
from .run import run
from .stored import judge, replay
from .suggesting import SuggestingGroup


class _Interrupted(Exception):
    """Ctrl-C, SIGTERM or SIGHUP, while a command ran."""


class _Badbatch(SuggestingGroup):
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:  # click would print an empty line for it
            raise _Interrupted from None


_START = """
To begin:
badbatch run torch.utils.data:DataLoader --known torch   check a loader's promises
badbatch explain                                         how scenarios, trials and checks are related
badbatch list                                            the kinds of names
badbatch corpus make DIR                                 make a folder of damaged data
badbatch COMMAND --help                                  the options of a command"""


@click.group(
    cls=_Badbatch,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="\b\nExit codes:\n" + table(),
)
@click.version_option(package_name="badbatch")
@click.pass_context
def badbatch(context: click.Context) -> None:
    """Check the promises of data loaders, with damaged data and misbehaving storage."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help() + "\n" + _START)


for _command in (run, compare, replay, judge, explain, list_names, corpus):
    badbatch.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> None:
    """The entry point of the command: every error becomes one line and an exit code (:class:`ExitCode`)."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that lacks a letter shows a question mark
            stream.reconfigure(errors="replace")
    with stoppable():
        code = int(_run(arguments))
    sys.exit(code)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        given = sys.argv[1:] if arguments is None else arguments
        code = badbatch.main(args=given, prog_name="badbatch", standalone_mode=False, obj=shlex.join(["badbatch", *given]))
        sys.stdout.flush()
        return int(code or 0)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f" ({context.command_path} --help)" if context is not None else ""
        click.echo(f"badbatch: {' '.join(error.format_message().split())}{hint}", err=True)
        return ExitCode.USAGE
    except (_Interrupted, KeyboardInterrupt, click.Abort):
        with contextlib.suppress(OSError):  # the terminal may be closed
            click.echo("badbatch: interrupted; nothing is left running", err=True)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:  # the reader of the pipe has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.KEPT
    except BadbatchError as error:
        for line in str(error).splitlines():
            click.echo(f"badbatch: {line}", err=True)
        return ExitCode.USAGE if isinstance(error, UserError) else ExitCode.HARNESS
    except Exception:
        traceback.print_exc()
        click.echo("badbatch: this is a fault of badbatch itself, and says nothing about the loader", err=True)
        return ExitCode.HARNESS
