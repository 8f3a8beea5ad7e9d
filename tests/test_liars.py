"""Every check can fail, and fails where it should: each broken loader fails for its defect, and for nothing else."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import trials
from badbatch.conformance import checks, diagnoses
from badbatch.conformance.diagnoses.comparison import Comparison
from badbatch.harness.trial.spec import Topology, TrialSpec
from fitting import undeclared, undeclared_of

from fixtures.loaders import catalogue
from fixtures.loaders.catalogue import LIARS, Liar

LOADERS = Path(catalogue.__file__).parent


def _question(loader: str, liar: Liar, source: str) -> TrialSpec:
    return trials.question(
        loader,
        liar.scenario,
        Topology(liar.workers, liar.ranks, persistent=liar.persistent),
        source,
        timeout_s=liar.timeout_s,
        deadline_s=liar.deadline_s if loader == liar.loader else 30.0,
    )


def _lie(liar: Liar) -> TrialSpec:
    return _question(liar.loader, liar, liar.source)


def _truth(liar: Liar) -> TrialSpec:
    sources = trials.promise(liar.counterpart).sources or ("map",)
    return _question(liar.counterpart, liar, liar.source if liar.source in sources else sources[0])


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> dict[TrialSpec, trials.Judged]:
    """All trials of all liars and of their honest counterparts, and of the relations between them; those that wait longest first."""
    liars = sorted(LIARS, key=lambda liar: liar.check not in ("no-leftovers", "finite-epoch", "correct-timeout"))
    specs = [spec for liar in liars for make in (_lie, _truth) for spec in (make(liar), *_compared(liar, make(liar)))]
    return trials.put(specs, tmp_path_factory.mktemp("liars"))


def _compared(liar: Liar, spec: TrialSpec) -> list[TrialSpec]:
    """The trials that relations need besides; the optional ones only where the liar breaks that relation."""
    found = []
    for name, specs in trials.roles(spec).items():
        optional = {role.name for role in checks.relations()[name].roles if role.optional}
        found += [other for role, other in specs.items() if role not in optional or liar.check == name]
    return found


def _named(liar: Liar) -> str:
    return f"{liar.attr.partition(':')[2]}-{liar.scenario}-w{liar.workers}-r{liar.ranks}" + "-persistent" * liar.persistent


def test_every_check_has_a_liar() -> None:
    """No check is registered that no loader of the fixtures breaks."""
    assert set(checks.registry()) == {liar.check for liar in LIARS}


def test_every_fixture_is_in_the_catalogue() -> None:
    """Each factory of the fixtures is listed, as honest or with its defect."""
    listed = set(catalogue.HONEST) | {liar.loader for liar in LIARS}
    found = set()
    for path in [LOADERS / "honest.py", *LOADERS.glob("liars_*.py")]:
        module = importlib.import_module(f"fixtures.loaders.{path.stem}")
        found |= {
            f"{module.__name__}:{name}"
            for name, value in vars(module).items()
            if hasattr(value, "__badbatch_contract__") and value.__module__ == module.__name__
        }
    assert found == listed


def test_liars_name_diagnoses_that_exist() -> None:
    """The catalogue expects no diagnosis that nobody can make."""
    assert {liar.diagnosis for liar in LIARS if liar.diagnosis} <= set(diagnoses.registry())


@pytest.mark.parametrize("liar", LIARS, ids=_named)
def test_liar_is_blamed_for_its_lie(liar: Liar, judged: dict[TrialSpec, trials.Judged]) -> None:
    """A liar is blamed for the check that it breaks and no other, except for consequences, and the cause is named."""
    trial = trials.related(judged, _lie(liar))
    assert sorted(trial.blamed) == [liar.check], "\n".join(trial.unexplained)
    found = trial.blamed[liar.check].diagnosis
    assert (found and found.id) == liar.diagnosis, found
    if liar.check in checks.relations():
        case = Comparison(trials.compared(judged, _lie(liar), liar.check))
        assert undeclared_of(liar.check, case) == []
    else:
        assert undeclared(liar.check, trial.history) == []
    assert [line for line in trial.unexplained if f" {liar.check}: fail" not in line] == []


@pytest.mark.parametrize("liar", LIARS, ids=_named)
def test_honest_counterpart_is_blamed_for_nothing(liar: Liar, judged: dict[TrialSpec, trials.Judged]) -> None:
    """Where the liar is blamed, an honest loader of the same promise is not."""
    assert trials.related(judged, _truth(liar)).unexplained == []
