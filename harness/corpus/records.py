"""Turns what readers said about a sample into its line in the manifest, for kinds with several samples in a file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from .base import DiskFault, SampleRecord, State
from .oracles import state_of


def _odd_of_samples(fault: DiskFault) -> bool:
    return fault.odd and getattr(fault, "adds_file", None) is None  # an extra file beside the samples makes no sample odd


def record_of(
    sample: int,
    path: str,
    said: Mapping[str, str],
    *,
    stored: bytes,
    wanted: bytes,
    own: DiskFault | None,
    whole: DiskFault | None,
    neighbour: DiskFault | None = None,
    changed: bool | None = None,
    **place: Any,
) -> SampleRecord:
    """The truth about one sample.

    Args:
        stored: the sample's own bytes as written into the file.
        wanted: the same before the damage.
        own: the fault or oddity of the sample itself.
        whole: the fault of its file; recorded if the sample was damaged without a fault of its own.
        neighbour: the fault of another sample; recorded if neither ``own`` nor ``whole`` explains the damage.
        changed: whether the sample was stored differently from what was meant; None: if ``stored`` is not ``wanted``.
        place: further fields of the record that say where the sample is.
    """
    state, why = state_of(said)
    struck = own if own is not None and not own.odd else None
    if struck is None and state is not State.GOOD:
        struck = whole if whole is not None and not whole.odd else neighbour
    odd = next((fault for fault in (own, whole) if struck is None and fault is not None and _odd_of_samples(fault)), None)
    lost = struck is not None and struck.level != "sample" and state in (State.DAMAGED, State.MISSING)
    changed = stored != wanted if changed is None else changed
    return SampleRecord(
        id=sample,
        path=path,
        state=state,
        fault=None if struck is None else struck.to_json(),
        oddity=None if odd is None else odd.to_json(),
        took_hold=None if struck is None else changed or state is not State.GOOD,
        sha256=None if lost else hashlib.sha256(stored).hexdigest(),
        length=None if lost else len(stored),
        content=hashlib.sha256(wanted).hexdigest(),
        said=said,
        why=why,
        **place,
    )
