"""A diagnosis of what that check finds."""

from __future__ import annotations

from badbatch.conformance.diagnoses.base import diagnosis
from badbatch.conformance.diagnoses.case import Case


@diagnosis(
    "antenna-struck",
    cause="Hail struck the antenna.",
    fix="Put a roof over the antenna.",
    explains=("mild-weather", "no-lost-batches"),
    before=("false-end",),
)
def antenna_struck(case: Case) -> str | None:
    """Fits wherever the fault had an effect."""
    if any(fault.kind == "hail" for fault in case.spec.plan.values()) and len(case.faults):
        return f"hail struck in sample {case.faults[0]['sample']}"
    return None
