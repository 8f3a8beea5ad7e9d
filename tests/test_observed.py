"""The behaviour card: what histories show about a loader before any judgement, and how a report prints it."""

from __future__ import annotations

import dataclasses

import pytest
from badbatch.conformance.judging.accounting import account
from badbatch.conformance.judging.expectation import expect
from badbatch.conformance.judging.observed import Observed, observe
from badbatch.conformance.report import terminal
from badbatch.conformance.report.card import card
from badbatch.conformance.report.model import Report
from badbatch.conformance.report.result import TrialResult
from badbatch.harness.faults.raises import Raise
from badbatch.harness.faults.segfault import Segfault
from badbatch.harness.plan import FaultPlan
from badbatch.harness.trial.history import History
from badbatch.harness.trial.spec import Topology, TrialSpec
from example_report import report
from history_dsl import RAISES, SKIPS, history_of


def seen(history: History) -> Observed:
    expected = expect(history.spec)
    return observe(history, account(history, expected), expected)


@pytest.mark.parametrize(
    ("story", "errors", "after"),
    [
        ("0-3 fault5 raise 8-11 end", 1, "goes on"),
        ("0-3 fault5 raise end", 1, "ends"),
        ("0-3 8-11 fault5 raise end", 1, "goes on"),  # nothing more was to come
        ("0-3 fault5 raise raise raise raise capped", 4, "repeats"),
        ("0-3 fault5 raise ask stalled", 1, "waits"),
        ("fault5 raise@factory", 1, "ends"),
        ("0-3 fault5 8-11 end", 0, ""),
    ],
)
def test_what_comes_after_an_error(story: str, errors: int, after: str) -> None:
    """After its first error an epoch continues, ends, repeats the error, or never returns."""
    found = seen(history_of(story, plan={5: Raise()}))
    assert (found.effect, found.struck, found.errors, found.after) == ("error", 1, errors, after)


def test_the_worst_rank_decides() -> None:
    """If one rank continues and another never returns, the loader waits."""
    story = "r0: 0-3 fault5 raise 8-11 end r1: 12-15 fault17 raise ask stalled"
    assert seen(history_of(story, ranks=2, samples=24, plan={5: Raise(), 17: Raise()})).after == "waits"


def test_how_long_an_error_takes_to_surface() -> None:
    """The time from the fault to the error, or to the report of the skip, whichever comes first."""
    assert seen(history_of("0-3 fault5 +2.5s raise 8-11 end", plan={5: Raise()})).surfaced_s == pytest.approx(2.5, abs=0.1)
    skipping = history_of("0-3 fault5 +1s skip5 +5s 4,6-7 8-11 end", plan={5: Raise()}, contract=SKIPS)
    assert seen(skipping).surfaced_s == pytest.approx(1.0, abs=0.1)
    assert seen(history_of("0-3 fault5 4,6-7 8-11 end", plan={5: Raise()}, contract=SKIPS)).surfaced_s is None


def test_what_is_left_out_without_a_word_is_counted() -> None:
    """A damaged sample that neither an error nor a report accounts for was left out silently."""
    assert seen(history_of("0-3 fault5 4,6-7 8-11 end", plan={5: Raise()}, contract=SKIPS)).silent == 1
    assert seen(history_of("0-3 fault5 skip5 4,6-7 8-11 end", plan={5: Raise()}, contract=SKIPS)).silent == 0
    assert seen(history_of("w0:fault5 ask stalled", workers=2, plan={5: Segfault()})).silent == 0  # the epoch never ended


def result(observed: Observed, topology: Topology, delivered: int, **fields: object) -> TrialResult:
    spec = TrialSpec("m:make", "", str(fields.pop("scenario", "one-bad")), "map", topology, FaultPlan())
    values = {"verdicts": (), "seconds": 1.0, "ended": "ended", "raised": 1, "skipped": 0, "arrivals_expected": 39, **fields}
    return TrialResult(spec=spec, delivered=delivered, observed=observed, **values)  # type: ignore[arg-type]


STOPS = Observed("error", struck=1, errors=1, after="ends", surfaced_s=0.01)
GOES_ON = dataclasses.replace(STOPS, after="goes on")


def test_what_a_stop_costs_comes_first() -> None:
    """One bad sample: how many errors, what follows, and how many good samples do not arrive, and where."""
    facts = card([result(STOPS, Topology(0), 4), result(GOES_ON, Topology(2), 36), result(GOES_ON, Topology(2, 2), 36)])
    told = [str(fact) for fact in facts if fact.topic == "bad sample"]
    assert told == [
        "1 error, then the epoch goes on; 3 of 39 good samples do not arrive — wherever there are workers",
        "1 error, then the end of the epoch; 35 of 39 good samples do not arrive — workers=0",
    ]
    assert facts[0].topic == "bad sample"


def test_hangs_and_deaths() -> None:
    """How long until a hung read and a dead worker are reported, if they are, and what they cost."""
    late = Observed("stall", struck=1, errors=1, after="ends", surfaced_s=1.25)
    died = Observed("crash", struck=1)
    facts = card([
        result(late, Topology(2), 4, scenario="hung-read"),
        result(died, Topology(2), 20, scenario="killed", ended="stalled"),
        result(died, Topology(2), 20, scenario="exit"),
    ])  # fmt: skip
    told = {fact.topic: [other.text for other in facts if other.topic == fact.topic] for fact in facts}
    assert told["hung read"] == ["1 error after 1.2 s, then the end of the epoch; 35 of 39 good samples do not arrive"]
    assert told["death"] == [
        "no error; next() never returns; 19 of 39 good samples do not arrive",
        "no error and no reported skip; 19 of 39 good samples do not arrive",
    ]


def test_skips_are_shown_with_their_reasons_and_empty_ones_as_such() -> None:
    """Reported skips with the given reasons; an empty reason, and samples left out without a report, are named as such."""
    reasons = {"OSError: a.jpg cut at 7": 1, "OSError: b.jpg cut at 11": 1}
    good = Observed("error", struck=2, reasons=reasons, without_reason=1)
    quiet = Observed("error", struck=1, silent=1)
    (fact,) = [f for f in card([result(good, Topology(0), 37, skipped=3), result(quiet, Topology(2), 39)]) if f.topic == "skips"]
    assert fact.text == (
        "3 skips reported, 1 damaged sample left out without a report (in 1 trial), reasons: OSError: … cut at # (2), "
        "1 skip with an empty reason"
    )


def test_the_card_survives_json_and_comes_before_the_verdicts() -> None:
    """A stored report shows the same card, at the head; one without observations shows none."""
    data = report().to_json()
    assert [entry["topic"] for entry in data["card"]][:1] == ["bad sample"]
    again = Report.from_json(data)
    assert again.card == report().card
    text = terminal.render(again)
    assert text.index("Observed") < text.index("workers") < text.index("FAIL")
    for trial in data["trials"]:
        del trial["observed"]
    assert "Observed" not in terminal.render(Report.from_json(data))


def test_what_batches_of_each_worker_cost_is_shown() -> None:
    """Where it is declared: how many short batches come before the last, and what drop_last leaves out."""
    contract = dataclasses.replace(RAISES, tail="exact", short_batches="per-worker")
    ends = seen(history_of("0,2,4,6 1,3,5,7 8,10 9,11 end", workers=2, contract=contract))
    drops = seen(history_of("0,2,4,6 1,3,5,7 end", workers=2, contract=contract, drop_last=True))
    assert (ends.worker_tails, ends.left_out) == (1, 0)
    assert (drops.worker_tails, drops.left_out) == (0, 4)
    example = report()
    trials = [
        dataclasses.replace(trial, observed=observed, spec=dataclasses.replace(trial.spec, contract=contract, drop_last=drop_last))
        for trial, observed, drop_last in zip(example.trials, (ends, drops), (False, True), strict=False)
    ]
    facts = [str(fact) for fact in card(trials) if fact.topic == "batches"]
    assert facts == [
        "each worker ends with a short batch of its own, as declared; up to 1 before a rank's last one",
        "drop_last leaves out 4 good samples, the partial batches of all workers",
    ]
    assert Observed.from_json(ends.to_json()) == ends
