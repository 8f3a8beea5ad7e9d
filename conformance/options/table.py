"""The table of options. pytest's flags and ini keys, the command's flags, their help and the docs page are made from it.

Imports nothing heavy: the pytest plugin reads the table on every start of pytest, also without ``--loader``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...harness.contract.choices import START_METHODS, Isolation, PersistentWorkers, words_of
from ..report.formats import report_formats
from .option import Option
from .values import (
    PLATFORM,
    at_least,
    one_of,
    positive,
    seconds,
    several_at_least,
    start_methods,
    whole,
    wholes,
    words,
    yes_or_no,
)

FAILURES = Path(".badbatch")
"""Where the command keeps the folders of failing trials, in the current directory."""

# fmt: off
OPTIONS: tuple[Option, ...] = (
    Option("loader", "The loader to check: pkg.module:attr.", "LOADER", repeatable=True, places=("pytest",)),
    Option("only", "Run only the suite, and none of your own tests.", "", is_flag=True, places=("pytest",), in_ini=False),
    Option("off", "Run only your own tests, and not the suite.", "", is_flag=True, places=("pytest",), in_ini=False),
    Option("workers", "Worker counts, with commas between them.", "N,N…", "0,2", "workers", wholes,
           several_at_least(0, "workers")),
    Option("ranks", "Numbers of ranks, with commas between them.", "N,N…", "1,2", "ranks", wholes,
           several_at_least(1, "ranks")),
    Option("samples", "Samples in the source, unless the scenario sets it.", "N", "40", "samples", whole, at_least(8)),
    Option("batch-size", "Samples in a batch, unless the scenario sets it.", "N", "4", "batch_size", whole, at_least(1)),
    Option("quick", "Run only the ten scenarios and two topologies that find most defects: a first look, not a "
    "verdict on the loader.", "", field="quick", convert=yes_or_no, is_flag=True),
    Option("scenario", "Only scenarios whose name matches this glob.", "NAME", field="scenarios", repeatable=True),
    Option("not-scenario", "Leave out scenarios whose name matches this glob.", "NAME", field="not_scenarios", repeatable=True),
    Option("source", "Only sources whose name matches this glob, of those that the loader declares.", "NAME", field="sources",
           repeatable=True),
    Option("check", "Only checks whose name matches this glob.", "NAME", field="checks", repeatable=True),
    Option("not-check", "Leave out checks whose name matches this glob.", "NAME", field="not_checks", repeatable=True),
    Option("timeout", "The job's timeout in timed scenarios; longer if the loader starts slowly.", "SECONDS", "1.0", "timeout",
           seconds, positive),
    Option("deadline", "Seconds after which a trial is cut.", "SECONDS", "30", "deadline", seconds, positive),
    Option("start-method", f"How workers are started: {', '.join(START_METHODS)}, or {PLATFORM} (the platform's own); several "
           "with commas between them.", "METHOD,…", PLATFORM, "start_methods", words, start_methods),
    Option("persistent-workers", "Keep the workers for the next epoch, with loaders that support it: in scenarios with several "
    "epochs at 1 rank (auto), always, or never.", "|".join(words_of(PersistentWorkers)), "auto", "persistent_workers", str,
           one_of(words_of(PersistentWorkers))),
    Option("isolation", "A trial runs in a fork of a zygote (fork), or in a new interpreter (spawn).",
           "|".join(words_of(Isolation)), "auto", "isolation", str, one_of(words_of(Isolation))),
    Option("jobs", "How many trials run at once; the default depends on the number of processors.", "N", "", "jobs", whole, at_least(1)),
    Option("seed", "The seed of every shuffle.", "N", "0", "seed", whole, at_least(0)),
    Option("repeat", "Run each trial N times; a verdict that is not the same each time is flaky.", "N", "1", "repeat",
           whole, at_least(1)),
    Option("known", "A TOML file of known failures, or the name of one that comes with badbatch.", "FILE", field="known",
           repeatable=True, is_path=True),
    Option("keep", "Keep the folders of all trials here, to be run or judged again; without it those of failing trials are kept, "
           f"in pytest's cache folder or, by the command, in {FAILURES}.", "DIR", "", "keep", Path, is_path=True),
    *(Option(format.name, format.title, "FILE", convert=Path, is_path=True,
             places=("pytest", "command") if format.in_pytest else ("command",)) for format in report_formats().values()),
)
# fmt: on

BY_NAME: Mapping[str, Option] = {option.name: option for option in OPTIONS}
