"""The expectation, compared with an independent model of honest loaders: slow, obvious, and written out sample by sample.

The model says who gets what: it pads or drops, splits, batches, and treats each damaged sample as the contract says.
What such a loader does must never be a violation. One good sample less, or one arrival more, than it delivers must
always be one.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from badbatch.conformance.engine.judge import judge
from badbatch.conformance.judging.expectation import expect
from badbatch.conformance.judging.verdict import Mark
from badbatch.harness.contract.job import Contract
from badbatch.harness.faults import Effect, Fault, registry
from badbatch.harness.faults.hang import Hang
from badbatch.harness.faults.raises import Raise
from badbatch.harness.faults.segfault import Segfault
from badbatch.harness.faults.transient import Transient
from badbatch.harness.faults.unpicklable_sample import UnpicklableSample
from badbatch.harness.plan import FaultPlan
from badbatch.harness.sources.truth import Owed
from badbatch.harness.trial.history import History
from badbatch.harness.trial.spec import Topology, TrialSpec
from history_dsl import broken, history_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


@dataclasses.dataclass(frozen=True)
class Case:
    """One epoch that is to be dealt out."""

    samples: int
    ranks: int
    batch: int
    tail: str
    drop_last: bool
    split: str
    damaged: frozenset[int] = frozenset()
    on_damage: str = "raise"
    after_error: str = "continue"
    batches: str = "short"
    explicit: bool = False
    """A wholly damaged batch ends in an error, not in no batch."""

    @property
    def contract(self) -> Contract:
        """What the loader of the model promises."""
        return Contract(
            on_damage=self.on_damage,  # type: ignore[arg-type]
            after_error=self.after_error,  # type: ignore[arg-type]
            batches=self.batches,  # type: ignore[arg-type]
            tail=self.tail,  # type: ignore[arg-type]
            uneven_ranks=True,
        )

    def history_of(self, story: str) -> History:
        """The history of a story about this epoch."""
        return history_of(
            story,
            samples=self.samples,
            batch=self.batch,
            ranks=self.ranks,
            plan={sample: Raise() for sample in self.damaged},
            contract=self.contract,
            drop_last=self.drop_last,
        )


def shares(case: Case) -> list[list[int]]:
    """The samples of each rank, in the order in which it reads them."""
    ids = list(range(case.samples))
    if case.tail == "drop":
        while len(ids) % case.ranks:
            ids.pop()
    if case.tail == "pad" and ids:
        position = 0
        while len(ids) % case.ranks:
            ids.append(ids[position])
            position += 1
    if case.split == "stride":
        return [[sample for place, sample in enumerate(ids) if place % case.ranks == rank] for rank in range(case.ranks)]
    size = 0
    while size * case.ranks < len(ids):
        size += 1
    return [ids[rank * size : (rank + 1) * size] for rank in range(case.ranks)]


def chunks(case: Case, share: list[int]) -> list[list[int]]:
    """A share in batches; without the last one where it is partial and drop_last is on."""
    found: list[list[int]] = []
    for sample in share:
        if not found or len(found[-1]) == case.batch:
            found.append([])
        found[-1].append(sample)
    if case.drop_last and found and len(found[-1]) < case.batch:
        found.pop()
    return found


def dealt(case: Case) -> list[list[str]]:
    """What the consumer of each rank sees, token by token in the language of stories."""
    seen: list[list[str]] = []
    for share in shares(case):
        tokens: list[str] = []
        if case.on_damage == "skip" and case.batches == "full":
            tokens += [f"fault{sample} skip{sample}" for sample in share if sample in case.damaged]
            share = [sample for sample in share if sample not in case.damaged]
        for batch in chunks(case, share):
            bad = [sample for sample in batch if sample in case.damaged]
            good = [sample for sample in batch if sample not in case.damaged]
            tokens += [f"fault{sample}" for sample in bad]
            if not bad:
                tokens.append(_batch(batch))
            elif case.on_damage == "raise":
                tokens.append("raise")
                if case.after_error == "stop":
                    break
            elif case.on_damage == "mark":
                tokens.append(_batch([f"{sample}?" if sample in case.damaged else sample for sample in batch]))
            elif case.on_damage == "skip":
                tokens += [f"skip{sample}" for sample in bad]
                tokens += [_batch(good)] if good else ["raise"] if case.explicit else []
            else:
                tokens += [f"skip{sample}" for sample in bad]
                spare = next(sample for sample in range(case.samples) if sample not in case.damaged)
                tokens.append(_batch([spare if sample in case.damaged else sample for sample in batch]))
        seen.append(tokens)
    return seen


def _batch(samples: list[Any]) -> str:
    return ",".join(map(str, samples))


def story(seen: list[list[str]]) -> str:
    """The story of all ranks."""
    return " ".join(f"r{rank}: {' '.join(tokens)} end" for rank, tokens in enumerate(seen))


def arrivals(case: Case) -> np.ndarray:
    """How often each sample arrives, where nothing is damaged."""
    counts = np.zeros(case.samples, np.int64)
    for share in shares(case):
        for batch in chunks(case, share):
            for sample in batch:
                counts[sample] += 1
    return counts


undamaged = st.builds(
    Case,
    samples=st.integers(0, 13),
    ranks=st.integers(1, 3),
    batch=st.integers(1, 4),
    tail=st.sampled_from(["exact", "pad", "drop"]),
    drop_last=st.booleans(),
    split=st.sampled_from(["stride", "block"]),
)


@st.composite
def damaged(draw: st.DrawFn) -> Case:
    """An epoch with up to three damaged samples, under any contract."""
    case = dataclasses.replace(draw(undamaged), samples=draw(st.integers(4, 13)), drop_last=False)
    return dataclasses.replace(
        case,
        damaged=frozenset(draw(st.lists(st.integers(0, case.samples - 1), min_size=1, max_size=3))),
        on_damage=draw(st.sampled_from(["raise", "skip", "substitute", "mark"])),
        after_error=draw(st.sampled_from(["continue", "stop"])),
        batches=draw(st.sampled_from(["short", "full"])),
        explicit=draw(st.booleans()),
    )


_quick = settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


def failures(history: History) -> list[str]:
    """The checks that fail, with what they say."""
    return [f"{v.check}: {v.promised} / {v.happened}" for v in judge(history) if v.mark is Mark.FAIL]


@_quick
@given(undamaged)
def test_an_honest_loader_breaks_nothing(case: Case) -> None:
    """However the samples are split, padded, dropped and batched, a loader that deals them out as promised breaks nothing."""
    assert failures(case.history_of(story(dealt(case)))) == []


@_quick
@given(damaged())
def test_an_honest_loader_breaks_nothing_when_samples_are_damaged(case: Case) -> None:
    """A loader that treats each damaged sample as its contract says breaks nothing, in any topology."""
    assert failures(case.history_of(story(dealt(case)))) == []


@_quick
@given(undamaged)
def test_the_budgets_are_what_an_honest_loader_needs(case: Case) -> None:
    """Padding repeats just pad_budget samples, and drop_budget is the most that either way to split leaves out."""
    expected = expect(case.history_of("ask").spec)
    whole = dataclasses.replace(case, drop_last=False)
    if case.samples:
        assert int(np.maximum(arrivals(whole) - 1, 0).sum()) == expected.pad_budget
    both = [dataclasses.replace(case, split=split) for split in ("stride", "block")]
    most = max(int(np.count_nonzero(arrivals(one) == 0)) for one in both)
    if case.tail == "pad" and case.drop_last:  # what is dropped may be the padding: then nothing is lost with it
        assert most <= expected.drop_budget <= most + expected.pad_budget
    else:
        assert most == expected.drop_budget


@_quick
@given(undamaged, st.data())
def test_one_sample_less_is_noticed(case: Case, data: st.DataObject) -> None:
    """Where the loader drops all that it may, one more sample that does not arrive is a loss."""
    counts = arrivals(case)
    once = np.flatnonzero(counts == 1).tolist()
    full = int(np.count_nonzero(counts == 0)) == expect(case.history_of("ask").spec).drop_budget
    if not once or not full:
        return
    gone = data.draw(st.sampled_from(once))
    seen = [[_without(token, gone) for token in tokens] for tokens in dealt(case)]
    assert broken("no-lost-batches", case.history_of(story([[t for t in tokens if t] for tokens in seen])))


def _without(token: str, gone: int) -> str:
    return ",".join(part for part in token.split(",") if part != str(gone))


@_quick
@given(undamaged, st.data())
def test_one_arrival_more_is_noticed(case: Case, data: st.DataObject) -> None:
    """Where the loader pads all that it may, one more arrival of any sample is a duplicate."""
    counts = arrivals(case)
    came = np.flatnonzero(counts).tolist()
    if not came or int(np.maximum(counts - 1, 0).sum()) < expect(case.history_of("ask").spec).pad_budget:
        return
    seen = dealt(case)
    seen[0].append(str(data.draw(st.sampled_from(came))))
    assert broken("no-duplicates", case.history_of(story(seen)))


@_quick
@given(damaged(), st.data())
def test_one_good_sample_less_is_noticed_beside_damage(case: Case, data: st.DataObject) -> None:
    """A good sample that is lost in addition to what its contract allows is a loss, also next to damaged ones."""
    case = dataclasses.replace(case, damaged=frozenset([min(case.damaged)]), tail="exact", after_error="continue", explicit=False)
    seen = dealt(case)
    partial = case.on_damage == "raise" and any(
        case.damaged & set(batch) and len(batch) < case.batch for share in shares(case) for batch in chunks(case, share)
    )
    came = [int(part) for tokens in seen for t in tokens if t[0].isdigit() for part in t.split(",") if part.isdigit()]
    once = sorted(sample for sample in came if came.count(sample) == 1)
    if not once or partial:  # a short batch leaves room in the collateral of a full one
        return
    gone = data.draw(st.sampled_from(once))
    less = [[_without(token, gone) for token in tokens] for tokens in seen]
    assert broken("no-lost-batches", case.history_of(story([[t for t in tokens if t] for tokens in less])))


@_quick
@given(damaged())
def test_one_skip_less_is_noticed(case: Case) -> None:
    """A skip that is not reported is noticed, whatever the topology."""
    case = dataclasses.replace(case, on_damage="skip", tail="exact", explicit=False)
    seen = dealt(case)
    hidden = f"skip{min(case.damaged)}"
    quiet = [[" ".join(word for word in token.split() if word != hidden) for token in tokens] for tokens in seen]
    assert broken("exact-skip-count", case.history_of(story([[t for t in tokens if t] for tokens in quiet])))


OWED = {
    "a read that raises": (Effect.ERROR, Owed.DAMAGED),
    "a read that returns no good sample": (Effect.VALUE, Owed.DAMAGED),
    "a read that does not return": (Effect.STALL, Owed.DAMAGED),
    "a read that kills": (Effect.CRASH, Owed.DAMAGED),
    "a good sample that cannot leave its process": (Effect.UNPICKLABLE, Owed.EITHER),
    "a read that is well when tried again": (Effect.TRANSIENT, Owed.EITHER),
    "an odd but legal sample": (Effect.LEGAL, Owed.GOOD),
    "a slow read": (Effect.SLOW, Owed.GOOD),
}


def test_every_effect_of_a_fault_has_its_due() -> None:
    """What the loader owes for a sample follows from what its fault does to the read, for every fault that there is."""
    assert {effect for effect, _ in OWED.values()} == set(Effect)
    due = dict(OWED.values())
    for kind, cls in registry().items():
        try:
            fault = cls()
        except TypeError:  # a fault with a parameter that has no default
            continue
        spec = _spec({3: fault})
        owed = expect(spec).owed
        assert owed[3] == due[cls.effect], kind
        assert np.all(np.delete(owed, 3) == Owed.GOOD)


def _spec(plan: dict[int, Fault], source: str = "map", workers: int = 2, ranks: int = 2, **settings: Any) -> TrialSpec:
    return TrialSpec(
        loader="any:thing",
        directory="/",
        scenario="one-bad",
        source=source,
        topology=Topology(workers, ranks),
        plan=FaultPlan(plan),
        samples=12,
        contract=Contract(on_damage="raise", after_error="continue", tail="exact"),
        **settings,
    )


@pytest.mark.parametrize(
    ("fault", "budget"),
    [(Raise(), 1), (Segfault(), 2), (Hang(), 2), (UnpicklableSample(), 1), (Transient(failures=1), 1)],
)
def test_an_error_is_reported_once_and_a_death_twice(fault: Fault, budget: int) -> None:
    """One error is expected for a damaged sample; a death or a hang may also be reported by the process that waited for it."""
    assert expect(_spec({5: fault})).error_budget == budget


@pytest.mark.parametrize(
    ("source", "plan", "unreachable"),
    [
        ("map", {5: Segfault()}, 0),
        ("sharded_stream", {5: Raise()}, 0),
        ("sharded_stream", {5: Segfault()}, 3),  # a share of one of four processes
        ("sharded_stream", {5: Segfault(), 6: Hang()}, 6),
        ("stream", {5: Segfault()}, 6 + 3 * 3),  # what follows it, and an unfinished batch in each other process
    ],
)
def test_what_follows_a_death_in_a_stream_cannot_be_reached(
    source: str, plan: dict[int, Fault], unreachable: int
) -> None:
    """Only a stream's own process moves it on: what a map could still read is out of reach there."""
    assert expect(_spec(plan, source)).unreachable == unreachable
