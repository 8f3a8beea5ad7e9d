"""Each check on histories that are written as stories: some that keep its promise, some that break it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from badbatch.conformance.checks import of_one_trial
from badbatch.conformance.engine.judge import judge
from badbatch.conformance.judging.verdict import Mark
from badbatch.harness.corpus.damage.lines.cut_line import CutLine
from badbatch.harness.corpus.stored import Stored
from badbatch.harness.faults.empty_tensor import EmptyTensor
from badbatch.harness.faults.hang import Hang
from badbatch.harness.faults.nan import Nan
from badbatch.harness.faults.none_sample import NoneSample
from badbatch.harness.faults.raises import Raise
from badbatch.harness.faults.segfault import Segfault
from badbatch.harness.faults.slow import Slow
from badbatch.harness.faults.stop_iteration import RaiseStopIteration
from badbatch.harness.faults.transient import Transient
from badbatch.harness.faults.two_argument_error import RaiseTwoArgumentError
from badbatch.harness.trial.phases import plain, set_back
from badbatch.harness.trial.spec import Topology
from history_dsl import MARKS, RAISES, REFILLS, RESUMED, SKIPS, STOPS, SUBSTITUTES, broken, history_of

_REFUSES = dataclasses.replace(RAISES, resume="refuse")
_MOVED = (RESUMED[0], dataclasses.replace(RESUMED[1], topology=Topology(3)))
_EXACT = dataclasses.replace(RAISES, tail="exact")
_DROPS = dataclasses.replace(RAISES, tail="drop")
_STOPS_INFERRED = dataclasses.replace(STOPS, inferred=("after_error",))
_DRAWS = dataclasses.replace(RAISES, replacement=True)
_DRAWS_AND_SKIPS = dataclasses.replace(SKIPS, replacement=True)
_PER_WORKER = dataclasses.replace(RAISES, tail="exact", short_batches="per-worker")
_PER_WORKER_INFERRED = dataclasses.replace(_PER_WORKER, inferred=("short_batches",))
_SKIPS_PER_WORKER = dataclasses.replace(SKIPS, short_batches="per-worker")
_PADS_BATCHES = dataclasses.replace(RAISES, tail="pad-batch")
_TIMED: dict[str, Any] = {"timeout_s": 1.0, "workers": 1}
_HUNG: dict[str, Any] = {**_TIMED, "plan": {5: Hang()}}
_DEAD: dict[str, Any] = {"workers": 2, "plan": {5: Segfault()}}
_LINES: dict[str, Any] = {"source": "jsonl", "stored": Stored("{}", files=(("a", 0, 6), ("b", 6, 6)))}
_BAD_LINE: dict[str, Any] = {
    "source": "jsonl",
    "plan": {7: CutLine()},
    "stored": dataclasses.replace(_LINES["stored"], states=((7, "damaged"),)),
    "contract": SKIPS,
}
_BAD_ROW: dict[str, Any] = {
    **_BAD_LINE,
    "source": "parquet",
    "stored": dataclasses.replace(_BAD_LINE["stored"], groups=(0, 3, 6, 9)),
    "batch": 2,
}
_BAD_PICTURE: dict[str, Any] = {
    **_BAD_LINE,
    "source": "imagefolder",
    "stored": dataclasses.replace(_BAD_LINE["stored"], files=tuple((f"{sample}.jpg", sample, 1) for sample in range(12))),
}
_THRICE = dataclasses.replace(RAISES, attempts=3)
_BUDGET = dataclasses.replace(SKIPS, skip_budget=True)
_IN_A_ROW: dict[str, Any] = {"plan": {s: Raise() for s in (4, 5, 6)}, "contract": _BUDGET, "max_consecutive_skips": 2}
_APART: dict[str, Any] = {**_IN_A_ROW, "plan": {s: Raise() for s in (4, 5, 8)}}
_SET_BACK: dict[str, Any] = {"shuffle": True, "phases": set_back(), "set_epoch": True}
_A, _B, _C = "7,3,9,1 11,0,2,8 5,4,10,6 end", "2,8,0,11 4,6,5,10 9,1,3,7 end", "1,0,2,3 4,5,6,7 8,9,11,10 end"
_IN_ORDER = "0-3 4-7 8-11 end"
_FILES_GIVEN_UP = dataclasses.replace(SKIPS, blast_radius="file")
_BATCHES_GIVEN_UP = dataclasses.replace(SKIPS, blast_radius="batch")

_LOST_TOGETHER: dict[str, Any] = {
    **_BAD_LINE,
    "plan": {6: CutLine(), 7: CutLine(), 9: CutLine(newline=False)},
    "stored": dataclasses.replace(_LINES["stored"], states=((6, "damaged"), (7, "damaged"), (9, "damaged"))),
}
"""One fault that cost two samples, and another."""

KEPT: list[tuple[str, str, dict[str, Any]]] = [
    ("no-duplicates", "0-3 4-7 8-11 end", {}),
    ("no-duplicates", "r0: 0,2,4 end r1: 1,3,0 end", {"ranks": 2, "samples": 5, "batch": 3}),
    ("no-duplicates", "0-3 fault5 4,6,6,7 skip5 8-11 end", {"contract": SUBSTITUTES}),
    ("no-lost-batches", "0-3 4-7 8-11 end", {}),
    ("no-lost-batches", "0,0,0,3 4,5,5,1 8-11 end", {"contract": _DRAWS}),
    ("no-lost-batches", "0-3 fault5 raise 0-3 end", {"contract": _DRAWS}),
    ("no-lost-batches", "0-3 fault5 fault5 4,4 skip5 skip5 0-3 end", {"contract": _DRAWS_AND_SKIPS}),
    ("exact-skip-count", "0-3 fault5 fault5 4,4 skip5 skip5 0-3 end", {"contract": _DRAWS_AND_SKIPS}),
    ("contract-kept", "0-3 fault5 raise fault5 raise end", {"contract": _DRAWS}),
    ("contract-kept", "0,0,0,3 4,6,6,1 8-11 end", {"contract": _DRAWS, "plan": {5: Hang()}}),
    ("no-duplicates", "0-3 4-7 8,9,0,1 end", {"samples": 10, "contract": _PADS_BATCHES}),
    ("full-batches", "0-3 4-7 8,9,0,1 end", {"samples": 10, "contract": _PADS_BATCHES}),
    ("no-lost-batches", "0-3 read4 fault5 read6-7 raise 8-11 end", {}),
    ("no-lost-batches", "0-3 fault5 4,6,7 skip5 8-11 end", {"contract": SKIPS}),
    ("no-lost-batches", "0-3 fault5 raise end", {"contract": STOPS}),
    ("no-lost-batches", "read0-3 0-3 read4 fault5 raise end", {"contract": STOPS}),
    ("no-lost-batches", "read0,2 0,2 read4,6 4,6 end r1:read1,3 r1:1,3 r1:fault5 r1:raise r1:end",
     {"samples": 8, "batch": 2, "ranks": 2, "contract": STOPS}),
    ("no-lost-batches", "0-3 fault5 raise 8-11 end", {"contract": _STOPS_INFERRED}),
    ("contract-kept", "0-3 fault5 raise 8-11 end", {"contract": _STOPS_INFERRED}),
    # The error of a loader that opens its files when it is built.
    ("no-lost-batches", "read0-4 fault5 raise@factory", {"contract": STOPS}),
    ("contract-kept", "read0-4 fault5 raise@factory", {"contract": STOPS}),
    ("no-lost-batches", "read0-4 fault5 raise@iter", {"contract": STOPS}),
    ("error-names-sample", "fault5 raise@factory", {"contract": STOPS}),
    ("error-kept", "fault5 raise@factory", {"contract": STOPS}),
    ("fresh-epoch", "fault5 raise@factory", {"contract": STOPS, "epochs": 2, "plan": {5: Transient(failures=1)}}),
    ("no-lost-batches", "r0:read0,2 0,2 read4,6 4,6 end r1:read1,3 r1:fault5 r1:raise@factory",
     {"samples": 8, "batch": 2, "ranks": 2, "contract": STOPS}),
    ("finite-epoch", "0-3 fault5 raise raise raise raise raise capped:errors", {"contract": STOPS}),
    ("exact-skip-count", "0-3 fault4 raise fault8 8,0,10,11 skip8 end",
     {"contract": SUBSTITUTES, "plan": {sample: Raise() for sample in range(4, 9)}}),
    ("no-lost-batches", "0-3 4-7 end", {"samples": 10, "drop_last": True}),
    ("no-lost-batches", "r0: 0,2 end r1: 1,3 end", {"ranks": 2, "samples": 5, "batch": 2, "contract": _DROPS}),
    ("no-lost-batches", "0-3 fault5 4-7 8-11 end", {"plan": {5: Transient(failures=1)}}),
    ("finite-epoch", "0-3 4-7 8-11 end", {}),
    ("finite-epoch", "raise raise raise raise raise capped:errors", {"contract": STOPS}),
    ("finite-epoch", "0-3 break epoch 0-3 4-7 8-11 end", {"break_after": 1}),
    ("finite-epoch", "0-3 ask died:-9", {}),  # caused by the machine
    ("finite-epoch", "0-3 ask died:-15", {}),
    ("finite-epoch", "0-3 w0:fault5 ask died:-11", _DEAD),  # checked by crash-surfaces
    ("exact-skip-count", "0-3 fault5 4,6,7 skip5 8-11 end", {"contract": SKIPS}),
    ("exact-skip-count", "0-3 fault5 4,6,7 8-11 end skipped:5", {"contract": SKIPS}),
    ("exact-skip-count", "0-3 fault5 4,6,7 8-11 end skipped1", {"contract": SKIPS}),
    ("exact-skip-count", "fault5 0-3 4,6,7 8-11 end skipped:5 epoch fault5 0-3 4,6,7 8-11 end skipped:5,5", {"contract": SKIPS}),
    ("exact-skip-count", "0-3 4-7 8-11 end skipped0", {"contract": SKIPS}),
    ("exact-skip-count", "0-3 fault5 4,6,6,7 skip5 8-11 end", {"contract": SUBSTITUTES}),
    ("correct-timeout", "0-3 w0:fault5 ask +1.1s raise:RuntimeError:timed_out 8-11 end", _HUNG),
    ("correct-timeout", "0-3 w0:fault5 ask +1.1s 4,6,7 skip5 8-11 end", {**_HUNG, "contract": SKIPS}),
    ("correct-timeout", "0-3 w0:fault5 ask +0.5s 4-7 8-11 end", {**_TIMED, "plan": {5: Slow(0.4)}}),
    ("correct-timeout", "0-3 w0:fault5 ask +1.1s raise:RuntimeError:timed_out end closing +9s closed", _HUNG),
    ("crash-surfaces", "0-3 w0:fault5 raise:RuntimeError:worker_died 8-11 end", _DEAD),
    ("crash-surfaces", "0-3 w0:fault5 4,6,7 skip5 8-11 end", {**_DEAD, "contract": SKIPS}),
    ("contract-kept", "0-3 fault5 raise 8-11 end", {}),
    ("contract-kept", "0-3 fault5 raise end", {"contract": STOPS}),
    ("contract-kept", "0-3 fault5 raise raise raise capped:errors", {"contract": STOPS}),
    ("contract-kept", "0-3 fault5 4,6,7 skip5 8-11 end", {"contract": SKIPS}),
    ("contract-kept", "0-3 fault5 4,6,6,7 skip5 8-11 end", {"contract": SUBSTITUTES}),
    ("contract-kept", "0-3 fault5 4,5?,6,7 8-11 end", {"contract": MARKS}),
    ("contract-kept", "0-3 fault5 4,?,6,7 8-11 end", {"contract": MARKS}),
    ("content-intact", "0-3 4-7 8-11 end", {}),
    ("content-intact", "0-3 fault5 4,5?,6,7 8-11 end", {"contract": MARKS}),
    ("oddities-kept", "0-3 fault5 4-7 8-11 end", {"plan": {5: Nan()}}),
    ("error-names-sample", "0-3 fault5 raise:OSError:sample_5_is_bad 8-11 end", {}),
    ("error-names-sample", "0-3 w0:fault5 raise:RuntimeError:DataLoader_worker_(pid_101)_died 8-11 end", _DEAD),
    ("error-names-sample", "0-3 fault5 raise:RuntimeError:worker_1,_sample_5 8-11 end", {}),
    # The source wrote nothing, and the error never left the process.
    ("error-names-sample", "0-3 fault5 raise:RuntimeError:generator_raised_StopIteration end",
     {"plan": {5: RaiseStopIteration()}, "contract": STOPS}),
    ("error-names-sample", "0-3 4-6 raise:ValueError:b:_invalid_JSON 8-11 end", {**_BAD_LINE, "contract": RAISES}),
    ("error-names-sample", "0-3 4-6 raise:ValueError:key_00000007 8-11 end", {**_BAD_LINE, "contract": RAISES}),
    ("error-names-sample", "0-3 raise:OSError:cannot_open_/data/7.jpg 8-11 end", {**_BAD_PICTURE, "contract": RAISES}),
    ("error-names-sample", "0-3 w1:fault7 raise:OSError:cannot_open_/data/7.jpg 8-11 end",
     {**_BAD_PICTURE, "contract": RAISES, "workers": 2}),
    ("error-kept", "0-3 fault5 raise:OSError:Caught_OSError_in_worker_0:_sample_5_cannot_be_read 8-11 end", {}),
    ("error-kept", "0-3 fault5 raise:FileNotFoundError:sample_5_cannot_be_read 8-11 end", {}),
    ("full-batches", "0-3 4-7 8,9 end", {"samples": 10}),
    ("full-batches", "0-3 fault5 4,6,7 skip5 8-11 end", {"contract": SKIPS}),
    ("full-batches", "0-3 fault5 4,6,7,8 skip5 9-11 end", {"contract": REFILLS}),
    ("full-batches", "0-3 4-7 end", {"samples": 10, "drop_last": True}),
    ("full-batches", "w0:read0,2,4,6,8,10 w1:read1,3,5,7,9,11 0,2,4,6 1,3,5,7 8,10 9,11 end",
     {"workers": 2, "contract": _PER_WORKER}),
    ("full-batches", "0,2,4,6 1,3,5,7 8,10 9,11 end", {"workers": 2, "contract": _PER_WORKER}),
    ("full-batches", "0,2,4,6 1,3,5,7 8,10 9 fault11 skip11 end", {"workers": 2, "contract": _SKIPS_PER_WORKER}),
    ("full-batches", "0,2,4,6 1,3,7 8,10 9,11 fault5 skip5 end", {"workers": 2, "contract": _SKIPS_PER_WORKER}),
    ("full-batches", "0,2,4,6 1,3,5,7 8,10 9,11 end", {"workers": 2, "contract": _PER_WORKER_INFERRED, "shuffle": True}),
    ("full-batches", "0,2,4,6 fault5 raise 8,10 7,9,11 end", {"workers": 2, "contract": _PER_WORKER_INFERRED}),
    ("no-lost-batches", "0,2,4,6 1,3,5,7 end", {"workers": 2, "drop_last": True, "contract": _PER_WORKER}),
    ("honest-length", "len3 0,2,4,6 1,3,5,7 8,10 9,11 end len3", {"workers": 2, "contract": _PER_WORKER}),
    ("honest-length", "len4 0,2,4,6 1,3,5,7 8,10 9,11 end len4", {"workers": 2, "contract": _PER_WORKER}),
    ("honest-length", "len3 0,2,4,6 1,3,5,7 end len3", {"workers": 2, "drop_last": True, "contract": _PER_WORKER}),
    ("honest-length", "len3 0-3 4-7 8-11 end len3", {}),
    ("honest-length", "0-3 4-7 8-11 end", {}),
    ("fresh-epoch", "0-3 4-7 8-11 end epoch 0-3 4-7 8-11 end", {}),
    ("fresh-epoch", "0-3 break epoch 0-3 4-7 8-11 end", {"break_after": 1}),
    ("fresh-epoch", "0-3 fault5 raise 8-11 end epoch 0-3 4-7 8-11 end", {"plan": {5: Transient(failures=1)}}),
    ("declared-order", _IN_ORDER, {}),
    ("declared-order", "r0: 0,2 4,6 8 end r1: 1,3 5,7 0 end", {"ranks": 2, "samples": 9, "batch": 2}),  # padding begins again
    ("declared-order", "r0: 0,1 2,3 end r1: 4,5 6,7 end r2: 8,9 0,1 end", {"ranks": 3, "samples": 10, "batch": 2}),
    ("declared-order", "0-3 0-3 4-7 8-11 end", {}),  # what comes twice is another check's
    ("declared-order", "0,2,4,6 1,3,5,7 8,10 9,11 end", {"workers": 2, "contract": _PER_WORKER}),
    ("declared-order", "0,2,4,6 1,3,5,7 8,10 9,11 end", {"workers": 2, "source": "sharded_stream"}),  # the source splits itself
    ("declared-order", "0,2,4,6 1,3,5,7 8,10 9,11 end",
     {"workers": 2, "source": "stream", "contract": dataclasses.replace(RAISES, unshuffled="per-worker")}),
    ("declared-order", "6-11 0-5 end", {**_LINES, "batch": 6, "stored": Stored("{}", files=(("b", 0, 6), ("a", 6, 6))),
     "contract": dataclasses.replace(RAISES, unshuffled="source")}),  # files come by name
    ("declared-order", "8-11 4-7 ask stalled", {}),  # an epoch that was cut is not compared
    ("epochs-differ", f"{_A} epoch {_B} epoch {_A}", _SET_BACK),
    ("epochs-differ", f"{_A} epoch {_B} epoch {_C}", {**_SET_BACK, "set_epoch": False}),
    ("epochs-differ", f"{_A} epoch {_B} epoch {_C}", {**_SET_BACK, "contract": dataclasses.replace(RAISES, order="free")}),
    ("epochs-differ", "0-3 end epoch 0-3 end epoch 0-3 end", {**_SET_BACK, "samples": 4}),  # too few to tell an order from chance
    ("epochs-differ", f"{_A} epoch {_A} epoch {_A}".replace("end", "raise:OSError:no_disk end"), _SET_BACK),
    ("epochs-differ", f"{_A} epoch {_A[:-4]} ask stalled", _SET_BACK),  # an epoch that was cut is not compared
    ("resume-exact", "0-3 saved resumed 4-7 8-11 end epoch 0-3 4-7 8-11 end", {"phases": RESUMED}),
    ("resume-exact", "0-3 saved resumed raise@load:ValueError:another_version", {"phases": RESUMED, "contract": _REFUSES}),
    ("resume-exact", "0-3 saved resumed raise@load:ValueError:another_number_of_workers",
     {"phases": (RESUMED[0], dataclasses.replace(RESUMED[1], topology=Topology(3)))}),
    # It looks at the state of another topology late.
    *((check, f"0-3 saved resumed raise@{where}:ValueError:another_number_of_workers", {"phases": _MOVED})
      for check in ("resume-exact", "contract-kept") for where in ("load", "iter")),
    *((check, "0-3 saved resumed raise:ValueError:another_number_of_workers end", {"phases": _MOVED})
      for check in ("resume-exact", "contract-kept")),
    ("resume-exact", "0-3 saved resumed raise@iter:ValueError:another_version", {"phases": RESUMED, "contract": _REFUSES}),
    ("ranks-in-step", "r0: 0,2 4,6 end r1: 1,3 5,7 end", {"ranks": 2, "samples": 8, "batch": 2}),
    ("ranks-in-step", "r0: 0,2 4,6 end r1: 1,3 r1:fault5 raise end", {"ranks": 2, "samples": 8, "batch": 2}),
    ("no-leftovers", "0-3 4-7 8-11 end closing closed", {}),
    # A deadline that is reached before the time is over proves nothing.
    ("no-leftovers", "0-3 4-7 8-11 end closing +5s deadline", {"deadline_s": 12.0}),
    ("correct-timeout", "0-3 w0:fault5 ask +1.1s raise:RuntimeError:timed_out end closing +8s deadline", _HUNG),
    ("correct-timeout", "0-3 w0:fault5 ask +1.5s deadline", _HUNG),
    ("crash-surfaces", "0-3 w0:fault5 ask +8s deadline", _DEAD),
    ("finite-epoch", "0-3 ask +3s deadline", {}),
    ("loss-factor", "0-3 4,5,6,8 9-11 end", _BAD_LINE),
    ("loss-factor", "0-3 raise 8-11 end", {**_BAD_LINE, "contract": RAISES}),
    ("loss-factor", "0-3 4,5,6 end", {**_BAD_LINE, "contract": _FILES_GIVEN_UP}),
    ("loss-factor", "0-3 4,5,8,9 10,11 end", {**_BAD_LINE, "contract": _BATCHES_GIVEN_UP}),
    ("loss-factor", "0-3 8-11 end", {**_BAD_LINE, "contract": _FILES_GIVEN_UP}),  # 4 and 5 are next to nothing damaged
    ("loss-factor", "read0-11 4-6,0-2 8-10 end", _BAD_PICTURE),  # 3 and 11 were read far from the damaged one
    ("fields-complete", "0-3 4-7 8-11 end", _LINES),
    ("fields-complete", "0-3 4,5,6,7% 8-11 end", _BAD_LINE),
    ("fields-complete", "0-3^ 4-7^ 8-11^ end", _LINES),
    ("skip-budget", "0-3 fault4 skip4 fault5 skip5 fault6 raise:RuntimeError:3_in_a_row end", _IN_A_ROW),
    ("skip-budget", "0-3 fault4 skip4 fault5 skip5 6-7 fault8 skip8 9-11 end", _APART),
    ("skip-budget", "w0: read0-3 fault4 skip4 w1: fault5 skip5 r0: 0-3 6-7 fault6 skip6 8-11 end", {**_IN_A_ROW, "workers": 2}),
    ("bounded-reads", "read0-3 0-3 read4 fault5 raise 8-11 end", {}),
    ("bounded-reads", "read0-3 0-3 fault5 fault5 fault5 raise 8-11 end", {"contract": _THRICE}),
    ("bounded-reads", "w0: read0-11 w1: read0-11 r0: 0-3 4-7 8-11 end", {"source": "stream", "workers": 2}),
]

BROKEN: list[tuple[str, str, dict[str, Any]]] = [
    ("no-duplicates", "0-3 4-7 4-7 8-11 end", {}),
    ("no-duplicates", "r0: 0,2,4 end r1: 1,3,4 end", {"ranks": 2, "samples": 5, "batch": 3, "contract": _EXACT}),
    ("no-duplicates", "0-3 fault5 4,6,6,7 8-11 end", {"contract": SKIPS}),
    ("no-duplicates", "0-3 0-3 stalled", {}),
    ("no-lost-batches", "0-3 8-11 end", {}),
    ("no-lost-batches", "0,0,0,3 8-11 end", {"contract": _DRAWS}),
    ("no-lost-batches", "0,0,0,3 8-11 8-11 8-11 end", {"contract": _DRAWS}),
    ("no-lost-batches", "0-3 fault5 4 skip5 0-3 end", {"contract": _DRAWS_AND_SKIPS}),
    ("exact-skip-count", "0-3 fault5 4,4,4 0-3 end", {"contract": _DRAWS_AND_SKIPS}),
    ("contract-kept", "0-3 fault5 4,6,6 0-3 end", {"contract": _DRAWS}),
    ("content-intact", "0,0,0~,3 4-7 8-11 end", {"contract": _DRAWS}),
    ("content-intact", "0,0,0,3 4-6,12 8-11 end", {"contract": _DRAWS}),
    ("fresh-epoch", "0,0,0,3 4-7 8-11 end epoch 0-3 end", {"contract": _DRAWS}),
    ("no-duplicates", "0-3 4-7 8,9,0,1 2-5 end", {"samples": 10, "contract": _PADS_BATCHES}),
    ("full-batches", "0-3 4-7 8,9 end", {"samples": 10, "contract": _PADS_BATCHES}),
    ("no-lost-batches", "0-3 fault5 raise end", {}),
    ("no-lost-batches", "0-3 fault5 4,6 skip5 8-11 end", {"contract": SKIPS}),
    ("no-lost-batches", "0-3 fault5 4,6 skip5,7 8-11 end", {"contract": SKIPS}),
    ("no-lost-batches", "read0-4 fault5 raise end", {"contract": STOPS}),
    ("no-lost-batches", "read0-7 0-3 fault8 raise end", {"contract": STOPS}),
    ("no-lost-batches", "read0,2 0,2 end r1:read1,3 r1:1,3 r1:fault5 r1:raise r1:end",
     {"samples": 8, "batch": 2, "ranks": 2, "contract": STOPS}),
    ("no-lost-batches", "read0,2 0,2 read4,6 end r1:read1,3 r1:1,3 r1:fault5 r1:raise r1:end",
     {"samples": 8, "batch": 2, "ranks": 2, "contract": dataclasses.replace(STOPS, uneven_ranks=True)}),
    ("no-lost-batches", "0-3 fault5 raise 8,9 end", {"contract": _STOPS_INFERRED}),
    ("finite-epoch", "0-3 " + "fault5 raise " * 5 + "capped:errors", {"contract": STOPS}),
    ("finite-epoch", "0-3 " + "fault5 raise " * 5 + "capped:errors", {"contract": _STOPS_INFERRED}),
    ("no-lost-batches", "0-3 end", {"samples": 10, "drop_last": True}),
    ("no-lost-batches", "0-3 fault5 4,6,7 8-11 end", {"plan": {5: Transient(failures=1)}}),
    ("no-lost-batches", "r0: 0,2 end r1: 1,3 end", {"ranks": 2, "samples": 5, "batch": 2}),
    ("no-lost-batches", "read0-4 fault5 raise@factory", {}),
    ("no-lost-batches", "read0-4 fault5 raise@iter", {}),
    ("contract-kept", "read0-4 fault5 raise@factory", {"contract": SKIPS}),
    ("no-lost-batches", "read0-4 fault4-11 raise@factory",
     {"contract": SKIPS, "plan": {sample: Raise() for sample in range(4, 12)}}),
    ("error-names-sample", "fault5 raise@factory:OSError:a_read_failed", {"contract": STOPS}),
    ("error-kept", "fault5 raise@factory:ValueError:sample_5_cannot_be_read", {"contract": STOPS}),
    ("no-lost-batches", "r0:read0,2 0,2 read4,6 end r1:read1,3 r1:fault5 r1:raise@factory",
     {"samples": 8, "batch": 2, "ranks": 2, "contract": STOPS}),
    ("finite-epoch", "0-3 ask stalled", {}),
    ("finite-epoch", "0-3 ask endless", {}),
    ("finite-epoch", "0-3 ask +30s deadline", {}),
    ("finite-epoch", "0-3 ask died:-11", {}),
    ("finite-epoch", "0-3 ask died:0", {}),
    ("finite-epoch", "0-3 fault5 died:3", {}),
    ("finite-epoch", "r0: 0,2 end r1: 1,3 ask died:-6", {"ranks": 2, "samples": 4, "batch": 2}),
    ("finite-epoch", "0-3 fault5 " + "raise " * 9 + "capped:errors", {}),
    ("finite-epoch", "0-3 " * 12 + "end", {}),
    ("finite-epoch", "r0: 0,2 end r1: 1,3 ask stalled", {"ranks": 2, "samples": 4, "batch": 2}),
    ("exact-skip-count", "0-3 fault5 4,6,7 8-11 end", {"contract": SKIPS}),
    ("exact-skip-count", "0-3 fault5 4,6,7 8-11 end skipped0", {"contract": SKIPS}),
    ("exact-skip-count", "0-3 fault5 4,6,7 8-11 end skipped:6", {"contract": SKIPS}),
    ("exact-skip-count", "0-3 fault5 4,6,7 8-11 end skipped3", {"contract": SKIPS}),
    ("exact-skip-count", "0-3 fault5 4,6,7 skip5,99 8-11 end", {"contract": SKIPS}),
    ("exact-skip-count", "0-3 fault5 4,6,6,7 8-11 end", {"contract": SUBSTITUTES}),
    ("exact-skip-count", "0-3 4-7 8-11 end skipped1", {"contract": SKIPS}),
    ("correct-timeout", "0-3 w0:fault5 ask +0.1s raise:RuntimeError:timed_out 8-11 end", _HUNG),
    ("correct-timeout", "0-3 w0:fault5 ask +5s raise:RuntimeError:timed_out 8-11 end", _HUNG),
    ("correct-timeout", "0-3 w0:fault5 ask +20s stalled", _HUNG),
    ("correct-timeout", "0-3 w0:fault5 ask endless", _HUNG),
    ("correct-timeout", "0-3 w0:fault5 end", _HUNG),
    ("correct-timeout", "0-3 w0:fault5 ask +5s 4,6,7 skip5 8-11 end", {**_HUNG, "contract": SKIPS}),
    ("correct-timeout", "0-3 w0:fault5 ask +1s raise:RuntimeError:timed_out 4-7 8-11 end", {**_TIMED, "plan": {5: Slow(0.4)}}),
    ("correct-timeout", "0-3 w0:fault5 ask +1.1s raise:RuntimeError:timed_out end closing +11s closed", _HUNG),
    ("correct-timeout", "0-3 w0:fault5 ask +1.1s raise:RuntimeError:timed_out end closing +20s stalled", _HUNG),
    ("correct-timeout", "0-3 w0:fault5 ask +1.1s raise:RuntimeError:timed_out end closing endless", _HUNG),
    ("crash-surfaces", "0-3 w0:fault5 8-11 end", _DEAD),
    ("crash-surfaces", "0-3 w0:fault5 ask +20s stalled", _DEAD),
    ("crash-surfaces", "0-3 w0:fault5 ask endless", _DEAD),
    ("crash-surfaces", "0-3 w0:fault5 ask +12s raise:RuntimeError:worker_died 8-11 end", _DEAD),
    ("crash-surfaces", "0-3 w0:fault5 ask died:-11", _DEAD),
    ("contract-kept", "0-3 fault5 4,6,7 8-11 end", {}),
    ("contract-kept", "0-3 fault5 raise 8-11 end", {"contract": STOPS}),
    ("contract-kept", "0-3 fault5 raise raise 8-11 end", {}),
    ("contract-kept", "0-3 fault5 raise 8-11 end", {"contract": SKIPS}),
    ("contract-kept", "0-3 fault5 4,5?,6,7 8-11 end", {"contract": SKIPS}),
    ("contract-kept", "0-3 fault5 4,?,6,7 8-11 end", {"contract": SKIPS}),
    ("contract-kept", "0-3 fault5 4,6,7 8-11 end", {"contract": SUBSTITUTES}),
    ("contract-kept", "0-3 fault5 4,6,7 8-11 end", {"contract": MARKS}),
    ("contract-kept", "0-3 raise 4-7 8-11 end", {}),
    ("contract-kept", "raise@factory:TypeError:no_such_option", {}),
    ("contract-kept", "0-3 4-7 8-11 end raise@close:RuntimeError:already_closed", {}),
    ("content-intact", "0-3 4,5~,6,7 8-11 end", {}),
    ("content-intact", "0-3 fault5 4-7 8-11 end", {"plan": {5: NoneSample()}}),
    ("content-intact", "0-3 4-7 8-12 end", {}),
    ("content-intact", "0-3 unreadable 8-11 end", {}),
    ("oddities-kept", "0-3 fault5 4,6,7 8-11 end", {"plan": {5: Nan()}}),
    ("oddities-kept", "0-3 fault5 4,6,7 skip5 8-11 end", {"plan": {5: EmptyTensor()}, "contract": SKIPS}),
    ("oddities-kept", "0-3 fault5 4,5?,6,7 8-11 end", {"plan": {5: EmptyTensor()}, "contract": MARKS}),
    ("oddities-kept", "0-3 fault5 4-7 skip5 8-11 end", {"plan": {5: EmptyTensor()}, "contract": SKIPS}),
    ("error-names-sample", "0-3 fault5 raise:OSError:a_read_failed 8-11 end", {}),
    ("error-names-sample", "0-3 w0:fault5 raise:RuntimeError:generator_raised_StopIteration end",
     {"plan": {5: RaiseStopIteration()}, "contract": STOPS, "workers": 1}),
    ("error-names-sample", "0-3 fault5 raise:OSError:sample_51_failed 8-11 end", {}),
    ("error-names-sample", "0-3 fault5 raise:OSError:worker_5_failed 8-11 end", {}),
    ("error-names-sample", "0-3 fault5 raise:OSError:worker_process_5_failed_in_line_5 8-11 end", {}),
    ("error-names-sample", "0-3 w0:fault5 raise:RuntimeError:a_worker_died 8-11 end", _DEAD),
    ("error-names-sample", "0-3 raise:OSError:worker_1_failed 8-11 end", {**_BAD_PICTURE, "contract": RAISES}),
    ("error-names-sample", "0-3 4-6 raise:ValueError:Expecting_value:_line_1_column_7_(char_7) 8-11 end",
     {**_BAD_LINE, "contract": RAISES}),
    ("error-kept", "0-3 fault5 raise:RuntimeError:sample_5_cannot_be_read 8-11 end", {}),
    ("error-kept", "0-3 fault5 raise:OSError:a_read_failed 8-11 end", {}),
    ("error-kept", "0-3 fault5 raise:RuntimeError 8-11 end", {"plan": {5: RaiseTwoArgumentError()}}),
    ("full-batches", "0-3 4,5 6-9 10,11 end", {}),
    ("full-batches", "0-3 [] 4-7 8-11 end", {}),
    ("full-batches", "0-3 4-8 9-11 end", {}),
    ("full-batches", "0-3 fault5 4,6,7 skip5 8-11 end", {"contract": REFILLS}),
    ("full-batches", "0-3 fault5 4 6,7 skip5 8-11 end", {"contract": SKIPS}),
    ("full-batches", "0-3 4-7 8,9 end", {"samples": 10, "drop_last": True}),
    # With workers that batch their own samples: a worker's short batch is not its last, there are too many, without workers.
    ("full-batches", "w0:read0,2,4,6,8,10 w1:read1,3,5,7,9,11 0,2 1,3,5,7 4,6,8,10 9,11 end",
     {"workers": 2, "contract": _PER_WORKER}),
    ("full-batches", "0,2,4,6 1,3,5 7,8 9,10,11 end", {"workers": 2, "contract": _PER_WORKER}),
    ("full-batches", "0-2 3-6 7-10 11 end", {"contract": _PER_WORKER}),
    ("full-batches", "0,2,4,6 1,3,5,7 8,10 end", {"workers": 2, "drop_last": True, "contract": _PER_WORKER}),
    ("full-batches", "0,2,4,6 1,3,5,7 8,10 9,11 end", {"workers": 2, "contract": _PER_WORKER_INFERRED}),
    ("no-lost-batches", "0,2,4,6 end", {"workers": 2, "drop_last": True, "contract": _PER_WORKER}),
    ("no-lost-batches", "0,2,4,6 1,3,5,7 end", {"workers": 2, "drop_last": True, "contract": _PER_WORKER_INFERRED}),
    ("honest-length", "len2 0,2,4,6 1,3,5,7 8,10 9,11 end", {"workers": 2, "contract": _PER_WORKER}),
    ("honest-length", "len4 0,2,4,6 1,3,5,7 end", {"workers": 2, "drop_last": True, "contract": _PER_WORKER}),
    ("honest-length", "len3 0-2 3-6 7-10 11 end", {"contract": _PER_WORKER}),
    ("honest-length", "len4 0-3 4-7 8-11 end", {}),
    ("honest-length", "len3 0-3 4-7 8-11 end len0", {}),
    ("fresh-epoch", "0-3 4-7 8-11 end epoch end", {}),
    ("fresh-epoch", "0-3 4-7 8-11 end raise@iter:RuntimeError:used_up", {"epochs": 2}),
    ("fresh-epoch", "0-3 break epoch 4-7 8-11 end", {"break_after": 1}),
    ("fresh-epoch", "0-3 break epoch 0-3 0-3 4-7 8-11 end", {"break_after": 1}),
    ("declared-order", "8-11 4-7 0-3 end", {"workers": 2}),
    ("declared-order", "0-3 8-11 4-7 end", {}),
    ("declared-order", "0-3 4,6,5,7 8-11 end", {}),
    ("declared-order", f"{_IN_ORDER} epoch 0-3 8-11 4-7 end", {}),
    ("declared-order", "0,2,4,6 1,3,5,7 8,10 9,11 end", {"workers": 2}),
    ("declared-order", "8-11 4-7 0-3 end", {"workers": 2, "contract": _PER_WORKER}),
    ("declared-order", "8-11 4-7 0-3 end", {"workers": 2, "source": "stream"}),
    ("declared-order", "0-5 6-11 end", {**_LINES, "batch": 6, "stored": Stored("{}", files=(("b", 0, 6), ("a", 6, 6))),
     "contract": dataclasses.replace(RAISES, unshuffled="source")}),
    ("epochs-differ", f"{_IN_ORDER} epoch {_B} epoch {_IN_ORDER}", _SET_BACK),
    ("epochs-differ", f"{_IN_ORDER} epoch {_IN_ORDER} epoch {_IN_ORDER}",
     {**_SET_BACK, "source": "stream", "contract": dataclasses.replace(RAISES, shuffles=True)}),
    ("epochs-differ", "r0: 0,2 4,6 8,10 12,14 16 end r1: 1,3 5,7 9,11 13,15 0 end "  # padding begins again with the first
     "r0: epoch 0,2 4,6 8,10 12,14 16 end r1: epoch 1,3 5,7 9,11 13,15 0 end",
     {**_SET_BACK, "samples": 17, "batch": 2, "ranks": 2, "phases": plain(2)}),
    ("epochs-differ", f"{_A} epoch {_A} epoch {_A}", _SET_BACK),
    ("epochs-differ", f"{_A} epoch {_B} epoch {_B}", _SET_BACK),
    ("epochs-differ", f"{_A} epoch {_B} epoch {_C}", _SET_BACK),
    ("epochs-differ", f"{_A} epoch {_B} epoch {_A}", {**_SET_BACK, "set_epoch": False}),
    ("resume-exact", "0-3 saved resumed 0-3 4-7 8-11 end epoch 0-3 4-7 8-11 end", {"phases": RESUMED}),
    ("resume-exact", "0-3 saved resumed 8-11 end epoch 0-3 4-7 8-11 end", {"phases": RESUMED}),
    ("resume-exact", "0-3 saved resumed 4-7 8-11 end epoch 4-7 8-11 end", {"phases": RESUMED}),
    ("resume-exact", "0-3 raise@save:TypeError:no_state resumed", {"phases": RESUMED}),
    ("resume-exact", "0-3 saved resumed raise@load:ValueError:another_version", {"phases": RESUMED}),
    ("resume-exact", "0-3 saved resumed raise@iter:ValueError:another_version", {"phases": RESUMED}),
    # It went on wrongly before it raised.
    ("resume-exact", "0-3 saved resumed 8-11 raise:ValueError:lost end", {"phases": _MOVED}),
    ("ranks-in-step", "r0: 0,2 4,6 end r1: 1,3 end", {"ranks": 2, "samples": 8, "batch": 2}),
    ("ranks-in-step", "r0: 0,2 4,6 waited end r1: 1,3 end", {"ranks": 2, "samples": 8, "batch": 2, "lockstep": True}),
    ("no-leftovers", "0-3 4-7 8-11 end closing closed left:process:a_worker", {}),
    ("no-leftovers", "0-3 4-7 8-11 end closing +20s stalled", {}),
    ("no-leftovers", "0-3 4-7 8-11 end closing endless", {}),
    ("no-leftovers", "0-3 break closing closed left:thread:prefetcher left:file:tmp123", {"break_after": 1}),
    ("loss-factor", "0-3 4,5,6 end", _BAD_LINE),
    ("loss-factor", "0-3 4,5 end", {**_BAD_LINE, "contract": _BATCHES_GIVEN_UP}),
    ("loss-factor", "0-3 4,5 raise end", {**_BAD_LINE, "contract": RAISES}),
    ("loss-factor", "0,1 2,3 4,5 9,10 11 end", _BAD_ROW),
    ("loss-factor", "0-3 4,5,6,9 10,11 end", _BAD_LINE),
    ("loss-factor", "read0-11 0-3 8-11 end", _BAD_PICTURE),
    ("fields-complete", "0-3 4,5%,6,7 8-11 end", _LINES),
    ("fields-complete", "0-3 4,5^,6,7 8-11 end", _LINES),
    ("skip-budget", "0-3 fault4 skip4 fault5 skip5 fault6 raise:RuntimeError:broken end", _IN_A_ROW),
    ("skip-budget", "0-3 fault4 skip4 fault5 skip5 fault6 skip6 7 8-11 end", _IN_A_ROW),
    ("skip-budget", "0-3 fault4 skip4 fault5 raise:RuntimeError:2_in_a_row end", _IN_A_ROW),
    ("skip-budget", "0-3 fault4 skip4 fault5 skip5 6-7 fault8 raise:RuntimeError:3_in_total end", _APART),
    ("bounded-reads", "read0-3 0-3 read4-7 read4-7 4-7 read8-11 8-11 end", {}),
    ("bounded-reads", "read0-3 0-3 fault5 fault5 fault5 fault5 raise 8-11 end", {"contract": _THRICE}),
    ("bounded-reads", "read0-3 0-3 fault5 fault5 raise 8-11 end", {"plan": {5: RaiseTwoArgumentError()}}),
]


def _named(cases: list[tuple[str, str, dict[str, Any]]]) -> list[Any]:
    return [pytest.param(*case, id=f"{case[0]}: {case[1][:60]}") for case in cases]


@pytest.mark.parametrize(("check", "story", "trial"), _named(KEPT))
def test_a_story_that_keeps_the_promise_passes(check: str, story: str, trial: dict[str, Any]) -> None:
    """A check finds nothing in a history that keeps its promise."""
    assert broken(check, history_of(story, **trial)) == []


@pytest.mark.parametrize(("check", "story", "trial"), _named(BROKEN))
def test_a_story_that_breaks_the_promise_fails(check: str, story: str, trial: dict[str, Any]) -> None:
    """A check finds a violation, with words for both sides of it, in a history that breaks its promise."""
    found = broken(check, history_of(story, **trial))
    assert found
    assert all(violation.promised and violation.happened for violation in found)


@pytest.mark.parametrize("stories", [KEPT, BROKEN], ids=["kept", "broken"])
def test_every_check_has_a_story_of_either_kind(stories: list[tuple[str, str, dict[str, Any]]]) -> None:
    """No check is without a story that it passes and one that it fails."""
    assert {check for check, _, _ in stories} == set(of_one_trial())


@pytest.mark.parametrize("check", list(of_one_trial()))
def test_the_stories_of_a_check_exercise_it(check: str) -> None:
    """Each broken story is one to which the suite would apply the check."""
    for name, story, trial in BROKEN:
        if name == check:
            assert of_one_trial()[check].exercised(history_of(story, **trial).spec), story


def test_lost_samples_are_named_with_their_share() -> None:
    """A loss says which samples, and in whose share they were."""
    (violation,) = broken("no-lost-batches", history_of("w0:read0-3 w1:read4-7 0-3 w0:read8-11 8-11 end", workers=2))
    assert violation.lost == (4, 5, 6, 7)
    assert violation.share == "all in worker 1's share"


def test_a_stop_iteration_cannot_be_kept_as_an_error() -> None:
    """A StopIteration may come out as another error, since it cannot leave next() as itself."""
    history = history_of("0-3 fault5 raise:RuntimeError:generator_raised_StopIteration 8-11 end", plan={5: RaiseStopIteration()})
    assert broken("error-kept", history) == []


def test_an_error_where_nothing_is_damaged_explains_what_is_lost_with_it() -> None:
    """The loader's own error is the cause: lost samples and a wrong length follow from it."""
    found = judge(history_of("len3 read0-3 0-3 raise:KeyError:7 end"))
    causes = {verdict.check: verdict.cause for verdict in found if verdict.mark is Mark.FAIL}
    assert causes == {"contract-kept": "", "no-lost-batches": "contract-kept", "honest-length": "contract-kept"}


def test_a_failure_says_the_error_that_the_loader_raised() -> None:
    """The first error is shown with what happened, with its causes, unless what happened already names it."""
    history = history_of("read0-3 0-3 read4 fault5 raise:KeyError:7 raise:KeyError:8 end", samples=16)
    (key, text) = next((key, text) for key, text in history.texts.items() if text["message"] == "7")
    behind = {"causes": [{"type": "builtins.OSError", "message": "sample 5 cannot be read"}]}
    history = dataclasses.replace(history, texts={**history.texts, key: {**text, **behind}})
    errors = {verdict.check: verdict.error for verdict in judge(history) if verdict.mark is Mark.FAIL}
    assert errors["no-lost-batches"] == "KeyError: 7 (caused by OSError: sample 5 cannot be read), and 1 more error"
    (own,) = [v for v in judge(history_of("read0-3 0-3 raise:KeyError:7 end")) if v.check == "contract-kept"]
    assert (own.happened, own.error) == ("the consumer got KeyError: 7", "")


@pytest.mark.parametrize(
    ("check", "story", "trial", "words"),
    [
        ("full-batches", "0-3 4,5 6-9 10,11 end", {}, "1 batch before the last was short"),
        ("full-batches", "0-3 4,5 6,7 8-11 end", {}, "2 batches before the last were short"),
        ("no-lost-batches", "0-3 fault5 4,6 skip5,7 8-11 end", {"contract": SKIPS}, "1 good sample was reported as skipped"),
        ("error-kept", "0-3 fault5 raise:RuntimeError:sample_5_cannot_be_read 8-11 end", {}, "the error is still an OSError"),
        ("exact-skip-count", "0-3 4,5,8,10 11 skip6 end", _LOST_TOGETHER,
         "2 skips reported, at least one for each fault (6-7, 9: 3 samples of 2 faults)"),
    ],
)
def test_words_agree_with_numbers(check: str, story: str, trial: dict[str, Any], words: str) -> None:
    """One thing was, several were; an article fits its noun; a number of skips beside more ids says why they differ."""
    (violation, *_) = broken(check, history_of(story, **trial))
    assert words in f"{violation.promised}; {violation.happened}"


@pytest.mark.parametrize(
    ("trial", "reason"),
    [
        ({"contract": dataclasses.replace(RAISES, shuffles=False)}, "the loader does not shuffle (shuffles=False)"),
        ({"source": "stream"}, "only a data set with an index must be shuffled, unless the loader declares shuffles=True"),
    ],
)
def test_a_loader_that_need_not_shuffle(trial: dict[str, Any], reason: str) -> None:
    """A loader may say that it does not; on a stream it must only if it says that it does."""
    found = judge(history_of(f"{_IN_ORDER} epoch {_IN_ORDER} epoch {_IN_ORDER}", **{**_SET_BACK, **trial}))
    assert [(v.mark, v.reason) for v in found if v.check == "epochs-differ"] == [(Mark.NA, reason)]


@pytest.mark.parametrize(
    ("trial", "reason"),
    [
        ({"contract": dataclasses.replace(RAISES, unshuffled="free")}, 'the loader declares unshuffled="free"'),
        ({"contract": dataclasses.replace(RAISES, unshuffled="free", inferred=("unshuffled",)), **_LINES},
         "without workers the loader has an order of its own"),
        (_LINES, "the order was neither declared nor inferred"),
        ({"contract": _DRAWS}, "samples are drawn with replacement"),
    ],
)  # fmt: skip
def test_an_order_that_is_not_promised(trial: dict[str, Any], reason: str) -> None:
    """Where the contract has no order, the reason says so."""
    found = judge(history_of("8-11 4-7 0-3 end", **trial))
    assert [(v.mark, v.reason) for v in found if v.check == "declared-order"] == [(Mark.NA, reason)]
