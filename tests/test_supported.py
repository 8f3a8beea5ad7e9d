"""What a loader cannot be asked for is not asked: its cells are not applicable, with the reason."""

from __future__ import annotations

from typing import Any

import pytest
from badbatch.conformance import scenarios
from badbatch.conformance.engine.questions import stays_away
from badbatch.conformance.engine.suite import Suite
from badbatch.conformance.judging.verdict import Mark, Verdict
from badbatch.conformance.options import Options
from badbatch.harness.contract.calling import describe
from badbatch.harness.contract.job import Contract, loader
from badbatch.harness.sources.base import promised
from badbatch.harness.trial.spec import Topology
from trials import ROOT

PLAIN = "tests.rogues.plain_class:Plain"


def takes_sampler(dataset: Any, batch_size: int = 1, sampler: Any = None) -> None: ...


def takes_anything(dataset: Any, **options: Any) -> None: ...


def takes_none(dataset: Any, batch_size: int = 1) -> None: ...


@pytest.mark.parametrize(("call", "divisible"), [(takes_sampler, True), (takes_anything, True), (takes_none, False)])
def test_a_class_without_a_sampler_cannot_be_divided(call: Any, divisible: bool) -> None:
    """On ``map`` a sampler is the only way to give each rank its share; ``sharded_stream`` divides itself."""
    assert promised(describe("x:y", call), "map").divisible is divisible
    assert promised(describe("x:y", call), "sharded_stream").divisible
    assert promised(describe("x:y", lambda job: []), "map").divisible
    assert promised(describe("x:y", loader(ranks=(1, 2))(lambda dataset: [])), "map").divisible  # it says that it can


@pytest.mark.timeout(200)
def test_a_class_without_a_sampler_is_judged_at_one_rank() -> None:
    """With two ranks its cells are not applicable, and say why; where the source divides itself, it is judged there too."""
    chosen = Options(workers=(0, 2), ranks=(1, 2), scenarios=("clean", "remainder-one", "one-bad"), checks=("no-*", "ranks-in-step"))
    with Suite(PLAIN, chosen, ROOT) as suite:
        suite.start()
        suite.prepare()
        report = suite.run()
    assert report.ok, report

    def of(source: str, ranks: int) -> list[Verdict]:
        return [v for v in report.verdicts if v.source == source and v.topology.ranks == ranks]

    assert {v.mark for v in of("map", 2)} == {Mark.NA}
    assert {v.reason.partition(":")[0] for v in of("map", 2)} == {
        "a class without a sampler parameter cannot be given the share of a rank"
    }
    assert {v.mark for v in of("map", 1) if v.check == "no-lost-batches"} == {Mark.PASS}
    assert {v.mark for v in of("sharded_stream", 2) if v.check == "no-lost-batches"} == {Mark.PASS}


def others(contract: Contract, scenario: str, topology: Topology) -> list[Topology | None]:
    """The topologies in which a scenario goes on."""
    with Suite(PLAIN, Options(workers=(topology.workers,), ranks=(topology.ranks,), scenarios=(scenario,)), ROOT) as suite:
        suite.lay_out(("map",), lambda source: contract)
        (spec,) = suite.specs()
    return [phase.topology for phase in spec.phases if phase.topology is not None]


def test_a_loader_is_not_resumed_in_a_topology_that_it_does_not_support() -> None:
    """Only the supported ones are left of the topologies in which a resume goes on; where none is, the trial is not applicable."""
    resumes = Contract(resume="exact", workers=(0, 2), ranks=(1,))
    assert others(resumes, "resumed-other-workers", Topology(0)) == [Topology(2)]
    assert others(Contract(resume="exact"), "resumed-other-workers", Topology(0)) == [Topology(2), Topology(3)]
    workers, ranks = (scenarios.find(f"resumed-other-{what}", "map") for what in ("workers", "ranks"))
    assert stays_away(resumes, Topology(0), workers) == ""
    assert stays_away(resumes, Topology(0), ranks) == "the loader declares ranks=(1,)"
    assert stays_away(Contract(resume="exact", workers=(0,)), Topology(0), workers) == "the loader declares workers=(0,)"
    assert "sampler" in stays_away(Contract(resume="exact", divisible=False), Topology(0), ranks)


@pytest.mark.timeout(200)
def test_a_state_may_be_refused_when_the_loader_is_iterated() -> None:
    """A loader that looks at the topology of a state in iter() keeps its promises in every scenario with a resume."""
    chosen = Options(workers=(0, 2), ranks=(1,), scenarios=("resumed", "resumed-damaged", "resumed-other-*"))
    with Suite("tests.rogues.refusing_late:late", chosen, ROOT) as suite:
        suite.start()
        suite.prepare()
        report = suite.run()
    assert report.ok, report
    assert {v.mark for v in report.verdicts if v.check == "resume-exact"} == {Mark.PASS}
