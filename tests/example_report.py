"""One fixed report with every kind of verdict in it, for the tests of all report formats; prints itself as JSON."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from badbatch.conformance.judging.observed import Observed
from badbatch.conformance.judging.verdict import Diagnosis, Mark, Verdict
from badbatch.conformance.report.model import Report
from badbatch.conformance.report.result import TrialResult
from badbatch.conformance.report.run import Run
from badbatch.harness.contract.job import Contract
from badbatch.harness.plan import FaultPlan
from badbatch.harness.trial.spec import Topology, TrialSpec

LOADER = "mypkg.data:make"
ALONE, WORKERS, RANKS = Topology(0, 1), Topology(2, 1), Topology(2, 2)
NOTHING = Observed()
GOES_ON = Observed("error", struck=1, errors=1, after="goes on", surfaced_s=0.01)
LEFT = Diagnosis("worker-left-at-first-error", "worker 0 left its loop at its first error")
HOSTILE = "it says only: <script>alert('x')</script> \x1b[31mred\x07\nand a second line, with \udcff in it"


def verdict(check: str, mark: Mark, scenario: str, topology: Topology, source: str = "map", **more: object) -> Verdict:
    return dataclasses.replace(Verdict(LOADER, scenario, source, topology, check, mark), **more)


def trial(
    verdicts: list[Verdict],
    delivered: int,
    ended: str = "ended",
    raised: int = 0,
    skipped: int = 0,
    observed: Observed = NOTHING,
) -> TrialResult:
    first = verdicts[0]
    spec = TrialSpec(LOADER, "", first.scenario, first.source, first.topology, FaultPlan())
    expected = 40 if first.scenario == "clean" else 39
    folder = Path(".badbatch/kept") if any(v.mark is Mark.FAIL for v in verdicts) else None
    return TrialResult(spec, tuple(verdicts), 0.25, ended, delivered, raised, skipped, expected, folder, observed)


def lost(scenario: str, topology: Topology, share: str, **more: object) -> Verdict:
    return verdict(
        "no-lost-batches",
        Mark.FAIL,
        scenario,
        topology,
        promised="after an error the epoch goes on",
        happened="12 good samples never arrived after sample 5 had its fault (raise) in worker 0",
        lost=(8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27),
        share=share,
        diagnosis=LEFT,
        replay=f"badbatch replay .badbatch/{scenario}-w{topology.workers}-r{topology.ranks}",
        **more,
    )


def trials() -> list[TrialResult]:
    skips = "the loader promises to raise: it has no skips to count"
    blocked = "without workers nothing could time a read out"
    cut = "the trial did not run to its end: stalled"
    never = "the fault had no effect: no process read the sample"
    found = []
    for source in ("map", "stream"):
        for topology in (ALONE, WORKERS, RANKS):
            clean = [
                verdict("no-duplicates", Mark.PASS, "clean", topology, source),
                verdict("exact-skip-count", Mark.NA, "clean", topology, source, reason=skips),
            ]
            found.append(trial(clean, 40))
    found.append(trial([verdict("no-lost-batches", Mark.PASS, "one-bad", ALONE)], 36, raised=1, observed=GOES_ON))
    for topology in (WORKERS, RANKS):
        consequence = verdict(
            "full-batches",
            Mark.FAIL,
            "one-bad",
            topology,
            promised="only the last batch is short",
            happened="1 batch before the last was short",
            cause="no-lost-batches",
        )
        broken = [lost("one-bad", topology, "all in worker 0's share"), consequence]
        found.append(trial(broken, 24, raised=1, observed=GOES_ON))
    found.append(trial([lost("first-bad", WORKERS, "all in worker 0's share")], 24, raised=1))
    found.append(trial([lost("last-bad", WORKERS, "", flaky=(1, 3))], 24, raised=1))
    for topology in (ALONE, WORKERS):
        named = verdict(
            "error-names-sample",
            Mark.FAIL,
            "null-field",
            topology,
            promised="the error names the sample, or the worker",
            happened=HOSTILE,
            witnesses=(1, 3, 5, 7, 9, 11, 13),
        )
        found.append(trial([named], 36, raised=1))
    found.append(
        trial(
            [
                verdict(
                    "no-duplicates",
                    Mark.FAIL,
                    "shuffled",
                    RANKS,
                    "stream",
                    promised="each sample at most once",
                    happened="3 samples arrived more than once, up to 2 times",
                    duplicated=(4, 5, 6),
                    flaky=(2, 4),
                )
            ],
            40,
        )
    )
    found.append(trial([verdict("correct-timeout", Mark.NA, "hung-read", ALONE, reason=blocked)], 0, "not run"))
    found.append(
        trial(
            [
                verdict(
                    "finite-epoch",
                    Mark.FAIL,
                    "hung-read",
                    WORKERS,
                    promised="every call of next() returns or raises",
                    happened="epoch 0: call 2 of next() never returned",
                    replay="badbatch replay .badbatch/hung-read-w2",
                ),
                verdict("no-leftovers", Mark.INCONCLUSIVE, "hung-read", WORKERS, reason=cut, cause="finite-epoch"),
            ],
            4,
            "stalled",
            observed=Observed("stall", struck=1),
        )
    )
    found.append(trial([verdict("content-intact", Mark.INCONCLUSIVE, "transient", WORKERS, reason=never)], 40))
    known = "StopIteration ends the epoch quietly (https://example.org/1)"
    found.append(
        trial(
            [
                verdict("no-lost-batches", Mark.KNOWN, "stop-iteration", WORKERS, reason=known),
                verdict(
                    "contract-kept",
                    Mark.KNOWN,
                    "stop-iteration",
                    WORKERS,
                    reason=f"follows from no-lost-batches: {known}",
                ),
            ],
            4,
        )
    )
    return found


def report() -> Report:
    return Report(
        loader=LOADER,
        contracts={
            "map": Contract(on_damage="raise", after_error="continue", tail="pad", inferred=("after_error", "tail")),
            "stream": Contract(on_damage="raise", after_error="stop", uneven_ranks=True, inferred=("after_error",)),
        },
        versions={"python": "3.12.1", "torch": "2.5.0"},
        seed=7,
        run=Run("0.1.0", "2026-01-31T12:00:00+00:00", "badbatch run mypkg.data:make --seed 7", 40, 4),
        trials=tuple(trials()),
        verdicts=tuple(v for result in trials() for v in result.verdicts),
        stale_known=("known.toml, entry 2: error-kept in one-bad[*]: the check holds now; remove the entry",),
        isolation="spawn",
        notes=("trials run in fresh interpreters: the module started threads",),
    )


def small_report() -> Report:
    """The part of it that the documentation shows."""
    whole = report()
    chosen = tuple(t for t in whole.trials if t.spec.id in ("one-bad[workers=0]", "one-bad[workers=2]"))
    return dataclasses.replace(
        whole,
        contracts={"map": whole.contracts["map"]},
        trials=chosen,
        verdicts=tuple(v for result in chosen for v in result.verdicts),
        stale_known=(),
        notes=(),
        isolation="fork",
    )
