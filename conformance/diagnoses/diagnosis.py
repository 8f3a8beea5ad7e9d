"""The likely cause of a failure, named from the pattern of its history."""

from __future__ import annotations

import dataclasses
import functools

from ...harness.errors import UserError
from ...harness.nearest import listed, unknown
from ...harness.trial.history import History
from ..judging.expectation import Expectation
from ..judging.ledger import Ledger
from . import ending, losing, splitting, stopping, stored, telling
from .base import Case, Entry


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """A cause that fits what was seen."""

    id: str
    text: str

    def to_json(self) -> dict[str, str]:
        """``{"id", "text"}``."""
        return dataclasses.asdict(self)


DIAGNOSES: tuple[Entry, ...] = (
    # The first that fits is told, so those that ask for more come first.
    splitting.shuffled_differently,
    splitting.not_split_by_worker,
    splitting.not_split_by_rank,
    splitting.rank_and_worker_composed_wrongly,
    splitting.drawn_with_replacement,
    splitting.drop_last_per_worker,
    splitting.batched_per_worker,
    telling.substituted_silently,
    ending.stale_batches_delivered,
    losing.batch_unpicklable,
    losing.batch_lost_with_the_news,
    losing.waits_for_dead_worker,
    losing.death_taken_for_end,
    losing.dead_worker_takes_its_queue,
    ending.timeout_wrong_units,
    ending.timeout_without_end,
    ending.timeout_ends_at_first_byte,
    ending.timeout_not_passed_on,
    ending.close_waits_for_hung_worker,
    ending.position_stuck,
    ending.retry_without_end,
    stored.cut_picture_filled_up,
    stored.sixteen_bits_cut_off,
    stored.unlisted_endings,
    stored.schema_not_checked,
    stored.row_group_given_up,
    stored.file_left_at_first_error,
    losing.error_swallowed_by_thread,
    losing.worker_left_at_first_error,
    stopping.stop_takes_what_was_before,
    stopping.stop_ends_other_ranks,
    losing.false_end,
    losing.batch_lost_worker_alive,
    telling.skip_counter_in_worker,
    telling.oddity_taken_for_missing,
    telling.skips_not_counted,
    telling.class_lost_in_transit,
    splitting.length_of_the_whole_set,
    splitting.length_in_samples,
    splitting.damage_shrinks_one_rank,
    splitting.remainder_not_evened_out,
    ending.exhausted_after_one_epoch,
    ending.goes_on_where_it_was_left,
    ending.closing_waits_in_vain,
    ending.workers_kept_after_break,
    ending.helpers_not_ended,
)
"""Every diagnosis, in the order in which they are tried."""


@functools.cache
def registry() -> dict[str, Entry]:
    """All diagnoses by id, in the order in which they are tried."""
    return {entry.id: entry for entry in DIAGNOSES}


def find(name: str) -> Entry:
    """The diagnosis of that id.

    Raises:
        UserError: there is none; names the nearest.
    """
    try:
        return registry()[name]
    except KeyError:
        raise UserError(unknown("diagnosis", name, registry(), listed("diagnoses"))) from None


def diagnose(check: str, history: History, ledger: Ledger, expected: Expectation) -> Diagnosis | None:
    """The first diagnosis that fits a failing trial; None fits: say nothing."""
    case = Case(check, history, ledger, expected)
    for entry in DIAGNOSES:
        if check in entry.explains and (clause := entry.rule(case)):
            return Diagnosis(entry.id, f"{clause}. {entry.fix}")
    return None
