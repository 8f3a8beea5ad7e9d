"""Relations and their diagnoses on histories written as stories: some that keep the promise, some that break it."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest
from badbatch.conformance import checks, diagnoses
from badbatch.conformance.checks import base
from badbatch.conformance.checks.base import Role, relation
from badbatch.conformance.diagnoses.comparison import Comparison
from badbatch.conformance.engine.judge import judge
from badbatch.conformance.engine.relating import consequences, explained, record, relate
from badbatch.conformance.judging.verdict import Mark, Verdict
from badbatch.harness.faults.hang import Hang
from badbatch.harness.faults.null_field import NullField
from badbatch.harness.faults.raises import Raise
from badbatch.harness.faults.segfault import Segfault
from badbatch.harness.faults.transient import Transient
from badbatch.harness.faults.unpicklable_sample import UnpicklableSample
from badbatch.harness.trial.history import History
from badbatch.harness.trial.spec import Topology, TrialSpec
from history_dsl import RAISES, RESUMED, SKIPS, STOPS, history_of

LAW = "worker-count-invariant"
_DRAWS = dataclasses.replace(RAISES, replacement=True)
_INVARIANT = dataclasses.replace(RAISES, order="invariant")
_PER_WORKER = dataclasses.replace(RAISES, short_batches="per-worker")
_DROPS: dict[str, Any] = {"samples": 10, "drop_last": True}
_NULL: dict[str, Any] = {"plan": {5: NullField()}}

# Without workers, and with two.
KEPT: list[tuple[str, str, dict[str, Any]]] = [
    ("0-3 4-7 8-11 end", "0-3 4-7 8-11 end", {}),
    ("0-3 4-7 8-11 end", "8-11 0-3 4-7 end", {}),  # the order is another relation's
    ("0-3 fault5 raise 8-11 end", "fault5 raise 0-3 8-11 end", {}),
    ("0-3 fault5 raise 8-11 end", "0-3 fault5 raise 4,6,8,9 end", {}),  # batches of its own: other samples are collateral
    ("0-3 fault5 raise end", "0-3 4,6,7,8 fault5 raise end", {"contract": STOPS}),
    ("0-3 fault5 4,6,7 skip5 8-11 end", "0-3 fault5 skip5 4,6,7,8 9-11 end", {"contract": SKIPS}),
    ("0-3 fault5 4,6,7 8-11 end skipped1", "0-3 fault5 4,6,7 8-11 end skipped:5", {"contract": SKIPS}),
    ("0-3 break epoch 0-3 4-7 8-11 end", "4-7 break epoch 0-3 4-7 8-11 end", {"break_after": 1}),
    ("0-3 4-7 8-11 end", "0-3 4-7 ask stalled", {}),
    ("0-3 4-7 end", "2-5 6-9 end", {**_DROPS, "shuffle": True}),
    ("0-3 4-7 end", "2-5 6-9 end", {**_DROPS, "contract": _PER_WORKER}),
    ("0-3 fault5 raise:FileNotFoundError:sample_5 8-11 end", "0-3 fault5 raise:OSError:sample_5 8-11 end", {}),
    ("0-3 fault5 raise:OSError:sample_5 8-11 end", "0-3 fault5 raise:FileNotFoundError:sample_5 8-11 end", {}),
]
BROKEN: list[tuple[str, str, dict[str, Any], str]] = [
    ("0-3 4-7 8-11 end", "0-3 8-11 end", {}, "4 samples that arrived without workers never arrived"),
    ("0-3 8-11 end", "0-3 4-7 8-11 end", {}, "4 samples arrived that did not arrive without workers"),
    ("0-3 4-7 end", "2-5 6-9 end", _DROPS, "2 samples that arrived without workers never arrived, and 2 others did in their place (8-9)"),
    ("0-3 4-7 8-11 end epoch 0-3 4-7 8-11 end", "0-3 4-7 8-11 end epoch 0-3 end", {}, "never arrived (epoch 1)"),
    ("0-3 4-7 8-11 end", "0-3 4-7 8-11 0-3 end", {}, "16 samples arrived in all, and 12 without workers"),
    ("0-3 fault5 4,6,7 skip5 8-11 end", "0-3 fault5 4,6,7 skip5 skip6 8-11 end", {"contract": SKIPS},
     "5-6 were reported, and 5 without workers"),
    ("0-3 fault5 4,6,7 8-11 end skipped1", "0-3 fault5 4,6,7 8-11 end skipped2", {"contract": SKIPS},
     "2 skips reported, and 1 without workers"),
    ("0-3 fault5 raise:TypeError:sample_5 8-11 end", "0-3 fault5 raise:AttributeError:sample_5 8-11 end", _NULL,
     "AttributeError reached the consumer, and TypeError without workers"),
]  # fmt: skip


def two(without: str, with_workers: str, **trial: Any) -> dict[str, History]:
    """The same trial without workers and with two; a sample that has its fault in one of the stories has it in both."""
    struck = re.findall(r"\bfault(\d+)", f"{without} {with_workers}")
    trial.setdefault("plan", {int(sample): Raise() for sample in struck})
    trial.setdefault("epochs", 1 + with_workers.split().count("epoch"))
    return {"workers": history_of(with_workers, workers=2, **trial), "reference": history_of(without, **trial)}


def verdict(histories: dict[str, History], **how: Any) -> Verdict:
    """What the relation says of histories by role."""
    return relate(checks.relations()[LAW], {role: record(history) for role, history in histories.items()}, **how)


@pytest.mark.parametrize(("without", "with_workers", "trial"), KEPT)
def test_what_may_differ_is_no_difference(without: str, with_workers: str, trial: dict[str, Any]) -> None:
    """The order, what the contract allows to be lost, and epochs that are not whole are not compared."""
    histories = two(without, with_workers, **trial)
    assert checks.relations()[LAW]({role: record(history) for role, history in histories.items()}) == []


@pytest.mark.parametrize(("without", "with_workers", "trial", "happened"), BROKEN)
def test_what_differs_is_said(without: str, with_workers: str, trial: dict[str, Any], happened: str) -> None:
    """Samples, reports of skips and classes of errors that differ, each with both sides in words."""
    found = verdict(two(without, with_workers, **trial))
    assert found.mark is Mark.FAIL
    assert happened in found.happened
    assert "without workers" in found.promised
    assert found.trials == (("workers", found.trial), ("reference", found.trial.replace("workers=2", "workers=0")))


def spec_of(workers: int = 2, **trial: Any) -> TrialSpec:
    """A trial that was not run."""
    return history_of("end", workers=workers, **trial).spec


@pytest.mark.parametrize(
    ("spec", "topologies"),
    [
        (spec_of(), {"workers": 2, "reference": 0, "second": 1, "third": 3}),
        (spec_of(scenario="one-bad"), {"workers": 2, "reference": 0, "second": 1, "third": 3}),
        (spec_of(scenario="tiny", samples=3), {"workers": 2, "reference": 0, "second": 4}),
        (spec_of(scenario="shuffled"), {"workers": 2, "reference": 0}),
        (spec_of(ranks=2), {"workers": 2, "reference": 0}),
        (spec_of(1), {"workers": 1, "reference": 0, "third": 3}),
        (spec_of(contract=dataclasses.replace(RAISES, workers=(1, 2))), {"workers": 2, "reference": 1}),
        (spec_of(contract=dataclasses.replace(RAISES, workers=(2, 4))), {}),
        (spec_of(0), {}),
        (spec_of(timeout_s=1.0), {}),
        (spec_of(plan={5: Hang()}), {}),
        (spec_of(plan={5: Segfault()}), {}),
        (spec_of(plan={5: Transient(failures=1)}), {}),
        (spec_of(plan={5: UnpicklableSample()}), {}),
    ],
)
def test_which_trials_are_compared(spec: TrialSpec, topologies: dict[str, int]) -> None:
    """A trial without workers, a few others in some scenarios, and none where the fault strikes who reads."""
    found = checks.relations()[LAW].trials(spec)
    assert {role: other.topology.workers for role, other in found.items()} == topologies
    assert {other.topology.ranks for other in found.values()} <= {spec.topology.ranks}


def test_persistent_workers_are_compared_with_none() -> None:
    """Workers that stay for the next epoch are no property of a trial without workers."""
    spec = dataclasses.replace(spec_of(scenario="three-epochs"), topology=Topology(2, 1, "spawn", persistent=True))
    assert checks.relations()[LAW].trials(spec)["reference"].topology == Topology(0, 1)


def test_drawn_samples_are_not_compared() -> None:
    """Which samples arrive is not owed where they are drawn with replacement."""
    found = verdict(two("0-3 4-7 8-11 end", "0,0,0,3 4-7 8-11 end", contract=_DRAWS))
    assert (found.mark, found.reason) == (Mark.NA, "samples are drawn with replacement: which of them arrive is not owed")


@pytest.mark.parametrize(
    ("without", "with_workers", "reason"),
    [
        ("0-3 ask stalled", "0-3 4-7 8-11 end", "clean[workers=0]: the trial did not run to its end: stalled"),
        ("0-3 4-7 8-11 end", "0-3 ask stalled", "the trial did not run to its end: stalled"),
        ("0-3 interrupted", "0-3 8-11 end", "clean[workers=0]: the trial was interrupted"),
    ],
)
def test_a_trial_that_shows_nothing_is_named(without: str, with_workers: str, reason: str) -> None:
    """A trial that was cut or disturbed makes the relation inconclusive, with its own reason."""
    found = verdict(two(without, with_workers))
    assert (found.mark, found.reason) == (Mark.INCONCLUSIVE, reason)


def test_a_cell_that_is_not_clean_says_nothing() -> None:
    """With faults the reason why the other topology is not clean is that of the relation."""
    found = verdict(two("0-3 4-7 end", "0-3 fault5 raise 8-11 end"), clean={"reference": "the loader loses samples"})
    assert (found.mark, found.reason) == (Mark.INCONCLUSIVE, "one-bad[workers=0]: the loader loses samples")


@pytest.mark.parametrize(
    ("without", "with_workers", "cause", "where"),
    [
        ("0-3 4-7 8-11 end", "0-3 8-11 end", "no-lost-batches", ""),
        ("0-3 8-11 end", "0-3 4-7 8-11 end", "no-lost-batches", "clean[workers=0]"),
        ("0-3 4-7 end", "0-3 8-11 ask stalled", "finite-epoch", ""),
        ("0-3 ask stalled", "0-3 4-7 8-11 end", "finite-epoch", "clean[workers=0]"),
    ],
)
def test_a_failing_check_explains_the_relation(without: str, with_workers: str, cause: str, where: str) -> None:
    """A failure in one of its trials explains a failure between them, and a trial that was cut explains that nothing is seen."""
    histories = two(without, with_workers)
    own = {history.spec.id: judge(history) for history in histories.values()}
    found = explained(checks.relations()[LAW], verdict(histories), own)
    assert (found.cause, found.cause_in) == (cause, where)


def test_a_relation_survives_json() -> None:
    """Its trials, and the trial of its cause, are written and read again; a report without these fields is read too."""
    found = dataclasses.replace(verdict(two("0-3 8-11 end", "0-3 4-7 8-11 end")), cause="no-lost-batches", cause_in="clean[workers=0]")
    data = found.to_json()
    assert Verdict.from_json(found.loader, data) == found
    old = {name: value for name, value in data.items() if name not in ("trials", "cause_in")}
    assert Verdict.from_json(found.loader, old).trials == ()


# Two runs, and perhaps a third without workers.
_A, _B = "7,3,9,1 11,0,2,8 5,4,10,6 end", "2,8,0,11 4,6,5,10 9,1,3,7 end"
ORDERS: list[tuple[list[str], dict[str, Any], str, str | None]] = [
    ([f"{_A} epoch {_B}", f"{_A} epoch {_B}"], {}, "", None),
    ([f"{_A} epoch {_B}", f"{_B} epoch {_A}"], {"contract": dataclasses.replace(RAISES, order="free")}, "", None),
    ([f"{_A} epoch {_B}", f"{_A} epoch {_B}", f"{_B} epoch {_A}"], {}, "", None),  # without workers it may be another one
    ([f"{_A} epoch {_B}", f"{_A} epoch {_B}", f"{_A} epoch {_B}"], {"contract": _INVARIANT}, "", None),
    ([f"{_A} epoch {_B}", "7,3,9,1 raise:OSError:no_disk end epoch 0-3 ask stalled"], {}, "", None),
    ([f"{_A} epoch {_B}", f"{_B} epoch {_A}"], {}, "12 of 12 places differ in epoch 0: from place 0 on it was 7, 3, 9, 1, 11, 0, …",
     "order-not-from-the-seed"),
    ([f"{_A} epoch {_B}", f"{_A} epoch {_A}"], {}, "places differ in epoch 1", "seed-used-once"),
    ([f"{_A} epoch {_B}", f"{_A} epoch {_B}", f"{_A.replace('7,3', '3,7')} epoch {_B}"], {"contract": _INVARIANT},
     "2 of 12 places differ in epoch 0: from place 0 on it was 7, 3, 9, 1, 11, 0, …, and 3, 7, 9, 1, 11, 0, … without workers",
     "order-depends-on-workers"),
]


def runs(stories: list[str], **trial: Any) -> dict[str, History]:
    """A trial with two workers that shuffles, the same once more, and perhaps one without workers."""
    trial = {"shuffle": True, "epochs": 2, **trial}
    found = [history_of(story, workers=workers, **trial) for story, workers in zip(stories, (2, 2, 0), strict=False)]
    return dict(zip(("run", "again", "reference"), found, strict=False))


@pytest.mark.parametrize(("stories", "trial", "happened", "cause"), ORDERS)
def test_the_order_of_two_runs(stories: list[str], trial: dict[str, Any], happened: str, cause: str | None) -> None:
    """Orders that differ are said, with the place and both orders, and have their cause; what is not promised is not compared."""
    trials = {role: record(history) for role, history in runs(stories, **trial).items()}
    if trials["run"].expected.contract.order != "invariant":
        trials.pop("reference", None)  # it has no such role then
    found = relate(checks.relations()["seeded-order"], trials)
    assert (found.mark is Mark.FAIL) == bool(happened)
    assert happened in found.happened
    assert (found.diagnosis and found.diagnosis.id) == cause


@pytest.mark.parametrize(
    ("spec", "roles"),
    [
        (spec_of(shuffle=True), {"run": "clean[workers=2]", "again": "clean[workers=2]#1"}),
        (spec_of(0, shuffle=True), {"run": "clean[workers=0]", "again": "clean[workers=0]#1"}),
        (spec_of(shuffle=True, contract=_INVARIANT),
         {"run": "clean[workers=2]", "again": "clean[workers=2]#1", "reference": "clean[workers=0]"}),
        (spec_of(0, shuffle=True, contract=_INVARIANT), {"run": "clean[workers=0]", "again": "clean[workers=0]#1"}),
        (spec_of(), {}),
        (spec_of(shuffle=True, plan={5: Raise()}), {}),
        (spec_of(shuffle=True, phases=RESUMED), {}),
    ],
)  # fmt: skip
def test_which_orders_are_compared(spec: TrialSpec, roles: dict[str, str]) -> None:
    """A second run of each trial that shuffles and nothing else; without workers only where the contract says that they do not matter."""
    found = checks.relations()["seeded-order"].trials(spec)
    assert {role: other.id for role, other in found.items()} == roles


DIAGNOSED: list[tuple[str, str, dict[str, Any], str | None]] = [
    ("0-3 4-7 8 end", "w0:read0-3 w1:read4-7 0-3 4-7 end", {"samples": 9}, "share-rounded-down"),
    ("0-3 4-7 8 end", "w0:read0-3 w1:read4-8 0-3 4-7 end", {"samples": 9}, None),  # it was read, and lost later
    ("0-3 4-7 end", "2-5 6-9 end", {"samples": 10, "drop_last": True}, "remainder-depends-on-workers"),
    ("0-3 4-7 8,9 end", "w0:read0-9 2-5 6-9 end", {"samples": 10}, None),  # nothing may be left out
]


@pytest.mark.parametrize(("without", "with_workers", "trial", "expected"), DIAGNOSED)
def test_the_likely_cause_of_a_difference(without: str, with_workers: str, trial: dict[str, Any], expected: str | None) -> None:
    """A diagnosis of a relation looks at all of its trials."""
    found = verdict(two(without, with_workers, **trial))
    assert found.mark is Mark.FAIL
    assert (found.diagnosis and found.diagnosis.id) == expected


def test_every_diagnosis_of_a_relation_has_a_story_and_fits_no_other() -> None:
    """Each that explains relations alone; and no two of them fit the same story."""
    told = {name: two(without, workers, **trial) for without, workers, trial, name in DIAGNOSED if name}
    told |= {name: runs(stories, **trial) for stories, trial, _, name in ORDERS if name}
    of_relations = {name for name, entry in diagnoses.registry().items() if entry.explains <= set(checks.relations())}
    assert of_relations == set(told)
    for name, histories in told.items():
        trials = {role: record(history) for role, history in histories.items()}
        fits = [other for other in of_relations if _alike(name, other) and diagnoses.find(other).rule(Comparison(trials))]
        assert fits == [name]


def _alike(one: str, other: str) -> bool:
    """Whether two diagnoses explain the same relations."""
    return diagnoses.find(one).explains == diagnoses.find(other).explains


def _registered(name: str, *roles: Role) -> None:
    relation(name, title="", why="", source="", roles=roles)(lambda trials: iter(()))


def test_a_relation_is_registered_like_a_check() -> None:
    """A name that is taken, one role alone, and two roles of one name are refused."""
    other = Role("other", "another", lambda spec: spec)
    with pytest.raises(ValueError, match="two checks are called 'no-duplicates'"):
        _registered("no-duplicates", Role("one", "one"), other)
    for roles in ([other], [other, other]):
        with pytest.raises(ValueError, match="two or more roles with different names"):
            _registered("a-new-one", *roles)
    assert checks.find(LAW).id == LAW
    assert LAW not in checks.of_one_trial()


def test_a_relation_may_explain_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The failures of checks that it implies are put under it, in the trial of which it is asked, unless one of them explains it."""
    monkeypatch.setattr(base, "_REGISTRY", dict(base._REGISTRY))
    relation(
        "same-length", title="", why="", source="", implies=("no-lost-batches",), roles=(Role("one", "one"), Role("other", "another"))
    )(lambda trials: iter(()))
    own = judge(history_of("0-3 8-11 end", workers=2))
    lost = next(one for one in own if one.check == "no-lost-batches")
    for cause, expected in (("", "same-length"), ("no-lost-batches", "")):
        one = dataclasses.replace(lost, check="same-length", cause=cause)
        assert [v.cause for v in consequences([*own, one], [one]) if v.check == "no-lost-batches"] == [expected]


def test_a_relation_that_raises_is_our_fault() -> None:
    """It is inconclusive, and says so."""
    histories = {"workers": history_of("0-3 4-7 8-11 end", workers=2)}
    found = verdict(histories)
    assert (found.mark, "the relation itself raised KeyError" in found.reason) == (Mark.INCONCLUSIVE, True)


