"""``badbatch corpus …``: a thin layer over making, verifying and looking at corpora.

Exit codes: 0 fine; 1 ``verify`` found changes; 2 the user's input is wrong; 4 the harness failed; 130 stopped by
Ctrl-C.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from ..errors import BadbatchError, UserError
from ..exit_codes import ExitCode
from ..stopping import stoppable
from .kinds import KINDS


def _exits(command: Callable[..., int | None]) -> Callable[..., None]:
    """Turn what the command returns or raises into one line and an exit code."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> None:
        try:
            with stoppable():
                code = command(*args, **options)
        except UserError as error:
            click.echo(f"badbatch: {error}", err=True)
            code = ExitCode.USAGE
        except BadbatchError as error:
            click.echo(f"badbatch: {error}", err=True)
            code = ExitCode.HARNESS
        except KeyboardInterrupt:
            click.echo("badbatch: stopped", err=True)
            code = ExitCode.INTERRUPTED
        if code:
            raise SystemExit(code)

    return run


@click.group(invoke_without_command=True)
@click.pass_context
def corpus(context: click.Context) -> None:
    """Corpora on disk: damaged data, and a manifest that says for each sample whether it is good."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@corpus.command()
@click.argument("address", metavar="DIR")
@click.option(
    "--kind", default="imagefolder", show_default=True, help=f"{', '.join(KINDS)}."
)
@click.option("--samples", type=int, help="How many samples, damaged ones included.  [default: 1000]")
@click.option("--damage", default="5%", show_default=True, help="Share of the samples that are damaged.")
@click.option("--oddities", help="Share of the samples that are odd but legal.  [default: 10%; none with --from]")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same bytes.")
@click.option("--size", default="256x256", show_default=True, help="Width and height of pictures.")
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="NAME[:WEIGHT]",
    help="A fault or oddity to choose from, also with parameters: 'jpeg-cut-scan(kept=0.9):2'. Can be repeated. "
    "[default: all that fit]",
)
@click.option(
    "--format",
    "format_",
    help="How it is stored: windows as parquet, npz or arrow; webdataset as tar or tar.gz; jsonl as jsonl or jsonl.gz.",
)
@click.option("--per-file", type=int, help="Samples in one file or shard.  [default: a hundredth, from 10 to 100]")
@click.option("--from", "origin", metavar="DIR", help="Copy this folder's good pictures and damage the copies.")
@click.option("--jobs", type=int, help="Processes.  [default: one a processor]")
@click.option("--no-pipes", is_flag=True, help="No named pipes (FIFOs) among the faults: a program that opens one hangs.")
@click.option("--force", is_flag=True, help="Replace DIR if it contains a corpus made by badbatch.")
@click.option("-q", "--quiet", is_flag=True, help="Print only errors.")
@_exits
def make(
    address: str,
    kind: str,
    samples: int | None,
    damage: str,
    oddities: str | None,
    seed: int,
    size: str,
    faults: tuple[str, ...],
    format_: str | None,
    per_file: int | None,
    origin: str | None,
    jobs: int | None,
    no_pipes: bool,
    force: bool,
    quiet: bool,
) -> None:
    """Make a corpus in DIR: a new or empty folder, or an address that fsspec knows, such as memory://rotten."""
    from .base import Recipe
    from .make import make as make_corpus
    from .recipe import parse_choice, parse_share, parse_size

    if origin is not None and samples is not None:
        raise UserError("--from copies all pictures of the folder: leave --samples out")
    if jobs is not None and jobs < 1:
        raise UserError(f"--jobs must be at least 1, not {jobs}")
    samples = 1000 if samples is None else samples
    if per_file is None:  # faults of whole files need several files, and files need enough samples to be realistic
        per_file = min(max(samples // 100, 10), 100)
    recipe = Recipe(
        kind=kind,
        samples=samples,
        seed=seed,
        damage=parse_share(damage),
        oddities=parse_share(oddities) if oddities is not None else 0.0 if origin is not None else 0.1,
        faults=tuple(parse_choice(fault) for fault in faults),
        format=format_,
        size=parse_size(size),
        per_file=per_file,
        origin=origin,
    )
    began = time.monotonic()
    with _progress("samples", quiet) as told:
        made = make_corpus(
            address,
            recipe,
            jobs=jobs,
            force=force,
            pipes=not no_pipes,
            progress=told and (lambda done, total, _: told(done, total)),
        )
    if not quiet:
        _say(address, made, time.monotonic() - began)


def _say(address: str, made: dict[str, Any], seconds: float) -> None:
    from .readme import special_counts

    counts = made["counts"]
    click.echo(
        f"{address}: {counts['samples']:,} samples in {counts['files']:,} files, {counts['bytes'] / 1e6:,.1f} MB, "
        f"seed {made['seed']}, {seconds:.1f} s"
    )
    click.echo("  " + " · ".join(f"{state} {count:,}" for state, count in counts["state"].items()))
    struck = sum(sum(states.values()) for states in counts["fault"].values())
    asked = round(made["recipe"]["damage"] * counts["samples"])
    if abs(struck - asked) > max(1, asked // 10):
        click.echo(
            f"  {asked:,} damaged samples were requested, {struck:,} were made: a fault of a whole file damages all in it (--per-file)"
        )
    if counts["did_not_take_hold"]:
        click.echo(
            f"  faults had no effect: {counts['did_not_take_hold']:,} of {struck:,}; these samples are still good and count as good"
        )
    if counts["fault"].get("no-permission", {}).get("good"):
        click.echo("  no-permission has no effect: this user may read any file")
    if pipes := special_counts(made).get("fifo"):
        click.echo(
            f"  {pipes:,} named pipe(s): cat, sha256sum and some versions of cp and tar hang when they read one (README.md says more; "
            "--no-pipes makes none)"
        )
    if "://" in address and not address.startswith("file://") and "missing-file" in counts["fault"]:
        click.echo("  no links, pipes, folders or permissions among the faults: they need a local folder")


@corpus.command()
@click.argument("address", metavar="DIR")
@click.option("--jobs", type=int, help="Processes.  [default: one a processor]")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing; only the exit code shows the result.")
@_exits
def verify(address: str, jobs: int | None, quiet: bool) -> int:
    """Compare every byte of the corpus in DIR with its manifest."""
    from .verify import verify as changes_of

    found = 0
    with _progress("files", quiet) as told:
        for change in changes_of(address, jobs=jobs, progress=told):
            found += 1
            if not quiet:
                click.echo(str(change))
    if not quiet:
        click.echo(f"{address}: {found:,} change(s)" if found else f"{address}: no changes")
    return ExitCode.BROKEN if found else 0


@corpus.command()
@click.argument("address", metavar="DIR")
@click.option("--html", "html_path", type=click.Path(dir_okay=False, path_type=Path), help="Write a page.")
@click.option("--png", "png_path", type=click.Path(dir_okay=False, path_type=Path), help="Write a picture.")
@_exits
def show(address: str, html_path: Path | None, png_path: Path | None) -> None:
    """Describe what is in DIR, or write a contact sheet.

    Without an option, list the faults with their counts and one example each. A contact sheet shows how decoders show
    each fault, beside what the manifest says about it.
    """
    if html_path is None and png_path is None:
        from .summary import summary

        click.echo(summary(address))
        return
    from .sheet_html import html
    from .sheet_png import png
    from .show import sheet

    shown = sheet(address)
    try:
        if html_path is not None:
            _write(html_path, html(shown).encode("utf-8"))
        if png_path is not None:
            _write(png_path, png(shown))
    except OSError as error:
        raise UserError(f"cannot write the sheet: {error}") from error


def _write(path: Path, data: bytes) -> None:
    """Write a file completely, or leave the old file unchanged."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(data)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


@corpus.command()
@click.option("--kind", help="Only those that fit this kind.")
@_exits
def faults(kind: str | None) -> None:
    """List the faults and legal oddities that a corpus can have."""
    from .damage import disk_faults
    from .recipe import kind_of

    if kind is not None:
        kind_of(kind)
    known = disk_faults(kind)
    width = max(len(name) for name in known)
    for title, odd in (("damage", False), ("legal oddities", True)):
        click.echo(f"{title}:")
        for name, cls in known.items():
            if cls.odd == odd:
                first = (cls.__doc__ or "").strip().splitlines()[0]
                click.echo(f"  {name:{width}}  {first}" + ("" if kind else f"  [{', '.join(cls.kinds)}]"))


@corpus.command()
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write it to this file instead of printing it."
)
@_exits
def decoders(output: Path | None) -> None:
    """Write the table of what each installed decoder does with each picture fault (docs/decoders.md)."""
    from .decoders import table

    text = table()
    if output is None:
        click.echo(text, nl=False)
    else:
        output.write_text(text, "utf-8")


@contextlib.contextmanager
def _progress(what: str, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on a terminal, and nothing elsewhere."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)

        def told(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield told
