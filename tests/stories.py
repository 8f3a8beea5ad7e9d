"""Stories that ``history_dsl.py`` can write and ``rogues/acting.py`` can perform; a test compares the two histories."""

from __future__ import annotations

from typing import Any

from badbatch.harness.faults.hang import Hang
from badbatch.harness.faults.nan import Nan

STORIES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("0-3 4-7 8-11 end", {}),
    ("0-3 4-7 8-11 end epoch 0-3 4-7 8-11 end", {}),
    ("len3 0-3 4-7 8-11 end len3", {}),
    ("0-3 4,6,7 [] 8-11 end", {}),
    ("0-3 4~,5 8-11 end", {}),
    ("0-3 4,5?,6,7 8-11 end", {}),
    ("0-3 ?,? end", {}),
    ("0-3 unreadable end", {}),
    ("ask read0-3 0-3 ask read4 fault5 raise ask read8-11 8-11 end", {}),
    ("ask read0-3 0-3 ask read4 fault5 skip5 read6-7 4,6,7 ask skip? end skipped2", {}),
    ("0-3 end skipped:5,9 epoch 0-3 end skipped:5", {}),
    ("0-3 4-7 end skipped0", {}),
    ("ask w0:read0-3 0-3 ask w1:read4 w1:fault5 raise:OSError:sample_5_cannot_be_read ask w0:read8-11 8-11 end", {"workers": 2}),
    ("ask w0:fault5 0-3 end", {"workers": 1, "plan": {5: Nan()}}),
    ("0-3 raise:ValueError:cannot_collate end", {}),
    ("0-3 raise:Own:an_error_of_the_library 4-7 end", {}),
    ("raise@factory:TypeError:no_such_option", {}),
    ("raise@iter:RuntimeError:cannot_start", {}),
    ("0-3 end raise@iter:RuntimeError:used_up", {"epochs": 2}),
    ("0-3 end raise@close:RuntimeError:already_closed", {}),
    ("0-3 end raise@report:RuntimeError:no_count", {}),
    ("raise@length:RuntimeError:no_length 0-3 end raise@length:RuntimeError:no_length", {}),
    ("0-3 raise@outside:RuntimeError:a_worker_died 4-7 end", {"step_s": 0.01}),
    ("0-3 4-7 break", {"break_after": 2}),
    ("0-3 break epoch 0-3 4-7 8-11 end", {"break_after": 1}),
    ("raise:ValueError:a raise:ValueError:a raise:ValueError:a capped:errors", {}),
    ("0-1 0-1 0-1 0-1 0-1 0-1 0-1 0-1 0-1 capped", {"samples": 2, "batch": 2}),
    ("0-3 end closing closed", {}),
    ("0-3 end rebuilt 0-3 4-7 end left:thread:prefetcher", {}),
    ("0-3 end rebuilt 0-3 end left:file:tmp123", {}),
    ("0-3 end rebuilt 0-3 end kept:thread:monitor", {}),
    ("r0: 0,2 4,6 end r1: 1,3 5,7 end", {"ranks": 2, "samples": 8, "batch": 2}),
    ("r0: 0,2 4,6 waited end r1: 1,3 end", {"ranks": 2, "samples": 8, "batch": 2, "lockstep": True}),
    ("0-3 ask died:-11", {}),
    ("0-3 ask died:3", {}),
    ("0-3 ask stalled", {"deadline_s": 20.0}),
    ("0-3 ask w0:fault5 ask stalled", {"deadline_s": 20.0, "workers": 1, "plan": {5: Hang()}}),
    ("0-3 ask deadline", {"deadline_s": 8.0}),
    ("0-3 end closing stalled", {"deadline_s": 20.0}),
)

NOT_ACTED = {
    "begin": "a read that stops before its fault takes hold: no data set of the tests does that",
    "interrupted": "it comes from outside of the trial: see test_supervisor_interrupts.py",
    "~": "without an id it is a picture that shows no sample: on disk alone, see test_stored_batch.py",
    "%": "samples of several fields are on disk alone: see test_stored_batch.py",
    "^": "the same",
    "saved": "states are saved and loaded by real loaders: see test_phases.py",
    "resumed": "the same",
}
"""Words of the language that no story here can contain, each with the reason."""
