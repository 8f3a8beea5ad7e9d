"""What torch's DataLoader and the fixtures promise of their order holds in real runs."""

from __future__ import annotations

import pytest
from badbatch.conformance.engine.suite import Suite
from badbatch.conformance.judging.verdict import Mark
from badbatch.conformance.options import Options
from trials import ROOT

ORDERS = ("seeded-order", "epochs-differ")
pytestmark = pytest.mark.timeout(180)


def judged(loader: str, **options: object) -> dict[tuple[str, str], tuple[Mark, str]]:
    """From (trial, check) to the mark and the reason, in the scenario that shuffles."""
    with Suite(loader, Options(scenarios=("shuffled",), checks=ORDERS, **options), ROOT) as suite:  # type: ignore[arg-type]
        suite.start()
        suite.prepare()
        return {(v.trial, v.check): (v.mark, v.reason) for v in suite.run().verdicts}


def test_torch_with_a_seeded_generator_keeps_its_order() -> None:
    """With and without workers, on one rank and two, and with workers that stay; a stream need not be shuffled."""
    found = judged("torch.utils.data:DataLoader")
    of_map = {trial for trial, _ in found if "source" not in trial}
    assert of_map == {f"shuffled[workers={cell}]" for cell in ("0", "0,ranks=2", "2", "2,persistent", "2,ranks=2")}
    assert {found[trial, check] for trial in of_map for check in ORDERS} == {(Mark.PASS, "")}
    rest = {found[trial, check] for trial, check in found if trial not in of_map}
    assert rest == {(Mark.NA, "only a data set with an index must be shuffled, unless the loader declares shuffles=True")}


@pytest.mark.parametrize(
    ("loader", "seeded", "differ"),
    [("invariant", Mark.PASS, Mark.PASS), ("any_order", Mark.NA, Mark.PASS), ("evaluates", Mark.NA, Mark.NA)],
)
def test_what_a_contract_says_of_the_order(loader: str, seeded: Mark, differ: Mark) -> None:
    """A loader is held to the order that it declares, and to no other."""
    found = judged(f"fixtures.loaders.declared:{loader}", workers=(2,), ranks=(1,))
    assert [found["shuffled[workers=2]", check][0] for check in ORDERS] == [seeded, differ]
