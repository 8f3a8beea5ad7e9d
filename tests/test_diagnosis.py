"""Each diagnosis on stories: the pattern that it names, and the nearest pattern that it does not."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from badbatch.conformance import diagnoses
from badbatch.conformance.checks import registry as checks
from badbatch.conformance.checks import relations
from badbatch.conformance.diagnoses.base import Entry, diagnosis, in_order
from badbatch.conformance.diagnoses.diagnosis import diagnose
from badbatch.conformance.judging.accounting import account
from badbatch.conformance.judging.expectation import expect
from badbatch.conformance.judging.verdict import Diagnosis
from badbatch.harness.corpus.base import DiskFault
from badbatch.harness.corpus.damage.lines.cut_line import CutLine
from badbatch.harness.corpus.damage.oddities.gif_format import Gif
from badbatch.harness.corpus.damage.oddities.sixteen_bit import SixteenBit
from badbatch.harness.corpus.damage.pictures.html_page import HtmlPage
from badbatch.harness.corpus.damage.pictures.jpeg_cut_scan import JpegCutScan
from badbatch.harness.corpus.damage.rows.null_integer import NullInteger
from badbatch.harness.corpus.stored import Stored
from badbatch.harness.errors import UserError
from badbatch.harness.faults.empty_tensor import EmptyTensor
from badbatch.harness.faults.hang import Hang
from badbatch.harness.faults.raises import Raise
from badbatch.harness.faults.segfault import Segfault
from badbatch.harness.faults.stop_iteration import RaiseStopIteration
from badbatch.harness.faults.transient import Transient
from badbatch.harness.faults.two_argument_error import RaiseTwoArgumentError
from badbatch.harness.faults.unpicklable_sample import UnpicklableSample
from badbatch.harness.trial.phases import Batches, Phase, Save, set_back
from badbatch.harness.trial.spec import Topology
from fitting import undeclared
from history_dsl import RAISES, RESUMED, SKIPS, STOPS, SUBSTITUTES, broken, diagnosed, history_of

_EXACT = dataclasses.replace(RAISES, tail="exact")
_SKIPS = dataclasses.replace(SKIPS, tail="exact")
_GRID: dict[str, Any] = {"samples": 8, "batch": 2, "workers": 2, "ranks": 2}
_TWICE = (RESUMED[0], Phase(load=0, until=Batches(1), then=Save()), Phase(load=1))
_TWO_RANKS: dict[str, Any] = {"samples": 8, "batch": 2, "ranks": 2}
_PAIR: dict[str, Any] = {"samples": 16, "workers": 2}
_HUNG: dict[str, Any] = {"timeout_s": 1.0, "workers": 2, "plan": {5: Hang()}}
_DEAD: dict[str, Any] = {"samples": 16, "workers": 2, "plan": {5: Segfault()}}
_PICKLES: dict[str, Any] = {"samples": 16, "workers": 2, "plan": {5: UnpicklableSample()}}
_THREAD = "Exception in thread Thread-1 (_read):\nTraceback (most recent call last):\nOSError: sample 5 cannot be read\n"
_FILES = tuple((f"a/{sample}.{'gif' if sample == 7 else 'jpg'}", sample, 1) for sample in range(12))
_GIF: dict[str, Any] = {"source": "imagefolder", "plan": {7: Gif()}, "stored": Stored("{}", ((7, "odd"),), _FILES, nameless=())}
_RECEIVING = (
    'Current thread 0x00007f56c21d2b80 (most recent call first):\n'
    '  File "/lib/python3.11/multiprocessing/connection.py", line 395 in _recv\n'
    '  File "/lib/python3.11/multiprocessing/connection.py", line 430 in _recv_bytes\n'
    '  File "/lib/python3.11/multiprocessing/queues.py", line 122 in get\n'
    '  File "/site-packages/torch/utils/data/dataloader.py", line 725 in __next__\n'
)
_IDLE = (
    'Thread 0x00007f569bfff6c0 (most recent call first):\n'
    '  File "/lib/python3.11/threading.py", line 327 in wait\n'
    '  File "/site-packages/torch/utils/data/dataloader.py", line 725 in __next__\n'
)
_A, _B, _IN_ORDER = "7,3,9,1 11,0,2,8 5,4,10,6 end", "2,8,0,11 4,6,5,10 9,1,3,7 end", "0-3 4-7 8-11 end"
_BUDGET: dict[str, Any] = {
    "plan": {sample: Raise() for sample in (4, 5, 6)},
    "contract": dataclasses.replace(SKIPS, skip_budget=True),
    "max_consecutive_skips": 2,
}
_FOUR = {sample: Raise() for sample in (4, 5, 6, 7)}
_SET_BACK: dict[str, Any] = {"shuffle": True, "phases": set_back(), "set_epoch": True}
_PERSISTENT: dict[str, Any] = {**_SET_BACK, "topology": Topology(2, persistent=True)}
_FEEDER = '  File "/lib/python3.11/multiprocessing/queues.py", line 244, in _feed\nTypeError: cannot pickle\n'


def _stored(fault: DiskFault, kind: str, groups: tuple[int, ...] = ()) -> dict[str, Any]:
    """Twelve samples in two files, or one file each; a loader that skips and counts reads the damage of the eighth."""
    files = tuple((f"{n}.jpg", n, 1) for n in range(12)) if kind == "imagefolder" else (("a", 0, 6), ("b", 6, 6))
    stored = Stored("{}", ((7, "damaged"),), files, groups)
    return {"source": kind, "plan": {7: fault}, "stored": stored, "contract": SKIPS}


STORIES: list[tuple[str, str, str, dict[str, Any]]] = [
    ("shuffled-differently", "no-duplicates",
     "r0:read5,0,3,6 r1:read6,2,5,7 5,0 3,6 end r1:6,2 r1:5,7 r1:end", {**_TWO_RANKS, "shuffle": True}),
    ("shuffled-differently", "no-lost-batches",
     "w0:read5,0,3 w1:read3,2,6 5,0 3,3 2,6 end", {"samples": 7, "batch": 2, "workers": 2, "shuffle": True}),
    ("not-split-by-worker", "no-duplicates", "w0:read0-3 w1:read0-3 0-3 0-3 end", {"samples": 4, "workers": 2}),
    ("not-split-by-worker", "no-duplicates",
     "r0.w0:read0-3 r0.w1:read0-3 r1.w0:read0-3 r1.w1:read0-3 0-3 0-3 end r1:0-3 r1:0-3 r1:end",
     {"samples": 4, "workers": 2, "ranks": 2}),
    ("not-split-by-rank", "no-duplicates", "r0:read0-7 r1:read0-7 0-3 4-7 end r1:0-3 r1:4-7 r1:end", {**_TWO_RANKS, "batch": 4}),
    ("rank-and-worker-composed-wrongly", "no-duplicates",
     "r0.w0:read0,4 r0.w1:read1,5 r1.w0:read1,5 r1.w1:read2,6 0,4 1,5 end r1:1,5 r1:2,6 r1:end", _GRID),
    ("rank-and-worker-composed-wrongly", "ranks-in-step", "r0.w0:read0-3 r0.w1:read4-7 0,1 4,5 2,3 6,7 end r1:end", _GRID),
    ("drawn-with-replacement", "no-duplicates", "read3,3,0,9 3,3,0,9 read4,1,1,7 4,1,1,7 read8,2,8,5 8,2,8,5 end", {}),
    ("drop-last-per-worker", "no-lost-batches",
     "w0:read0,2,4,6,8,10 w1:read1,3,5,7,9,11 0,2,4,6 1,3,5,7 end", {"workers": 2, "drop_last": True}),
    ("drop-last-per-worker", "no-lost-batches",
     "w0:read0,2,4,6 w1:read1,3,5,7 0,2,4,6 1,3,5,7 end", {"workers": 2, "drop_last": True}),
    ("batched-per-worker", "full-batches",
     "w0:read0,2,4,6,8,10 w1:read1,3,5,7,9,11 0,2,4,6 1,3,5,7 8,10 9,11 end", {"workers": 2}),
    ("state-has-an-effect", "resume-exact", "0-3 saved 8-11 end", {"phases": (RESUMED[0], Phase(same_process=True))}),
    ("state-of-other-ranks", "resume-exact", "r0:0,2 r0:saved r1:1,3 r1:saved r0:resumed 2,3 4,5 6,7 end",
     {**_TWO_RANKS, "phases": (RESUMED[0], Phase(topology=Topology(0), load=0))}),
    ("resume-reads-again", "resume-exact", "0-3 fault5 raise saved resumed fault5 raise@iter", {"phases": RESUMED}),
    ("state-after-a-resume", "resume-exact", "0-3 saved resumed 4-7 saved resumed end", {"phases": _TWICE}),
    ("state-not-used", "resume-exact", "0-3 saved resumed 0-3 4-7 8-11 end epoch 0-3 4-7 8-11 end", {"phases": RESUMED}),
    ("state-counts-what-was-read", "resume-exact", "w0:read0-7 0-3 saved resumed 8-11 end epoch 0-3 4-7 8-11 end", {"phases": RESUMED}),
    ("order-not-restored", "resume-exact", "4,1,7,0 saved resumed 1,2,7,5 3,6,8,9 end", {"phases": RESUMED}),
    ("later-epochs-begin-at-the-state", "resume-exact", "0-3 saved resumed 4-7 8-11 end epoch 4-7 8-11 end", {"phases": RESUMED}),
    ("batched-per-worker", "full-batches",
     "0-3 break epoch w0:read0,2,4,6,8,10 w1:read1,3,5,7,9,11 0,2,4,6 1,3,5,7 8,10 9,11 end", {"workers": 2, "break_after": 1}),
    ("substituted-silently", "exact-skip-count", "0-3 fault5 read6 4,6,6,7 8-11 end", {"contract": SUBSTITUTES}),
    ("substituted-silently", "no-duplicates", "0-3 fault5 read6 4,6,6,7 8-11 end", {"contract": SKIPS}),
    ("batch-unpicklable", "finite-epoch", "0-3 w1:read4 w1:fault5 w1:read6-7 ask stalled", _PICKLES),
    ("batch-unpicklable", "no-lost-batches", "w0:read0-3 0-3 w1:read4-7 8-11 12-15 end", {**_PAIR, "output": _FEEDER}),
    ("batch-lost-with-the-news", "finite-epoch",
     "w0:read0-3 0-3 w1:read4 w1:fault5 w0:read8-11 raise:RuntimeError:worker_died ask stalled", _DEAD),
    ("waits-for-dead-worker", "finite-epoch", "w0:read0-3 0-3 w1:read4 w1:fault5 ask stalled", _DEAD),
    ("waits-for-dead-worker", "crash-surfaces", "w0:read0-3 0-3 w1:read4 w1:fault5 ask +12s stalled", _DEAD),
    ("death-taken-for-end", "crash-surfaces", "w0:read0-3 0-3 w1:read4 w1:fault5 w0:read8-11 8-11 end", _DEAD),
    ("dead-worker-takes-its-queue", "no-lost-batches",
     "w0:read0-3 0-3 w1:read4 w1:fault5 w0:read8-11 raise:RuntimeError:worker_died 8-11 end", _DEAD),
    ("timeout-wrong-units", "correct-timeout", "w0:read0-3 0-3 w1:fault5 ask +0.002s raise:TimeoutError:timed_out end", _HUNG),
    ("timeout-wrong-units", "correct-timeout", "w0:read0-3 0-3 w1:fault5 ask +12s raise:TimeoutError:timed_out end",
     {**_HUNG, "timeout_s": 0.2}),
    ("timeout-without-end", "finite-epoch", "w1:fault5 " + "ask +1s raise:RuntimeError:timed_out " * 9 + "capped:errors", _HUNG),
    ("timeout-ends-at-first-byte", "correct-timeout", "w0:read0-3 0-3 w1:fault5 ask +13s stalled",
     {**_HUNG, "stacks": f"{_IDLE}\n{_RECEIVING}"}),
    ("timeout-not-passed-on", "correct-timeout", "w0:read0-3 0-3 w1:fault5 ask +13s stalled", _HUNG),
    ("close-waits-for-hung-worker", "correct-timeout",
     "w1:fault5 ask +1.1s raise:RuntimeError:timed_out end closing +11s closed", _HUNG),
    ("close-waits-for-hung-worker", "correct-timeout",
     "w1:fault5 ask +1.1s raise:RuntimeError:timed_out end closing +20s stalled", _HUNG),
    ("position-stuck", "finite-epoch", "read0-3 0-3 " + "fault5 raise " * 9 + "capped:errors", {}),
    ("position-stuck", "finite-epoch", "read0-3 0-3 fault5 " + "raise " * 9 + "capped:errors", {}),
    ("retry-without-end", "finite-epoch", "read0-3 0-3 ask " + "fault5 " * 20 + "+30s deadline", {}),
    ("cut-picture-filled-up", "content-intact", "0-3 4-6,7~ 8-11 end", _stored(JpegCutScan(), "imagefolder")),
    ("sixteen-bits-cut-off", "content-intact", "0-3 4-6,7~ 8-11 end", _stored(SixteenBit(), "imagefolder")),
    ("unlisted-endings", "oddities-kept", "0-3 4-6,8 9-11 end", _GIF),
    ("schema-not-checked", "content-intact", "0-3 4-6,7~ 8-11 end", _stored(NullInteger(), "parquet")),
    ("row-group-given-up", "loss-factor", "0,1 2,3 4,5 9,10 11 end",
     {**_stored(NullInteger(), "parquet", groups=(0, 3, 6, 9)), "batch": 1}),
    ("file-left-at-first-error", "loss-factor", "0-3 4,5 6 end", {**_stored(CutLine(), "jsonl"), "batch": 2}),
    ("file-left-at-first-error", "loss-factor", "0-3 4-6 end", {**_stored(CutLine(), "jsonl"), "batch": 2}),
    ("error-swallowed-by-thread", "no-lost-batches", "read0-3 0-3 read4 fault5 end", {"samples": 16, "output": _THREAD}),
    ("error-swallowed-by-thread", "no-lost-batches", "read0-3 0-3 read4 fault5 end", {"samples": 16}),
    ("error-swallowed-by-thread", "finite-epoch", "read0-3 0-3 read4 fault5 ask stalled", {"samples": 16}),
    ("worker-left-at-first-error", "no-lost-batches",
     "w0:read0-3 0-3 w1:read4 w1:fault5 raise w0:read8-11 8-11 end", {"samples": 24, "workers": 2}),
    ("worker-left-at-first-error", "no-lost-batches",
     "read0-3 0-3 read4 fault5 raise read8-11 8-11 end", {"samples": 24, "workers": 2}),
    ("stop-takes-what-was-before", "no-lost-batches", "read0-4 fault5 raise end", {"contract": STOPS}),
    ("stop-ends-other-ranks", "no-lost-batches", "read0,2 0,2 end r1:read1,3 r1:1,3 r1:fault5 r1:raise r1:end",
     {"samples": 8, "batch": 2, "ranks": 2, "contract": STOPS}),
    ("false-end", "no-lost-batches", "ask read0-3 0-3 ask read4 fault5 end", {"samples": 16, "plan": {5: RaiseStopIteration()}}),
    ("false-end", "contract-kept", "ask read0-3 0-3 ask read4 fault5 end", {"samples": 16}),
    ("false-end", "no-lost-batches", "ask read0-3 0-3 ask read4 fault5 raise end", {"samples": 16}),
    ("false-end", "no-lost-batches", "w0:read0-3 0-3 w1:read4 w1:fault5 w0:read8-11 8-11 end", {"samples": 24, "workers": 2}),
    ("own-error", "contract-kept", "read0-3 0-3 raise:KeyError:7 end", {}),
    ("own-error", "no-lost-batches", "read0-3 0-3 raise:KeyError:7 ask read8-9 fault10 raise end", {}),
    ("ends-with-error", "no-lost-batches", "0-3 raise:ValueError:not_an_image end",
     {**_stored(JpegCutScan(), "imagefolder"), "contract": RAISES}),
    ("batch-lost-worker-alive", "no-lost-batches", "w0:read0-3 0-3 w1:read4-7 w1:read12-15 12-15 w0:read8-11 8-11 end", _PAIR),
    ("batch-lost-worker-alive", "finite-epoch", "w0:read0-3 0-3 w1:read4-7 ask stalled", _PAIR),
    ("error-dropped-with-its-batch", "no-lost-batches", "w0:read0-3 0-3 w1:read4 w1:fault5 w0:read8-11 8-11 end", {"workers": 2}),
    ("error-dropped-with-its-batch", "contract-kept", "0-3 fault4 8-11 end", {"plan": {4: Raise(), 5: Raise(), 6: Raise(), 7: Raise()}}),
    ("error-dropped-with-its-batch", "no-lost-batches", "w0:read0-3 0-3 w1:read4 w1:fault5 w0:read8-11 8-11 end",
     {"workers": 2, "plan": {5: Transient()}}),
    ("error-dropped-with-its-batch", "no-lost-batches",
     "w0:read0-3 0-3 w1:read4 w1:fault5 w1:read6-7 w0:read8-11 8-11 12-15 end", _PICKLES),
    ("read-in-the-training-process", "crash-surfaces", "ask read0-3 0-3 ask read4 fault5 died:-11", _DEAD),
    ("error-replaced", "error-kept", "0-3 fault5 raise:RuntimeError 8-11 end", {"plan": {5: RaiseTwoArgumentError()}}),
    ("last-batch-missing", "no-lost-batches", "read0-11 0-3 4-7 end", {}),
    ("last-batch-missing", "honest-length", "len3 0-3 4-7 end", {"samples": 9}),
    ("cut-to-the-ranks", "no-lost-batches", "r0:read0,2 0,2 end r1:read1,3 r1:1,3 r1:end", {"samples": 5, "batch": 2, "ranks": 2}),
    ("stale-batch-for-error", "no-duplicates", "read0-3 0-3 read4 fault5 0-3 read8-11 8-11 end", {}),
    ("started-again-after-error", "no-duplicates", "read0-3 0-3 read4 fault5 raise read0-3 0-3 read8-11 8-11 end", {}),
    ("started-again-after-error", "finite-epoch", "read0-3 0-3 read4 fault5 raise read0-3 0-3 read4 fault5 raise " * 4 + "capped", {}),
    ("dead-worker-started-again", "finite-epoch",
     "w0:read0-3 0-3 ask w1:fault5 w2:fault5 w3:fault5 w4:fault5 stalled", {**_DEAD, "workers": 5}),
    ("rank-left-in-collective", "finite-epoch", "r0: 0,2 ask r1: 1,3 fault5 raise end r0: stalled",
     {**_TWO_RANKS, "stacks": '  File "/lib/torch/distributed/distributed_c10d.py", line 4 in all_reduce'}),
    ("rank-left-in-collective", "no-lost-batches",
     "r0: 0,2 r1: 1,3 fault5 raise end r0: raise:RuntimeError:[gloo/pair.cc]_Connection_closed_by_peer end", _TWO_RANKS),
    ("skip-counter-in-worker", "exact-skip-count", "0-3 w0:fault5 4,6,7 8-11 end skipped0", {"workers": 1, "contract": SKIPS}),
    ("oddity-taken-for-missing", "oddities-kept", "0-3 fault5 4,6,7 skip5 8-11 end",
     {"plan": {5: EmptyTensor()}, "contract": SKIPS}),
    ("skips-not-counted", "exact-skip-count", "0-3 fault5 4,6,7 8-11 end", {"contract": SKIPS}),
    ("skips-not-counted", "exact-skip-count", "fault1 0,2,3 fault5 4,6,7 8-11 end skipped1", {"contract": SKIPS}),
    ("skips-not-counted", "contract-kept", "0-3 fault5 4,6,7 8-11 end", {}),
    ("class-lost-in-transit", "error-kept", "0-3 w0:fault5 raise:RuntimeError 8-11 end",
     {"workers": 1, "plan": {5: RaiseTwoArgumentError()}}),
    ("length-of-the-whole-set", "honest-length", "len4 r1:len4 0,2 4,6 end r1:1,3 r1:5,7 r1:end", _TWO_RANKS),
    ("length-in-samples", "honest-length", "len12 0-3 4-7 8-11 end", {}),
    ("damage-shrinks-one-rank", "ranks-in-step",
     "0,2 4,6 end r1:1,3 r1:fault5 r1:fault7 r1:skip5,7 r1:end", {**_TWO_RANKS, "contract": _SKIPS}),
    ("remainder-not-evened-out", "ranks-in-step", "0,2 4 end r1:1,3 r1:end",
     {"samples": 5, "batch": 2, "ranks": 2, "contract": _EXACT}),
    ("exhausted-after-one-epoch", "fresh-epoch", "0-3 4-7 8-11 end epoch end", {}),
    ("goes-on-where-it-was-left", "fresh-epoch", "0-3 break epoch 4-7 8-11 end", {"break_after": 1}),
    ("goes-on-where-it-was-left", "fresh-epoch", "0,2 r1:1,3 r0:break r1:break epoch r1:epoch 4,6 end r1:1,3 r1:5,7 r1:end",
     {**_TWO_RANKS, "break_after": 1}),
    ("stale-batches-delivered", "fresh-epoch", "0-3 break epoch 4-7 0-3 4-7 end", {"break_after": 1}),
    ("workers-kept-after-break", "no-leftovers", "0-3 break closing closed left:process:a_worker", {"break_after": 1}),
    ("helpers-not-ended", "no-leftovers", "0-3 4-7 8-11 end closing closed left:thread:prefetcher", {}),
    ("closing-waits-in-vain", "no-leftovers", "0-3 4-7 8-11 end closing +20s stalled", {"helpers": 2}),
    ("batches-in-another-order", "declared-order", "8-11 4-7 0-3 end", {"workers": 2}),
    ("samples-in-another-order", "declared-order", "7,3,9,1 11,0,2,8 5,4,10,6 end", {}),
    ("shuffle-ignored", "epochs-differ", f"{_IN_ORDER} epoch {_IN_ORDER} epoch {_IN_ORDER}", _SET_BACK),
    ("same-order-each-epoch", "epochs-differ", f"{_A} epoch {_A} epoch {_A}", _SET_BACK),
    ("epoch-unknown-to-persistent-workers", "epochs-differ", f"{_A} epoch {_A} epoch {_A}", _PERSISTENT),
    ("set-epoch-ignored", "epochs-differ", f"{_A} epoch {_B} epoch {_B.replace('2,8', '8,2')}", _SET_BACK),
    ("skips-not-limited", "skip-budget", "0-3 fault4 skip4 fault5 skip5 fault6 skip6 7 8-11 end", _BUDGET),
    ("skips-end-silently", "skip-budget", "0-3 fault4 skip4 fault5 skip5 fault6 skip6 end", {**_BUDGET, "plan": _FOUR}),
    ("skips-counted-in-total", "skip-budget", "0-3 fault4 skip4 fault5 skip5 6-7 fault8 raise:RuntimeError:3_in_total end",
     {**_BUDGET, "plan": {sample: Raise() for sample in (4, 5, 8)}}),
    ("read-before-delivery", "bounded-reads", "0-3 read4-7 read4-7 4-7 read8-11 read8-11 8-11 end", {}),
    ("final-error-retried", "bounded-reads", "0-3 fault5 fault5 raise 8-11 end", {"plan": {5: RaiseTwoArgumentError()}}),
]

NEAR_MISSES: list[tuple[str, str, str, dict[str, Any]]] = [
    # A batch is mixed; each batch is in order.
    ("batches-in-another-order", "declared-order", "8-11 5,4,6,7 0-3 end", {"workers": 2}),
    ("samples-in-another-order", "declared-order", "8-11 4-7 0-3 end", {"workers": 2}),
    # Only the first epoch is in order; the epoch is new each time; the workers do not stay; the loader has no set_epoch.
    ("shuffle-ignored", "epochs-differ", f"{_IN_ORDER} epoch {_A} epoch {_IN_ORDER}", _SET_BACK),
    ("same-order-each-epoch", "epochs-differ", f"{_A} epoch {_B} epoch {_B.replace('2,8', '8,2')}", _SET_BACK),
    ("epoch-unknown-to-persistent-workers", "epochs-differ", f"{_A} epoch {_A} epoch {_A}", _SET_BACK),
    ("set-epoch-ignored", "epochs-differ", f"{_A} epoch {_B} epoch {_A}", {**_SET_BACK, "set_epoch": False}),
    # Another thread than that of next() receives something.
    ("timeout-ends-at-first-byte", "correct-timeout", "w0:read0-3 0-3 w1:fault5 ask +13s stalled",
     {**_HUNG, "stacks": _RECEIVING.replace("__next__", "run") + "\n" + _IDLE}),
    # Of a page of text no decoder has anything; lines have no schema of theirs.
    ("cut-picture-filled-up", "content-intact", "0-3 4-6,7~ 8-11 end", _stored(HtmlPage(), "imagefolder")),
    # Another picture is destroyed as well; a file with the same ending arrived.
    ("sixteen-bits-cut-off", "content-intact", "0-3 4-5,6~,7~ 8-11 end", _stored(SixteenBit(), "imagefolder")),
    ("unlisted-endings", "no-lost-batches", "0-3 4,5,7 8-11 end", _GIF),
    ("schema-not-checked", "content-intact", "0-3 4-6,7~ 8-11 end", _stored(CutLine(), "jsonl")),
    # The losses are those of a batch.
    ("row-group-given-up", "loss-factor", "0-3 4,5 10,11 end", _stored(NullInteger(), "parquet", groups=(0, 3, 6, 9))),
    ("file-left-at-first-error", "loss-factor", "0-3 4,5 10,11 end", _stored(CutLine(), "jsonl")),
    # Two samples came twice, without a shuffle.
    ("shuffled-differently", "no-duplicates", "r0:read0,3,5,6 r1:read2,5,6,7 0,3 5,6 end r1:2,5 r1:6,7 r1:end", _TWO_RANKS),
    # The job shuffles, but each process still reads in order.
    ("shuffled-differently", "no-duplicates",
     "r0:read0,3,5,6 r1:read2,5,6,7 0,3 5,6 end r1:2,5 r1:6,7 r1:end", {**_TWO_RANKS, "shuffle": True}),
    # One sample is read again by the other worker: a retry.
    ("not-split-by-worker", "no-duplicates", "w0:read0-3 w1:read4-7 w1:read3 0-3 4-7 3 end", {"samples": 8, "workers": 2}),
    # Each worker reads the whole stream, and delivers its part.
    ("not-split-by-worker", "no-duplicates", "w0:read0-7 w1:read0-7 0-3 4-7 3 end", {"samples": 8, "workers": 2}),
    # Padding repeats a sample on a second rank.
    ("not-split-by-rank", "no-duplicates", "0,2,4 end r1:1,3,0 r1:end", {"samples": 5, "batch": 3, "ranks": 2}),
    # Doubled and lost, but on one rank.
    ("rank-and-worker-composed-wrongly", "no-duplicates", "w0:read0-3 w1:read2-5 0-3 2-5 end", {"samples": 8, "workers": 2}),
    # Doubled, and nothing is left out.
    ("rank-and-worker-composed-wrongly", "no-duplicates",
     "r0.w0:read0,4 r0.w1:read2,6 r1.w0:read1,5 r1.w1:read3,5,7 0,4 2,6 end r1:1,5 r1:3,5 r1:7 r1:end", _GRID),
    # More samples arrived than the source has.
    ("drawn-with-replacement", "no-duplicates", "read3,3,0,9 3,3,0,9 read4,1,1,7 4,1,1,7 read8,2,8,5 8,2,8,5 8,2,8,5 end", {}),
    # One worker has a partial batch, which may go.
    ("drop-last-per-worker", "no-lost-batches", "w0:read0-3 w1:read4-6 0-3 end", {"samples": 7, "workers": 2, "drop_last": True}),
    # The last samples that were dropped are those of one worker.
    ("drop-last-per-worker", "no-lost-batches", "w0:read0-3 w1:read4-9 0-3 end", {"samples": 10, "workers": 2, "drop_last": True}),
    # The short batch is in the middle of a worker's share.
    ("batched-per-worker", "full-batches",
     "w0:read0,1,4-7 w1:read2,3,8-11 0,1 2,3 4-7 8-11 end", {"workers": 2}),
    # The substitution is reported.
    ("substituted-silently", "contract-kept", "0-3 fault5 read6 4,6,6,7 skip5 8-11 end", {"contract": SKIPS}),
    # More came again than were damaged.
    ("substituted-silently", "no-duplicates", "0-3 fault5 read6 4,6,6,7 8-11 8-11 end", {"contract": SKIPS}),
    # The error came out.
    ("batch-unpicklable", "no-lost-batches", "0-3 w1:read4 w1:fault5 w1:read6-7 raise end", _PICKLES),
    # The living worker is not done.
    ("batch-lost-with-the-news", "finite-epoch", "w0:read0-3 0-3 w1:read4 w1:fault5 w0:read8-10 w0:begin11 ask stalled", _DEAD),
    # The consumer did not wait: the trial was cut in its own step.
    ("waits-for-dead-worker", "crash-surfaces", "w0:read0-3 w1:fault5 0-3 stalled", _DEAD),
    # The death was reported.
    ("death-taken-for-end", "crash-surfaces",
     "w0:read0-3 0-3 w1:read4 w1:fault5 w0:read8-11 raise:RuntimeError:worker_died 8-11 end", _DEAD),
    # Only the dead worker's own batch is lost, as collateral.
    ("dead-worker-takes-its-queue", "no-lost-batches",
     "0-3 w1:read4 w1:fault5 raise:RuntimeError:worker_died 8-11 12-15 end", _DEAD),
    # Late, but in seconds.
    ("timeout-wrong-units", "correct-timeout", "0-3 w1:fault5 ask +3s raise:TimeoutError:timed_out end", _HUNG),
    # Reported twice, then it continues.
    ("timeout-without-end", "contract-kept",
     "0-3 w1:fault5 ask +1s raise:RuntimeError:timed_out ask +1s raise:RuntimeError:timed_out 8-11 end", _HUNG),
    # A first error came.
    ("timeout-not-passed-on", "finite-epoch", "0-3 w1:fault5 ask +1s raise:TimeoutError:timed_out ask +13s stalled", _HUNG),
    # The hung read came back before the closing.
    ("close-waits-for-hung-worker", "correct-timeout", "0-3 4-7 8-11 end closing +11s closed", {"timeout_s": 1.0, "workers": 1}),
    # Twice is not a pattern.
    ("position-stuck", "contract-kept", "0-3 fault5 raise raise end", {}),
    # Batches come between the errors.
    ("position-stuck", "contract-kept", "fault5 raise 0-3 raise 8-11 raise end", {}),
    # Three retries are a limit.
    ("retry-without-end", "contract-kept", "0-3 " + "fault5 " * 4 + "4,6,7 8-11 end", {}),
    # An error reports it; another batch is lost.
    ("error-dropped-with-its-batch", "no-lost-batches", "w0:read0-3 0-3 w1:read4 w1:fault5 raise w0:read8-11 end", {"workers": 2}),
    ("error-dropped-with-its-batch", "no-lost-batches", "w0:read0-3 w1:read4 w1:fault5 w0:read8-11 8-11 end", {"workers": 2}),
    # A worker read it.
    ("read-in-the-training-process", "crash-surfaces", "ask w0:read0-3 0-3 ask w1:fault5 died:1", _DEAD),
    # The error is that of the sample.
    ("error-replaced", "error-kept", "0-3 fault5 raise 8-11 end", {}),
    # Read in the call of next(), by no thread.
    ("error-swallowed-by-thread", "no-lost-batches", "ask read0-3 0-3 ask read4 fault5 end", {"samples": 16}),
    ("error-swallowed-by-thread", "finite-epoch", "ask read0-3 0-3 ask read4 fault5 stalled", {"samples": 16}),
    # The worker continues after its error.
    ("worker-left-at-first-error", "no-lost-batches",
     "w0:read0-3 0-3 w1:read4 w1:fault5 raise w1:read8-11 8-11 end", {"samples": 24, "workers": 2}),
    # What was before it came.
    ("stop-takes-what-was-before", "no-lost-batches", "read0-3 0-3 read4 fault5 raise end", {"contract": STOPS}),
    # The other rank came to its end.
    ("stop-ends-other-ranks", "no-lost-batches", "read0,2 0,2 read4,6 4,6 end r1:read1,3 r1:1,3 r1:fault5 r1:raise r1:end",
     {"samples": 8, "batch": 2, "ranks": 2, "contract": STOPS}),
    # Only the batch of the damaged sample is lost.
    ("false-end", "contract-kept", "0-3 read4 fault5 read6-7 8-11 12-15 end", {"samples": 16}),
    # The error came after a fault.
    ("own-error", "no-lost-batches", "read0-3 0-3 read4 fault5 raise:KeyError:7 end", {"samples": 16}),
    # A fault took hold before it, on another rank.
    ("own-error", "no-lost-batches", "r0: 0,2 r1: 1,3 fault5 raise end r0: raise:RuntimeError:peer_is_gone end", _TWO_RANKS),
    # A batch came after the error.
    ("ends-with-error", "no-lost-batches", "raise:ValueError:not_an_image 8-11 end",
     {**_stored(JpegCutScan(), "imagefolder"), "contract": RAISES, "samples": 12}),
    # The samples were never read.
    ("batch-lost-worker-alive", "no-lost-batches", "w0:read0-3 0-3 w0:read8-11 8-11 12-15 end", _PAIR),
    # Two workers read them: one of them passed them.
    ("batch-lost-worker-alive", "no-lost-batches", "w0:read0-7 w1:read0-7 0-3 8-11 12-15 end", _PAIR),
    # They were read beside a damaged sample.
    ("batch-lost-worker-alive", "no-lost-batches",
     "w0:read0-3 0-3 w1:read4 w1:fault5 w1:read6-7 w0:read8-11 8-11 end", {"workers": 2}),
    # The epoch ended with an error.
    ("batch-lost-worker-alive", "no-lost-batches", "w0:read0-3 w1:read4-7 0-3 w1:fault12 raise end", {**_PAIR, "samples": 13}),
    # The worker that had read them hangs.
    ("batch-lost-worker-alive", "no-lost-batches",
     "w0:read0-3 0-3 w1:read4-7 w1:fault9 ask +1s raise:TimeoutError:timed_out end",
     {"samples": 12, "timeout_s": 1.0, "workers": 2, "plan": {9: Hang()}}),
    # A batch in the middle is missing; the source is shuffled; the epoch ended with a partial batch.
    ("last-batch-missing", "no-lost-batches", "0-3 8-11 end", {}),
    ("last-batch-missing", "no-lost-batches", "8-11 0-3 end", {"shuffle": True}),
    ("last-batch-missing", "no-lost-batches", "0-3 4,5 end", {"samples": 9}),
    # A rank read what is missing.
    ("cut-to-the-ranks", "no-lost-batches", "r0:read0,2,4 0,2 end r1:read1,3 r1:1,3 r1:end", {"samples": 5, "batch": 2, "ranks": 2}),
    # An error came; another batch than the one that had come.
    ("stale-batch-for-error", "no-duplicates", "read0-3 0-3 read4 fault5 raise 0-3 8-11 end", {}),
    ("stale-batch-for-error", "no-duplicates", "read0-3 0-3 read4 fault5 2-3,6-7 8-11 end", {}),
    # The epoch goes on with another batch.
    ("started-again-after-error", "no-duplicates", "read0-3 0-3 read8-11 8-11 read4 fault5 raise 8-11 end", {}),
    # It died twice.
    ("dead-worker-started-again", "finite-epoch", "w0:read0-3 0-3 ask w1:fault5 w2:fault5 stalled", {**_DEAD, "workers": 3}),
    # The other rank waits for something else.
    ("rank-left-in-collective", "finite-epoch", "r0: 0,2 ask r1: 1,3 fault5 raise end r0: stalled",
     {**_TWO_RANKS, "stacks": '  File "/lib/python3.11/queue.py", line 4 in get'}),
    # The skips happened in the consumer's own process.
    ("skip-counter-in-worker", "exact-skip-count", "0-3 fault5 4,6,7 8-11 end skipped0", {"contract": SKIPS}),
    # The odd sample went with an error.
    ("oddity-taken-for-missing", "oddities-kept", "0-3 fault5 raise 8-11 end", {"plan": {5: EmptyTensor()}}),
    # One skip too many is counted, not one too few.
    ("skips-not-counted", "exact-skip-count", "0-3 fault5 4,6,7 8-11 end skipped3", {"contract": SKIPS}),
    # It never left a worker.
    ("class-lost-in-transit", "error-kept", "0-3 fault5 raise:RuntimeError 8-11 end", {"plan": {5: RaiseTwoArgumentError()}}),
    # One rank only.
    ("length-of-the-whole-set", "honest-length", "len4 0-3 4-7 8-11 end", {}),
    ("length-in-samples", "honest-length", "len4 0-3 4-7 8-11 end", {}),
    # The rank that fell short had no damage.
    ("damage-shrinks-one-rank", "ranks-in-step", "fault0 skip0 2 4,6 end r1:1,3 r1:end", {**_TWO_RANKS, "contract": _SKIPS}),
    # The rank lost good samples too.
    ("damage-shrinks-one-rank", "ranks-in-step",
     "0,2 4,6 end r1:1,3 r1:fault5 r1:skip5 r1:end", {**_TWO_RANKS, "contract": _SKIPS}),
    # The ranks divide the samples.
    ("remainder-not-evened-out", "ranks-in-step", "0,2 4,6 end r1:1,3 r1:end", _TWO_RANKS),
    # What is wrong came after a resume.
    ("state-has-an-effect", "resume-exact", "0-3 saved resumed 8-11 end", {"phases": RESUMED}),
    # As many ranks as before.
    ("state-of-other-ranks", "resume-exact", "0-3 saved resumed 0-3 4-7 8-11 end", {"phases": RESUMED}),
    # The damaged sample had not been passed before.
    ("resume-reads-again", "resume-exact", "0-3 saved resumed fault5 raise@iter", {"phases": RESUMED}),
    # The first resume was wrong already.
    ("state-after-a-resume", "resume-exact", "0-3 saved resumed 0-3 saved resumed end", {"phases": _TWICE}),
    # Samples are missing too.
    ("state-not-used", "resume-exact", "0-3 saved resumed 0-3 8-11 end", {"phases": RESUMED}),
    # What is missing was not read.
    ("state-counts-what-was-read", "resume-exact", "w0:read0-3 0-3 saved resumed 8-11 end", {"phases": RESUMED}),
    # Nothing came again.
    ("order-not-restored", "resume-exact", "0-3 saved resumed 8-11 end", {"phases": RESUMED}),
    # It is the resumed epoch that is short.
    ("later-epochs-begin-at-the-state", "resume-exact", "0-3 saved resumed 8-11 end epoch 0-3 4-7 8-11 end", {"phases": RESUMED}),
    # The later epoch delivers something.
    ("exhausted-after-one-epoch", "fresh-epoch", "0-3 4-7 8-11 end epoch 0-3 end", {}),
    # The later epoch repeats what had come.
    ("goes-on-where-it-was-left", "fresh-epoch", "0-3 break epoch 0-3 8-11 end", {"break_after": 1}),
    # It starts over at once.
    ("stale-batches-delivered", "fresh-epoch", "0-3 break epoch 0-3 4-7 4-7 end", {"break_after": 1}),
    # The epoch before was not left.
    ("stale-batches-delivered", "fresh-epoch", "0-3 4-7 8-11 end epoch 4-7 0-3 4-7 end", {}),
    # No break.
    ("workers-kept-after-break", "no-leftovers", "0-3 4-7 8-11 end closing closed left:process:a_worker", {}),
    # No helper lived: closing is stuck in itself.
    ("closing-waits-in-vain", "no-leftovers", "0-3 4-7 8-11 end closing +20s stalled", {}),
    # What was left is not a helper.
    ("helpers-not-ended", "no-leftovers", "0-3 4-7 8-11 end closing closed left:file:tmp123", {}),
    # An error ended the epoch.
    ("skips-not-limited", "skip-budget", "0-3 fault4 skip4 fault5 skip5 fault6 raise:RuntimeError:broken end", _BUDGET),
    # What follows the damage arrived.
    ("skips-end-silently", "skip-budget", "0-3 fault4 skip4 fault5 skip5 fault6 skip6 7 8-11 end", _BUDGET),
    # They were in a row.
    ("skips-counted-in-total", "skip-budget", "0-3 fault4 skip4 fault5 skip5 fault6 raise:RuntimeError:broken end", _BUDGET),
    # Each of two workers read them once.
    ("read-before-delivery", "bounded-reads", "w0:read0-11 w1:read0-11 0-3 4-7 8-11 end", {"source": "stream", "workers": 2}),
    # An OSError may pass.
    ("final-error-retried", "bounded-reads", f"0-3 {'fault5 ' * 11}raise 8-11 end", {}),
]


def _named(cases: list[tuple[str, str, str, dict[str, Any]]]) -> list[Any]:
    return [pytest.param(*case, id=f"{case[0]} for {case[1]}: {case[2][:50]}") for case in cases]


@pytest.mark.parametrize(("name", "check", "story", "trial"), _named(STORIES))
def test_a_pattern_is_named(name: str, check: str, story: str, trial: dict[str, Any]) -> None:
    """A failure that shows the pattern of a diagnosis gets that one, and no other."""
    history = history_of(story, **trial)
    assert broken(check, history)
    assert diagnosed(check, history) == name


@pytest.mark.parametrize(("name", "check", "story", "trial"), _named(NEAR_MISSES))
def test_a_near_miss_does_not_fit_the_pattern(name: str, check: str, story: str, trial: dict[str, Any]) -> None:
    """A history that only looks like a diagnosis does not get it."""
    assert check in diagnoses.find(name).explains
    assert diagnosed(check, history_of(story, **trial)) != name


@pytest.mark.parametrize("stories", [STORIES, NEAR_MISSES], ids=["fits", "near miss"])
def test_every_diagnosis_has_a_story_of_either_kind(stories: list[tuple[str, str, str, dict[str, Any]]]) -> None:
    """No diagnosis of a check is without a story that it fits and one that it does not; test_relations.py has the others."""
    of_checks = {name for name, entry in diagnoses.registry().items() if not entry.explains <= set(relations())}
    assert {name for name, _, _, _ in stories} == of_checks


@pytest.mark.parametrize(
    ("check", "story", "trial"),
    [
        ("content-intact", "0-3 4,5~,6,7 8-11 end", {}),
        ("no-lost-batches", "0-3 8-11 end", {}),
        ("no-duplicates", "0-3 4-7 4-7 8-11 end", {}),
        ("error-names-sample", "0-3 fault5 raise:OSError:a_read_failed 8-11 end", {}),
        ("finite-epoch", "0-3 ask stalled", {}),
    ],
)
def test_where_no_pattern_fits_there_is_no_diagnosis(check: str, story: str, trial: dict[str, Any]) -> None:
    """A failure without a pattern gets no diagnosis."""
    history = history_of(story, **trial)
    assert broken(check, history)
    assert diagnosed(check, history) is None


def test_the_text_says_the_cause_with_numbers_and_the_fix() -> None:
    """The text names who, where and how much, then what to do."""
    history = history_of(
        "w0:read0-3 0-3 w1:read4 w1:fault5 raise w0:read8-11 8-11 end", samples=24, workers=2, plan={5: Raise()}
    )
    expected = expect(history.spec)
    found = diagnose("no-lost-batches", history, account(history, expected), expected)
    assert found == Diagnosis(
        "worker-left-at-first-error",
        "worker 1 left its loop at its first error, in sample 5: 12 good samples were never read after it. "
        "Catch the error inside the loop, pass it on as that batch's result, and go on with the next batch.",
    )


def test_ids_are_unique_and_explain_checks_that_exist() -> None:
    """Each diagnosis explains checks of the registry, and two of one id are refused."""
    with pytest.raises(ValueError, match="two diagnoses are called 'false-end'"):
        diagnosis("false-end", cause="A cause.", fix="A fix.", explains=("no-duplicates",))(lambda case: None)
    for entry in diagnoses.registry().values():
        assert entry.explains
        assert entry.explains <= set(checks()), entry.id


def test_an_unknown_diagnosis_is_answered_with_the_nearest() -> None:
    """Asking for a diagnosis that does not exist names the nearest."""
    with pytest.raises(UserError, match="unknown diagnosis 'position-stick'; did you mean 'position-stuck'"):
        diagnoses.find("position-stick")


def _entries(**before: tuple[str, ...]) -> dict[str, Entry]:
    return {name: Entry(name, "", "", frozenset(), others, lambda case: None) for name, others in before.items()}


def test_each_is_tried_before_those_that_it_names() -> None:
    """Diagnoses come before those that they name, and otherwise in the order in which they are registered."""
    assert [entry.id for entry in in_order(_entries(a=(), b=(), c=("a",), d=(), e=("d", "c")))] == ["b", "e", "c", "a", "d"]


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ({"stuck": ("retryes",), "retries": ()},
         "the diagnosis 'stuck' is declared to be before 'retryes', which is unknown; did you mean 'retries'?"),
        ({"a": ("b",), "b": ("c",), "c": ("a",)},
         "diagnoses are declared to be before each other: 'a' before 'b' before 'c' before 'a'; remove one of these names from a "
         "`before`"),
        ({"a": ("a",)}, "diagnoses are declared to be before each other: 'a' before 'a'; remove one of these names from a `before`"),
    ],
)
def test_an_order_that_cannot_be_is_one_line(before: dict[str, tuple[str, ...]], said: str) -> None:
    """An unknown name and a circle are errors that name the diagnoses."""
    with pytest.raises(UserError) as caught:
        in_order(_entries(**before))
    assert str(caught.value) == said


@pytest.mark.parametrize(("name", "check", "story", "trial"), _named([*STORIES, *NEAR_MISSES]))
def test_which_of_several_is_named_is_declared(name: str, check: str, story: str, trial: dict[str, Any]) -> None:
    """Where several diagnoses fit, the one that is named says that it comes before each of the others."""
    assert undeclared(check, history_of(story, **trial)) == []
