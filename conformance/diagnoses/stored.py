"""Diagnoses of what goes wrong between a loader and the files that it reads."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...harness.corpus.base import DiskFault
from ...harness.corpus.damage.oddities.sixteen_bit import SixteenBit
from ...harness.corpus.damage.pictures import PictureFault
from ...harness.faults import Fault
from ...harness.sources.truth import Owed
from ...harness.trial.event_log import Content
from ..checks.base import count, spans
from ..checks.disk import losses
from ..judging.ledger import Fate
from .base import diagnosis
from .case import Case

_UNREADABLE_TAIL = ("cut", "zeros", "bits", "structure")
"""Families of damage after which a part of a picture can still be decoded."""


def _passed_as_good(case: Case, fits: Callable[[Fault], bool]) -> list[int]:
    """The damaged samples that arrived unmarked, if the damage of each fits; otherwise none."""
    wrong = np.unique(case.arrived[(case.arrived["flags"] & Content.WRONG) != 0]["sample"])
    damaged = [int(sample) for sample in wrong if case.expected.owed[sample] == Owed.DAMAGED]
    return damaged if all(sample in case.spec.plan and fits(case.spec.plan[sample]) for sample in damaged) else []


def _named(case: Case, samples: list[int]) -> str:
    """The damage of samples, and their ids."""
    return f"{', '.join(sorted({case.spec.plan[sample].kind for sample in samples}))}: {spans(samples)}"


@diagnosis(
    "cut-picture-filled-up",
    cause="A decoder fills the missing part of a damaged picture with grey, and the loader delivers it as whole.",
    fix="Leave PIL.ImageFile.LOAD_TRUNCATED_IMAGES unset (no library of yours may set it either) and decode strictly.",
    explains=("content-intact",),
)
def cut_picture_filled_up(case: Case) -> str | None:
    found = _passed_as_good(case, lambda fault: isinstance(fault, PictureFault) and fault.family in _UNREADABLE_TAIL)
    if not found:
        return None
    return (
        f"{count(len(found), 'picture')} that strict decoders refuse ({_named(case, found)}) came as if whole: what could not "
        "be decoded was filled up"
    )


@diagnosis(
    "sixteen-bits-cut-off",
    cause="A picture of 16 bits a pixel is converted to 8 bits by cutting its levels off at 255, which leaves pure white.",
    fix="Divide the levels by 257 before you convert a picture of Pillow's modes I and I;16.",
    explains=("content-intact",),
)
def sixteen_bits_cut_off(case: Case) -> str | None:
    wrong = np.unique(case.arrived[(case.arrived["flags"] & Content.WRONG) != 0]["sample"])
    if not len(wrong) or any(case.spec.plan.get(int(sample)) != SixteenBit() for sample in wrong):
        return None
    return f"only pictures of 16 bits ({spans(wrong)}) arrived destroyed"


@diagnosis(
    "unlisted-endings",
    cause="The loader does not list files with some endings.",
    fix="List these endings too, in upper case as well, or declare what the loader takes with @loader(formats=(…)).",
    explains=("oddities-kept", "no-lost-batches", "no-duplicates"),
    before=("false-end",),
)
def unlisted_endings(case: Case) -> str | None:
    epoch, ending_of = case.epoch, case.expected.truth.endings
    if any(epoch.errors):
        return None
    gone = (case.expected.good | case.expected.odd) & (epoch.fate == Fate.LOST) & ~epoch.unsure
    lost = [int(sample) for sample in np.flatnonzero(gone)]
    endings = sorted({ending_of.get(sample, "") for sample in lost})
    arrived = np.flatnonzero(epoch.arrivals)
    if not lost or "" in endings or not len(arrived) or case.read[lost].any():
        return None
    if any(ending_of.get(int(sample)) in endings for sample in arrived):
        return None
    named = " or ".join(f".{ending}" for ending in endings)
    return f"no file with the ending {named} arrived or was opened ({spans(lost)}), and files with all other endings did arrive"


@diagnosis(
    "schema-not-checked",
    cause="The reader accepts all values: nothing between the file and the batch checks them against the schema.",
    fix="Check each row or batch against the schema (no nulls, lengths, ranges) and treat rows that break it as damaged.",
    explains=("content-intact",),
)
def schema_not_checked(case: Case) -> str | None:
    found = _passed_as_good(case, _is_of_rows)
    return f"{count(len(found), 'row')} that the schema forbids ({_named(case, found)}) came as good" if found else None


def _is_of_rows(fault: Fault) -> bool:
    return isinstance(fault, DiskFault) and fault.level == "sample" and bool({"parquet", "windows"} & set(fault.kinds))


@diagnosis(
    "file-left-at-first-error",
    cause="The reader gives up a file at its first damaged sample, and goes on with the next file.",
    fix="Put the handler around one sample's decoding, not around the file's reading; or declare blast_radius=\"file\".",
    explains=("loss-factor", "no-lost-batches"),
    before=("worker-left-at-first-error", "error-swallowed-by-thread"),
)
def file_left_at_first_error(case: Case) -> str | None:
    return _given_up(case, "rest of the file", "after its first damaged sample")


@diagnosis(
    "row-group-given-up",
    cause="The reader drops a whole row group (or record batch) for one damaged row.",
    fix="Check rows, not row groups, and keep the good ones; or declare blast_radius=\"file\".",
    explains=("loss-factor", "no-lost-batches"),
    before=("worker-left-at-first-error", "error-swallowed-by-thread"),
)
def row_group_given_up(case: Case) -> str | None:
    return _given_up(case, "row group", "in the row group of a damaged row")


def _given_up(case: Case, scope: str, where: str) -> str | None:
    found = losses(case.history, case.epoch, case.expected)
    if not found or any(loss.scope != scope for loss in found):
        return None
    lost = sum(len(loss.samples) for loss in found)
    files = ", ".join(loss.path for loss in found[:3]) + (", …" if len(found) > 3 else "")
    return f"{count(lost, 'good sample')} of {files} never came, all of them {where}, while the other files came whole"
