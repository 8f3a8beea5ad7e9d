"""The scenarios over the sources in memory. Data, not code."""

from __future__ import annotations

from ...harness.faults.abort import Abort
from ...harness.faults.empty_tensor import EmptyTensor
from ...harness.faults.errno import Errno
from ...harness.faults.exit import Exit
from ...harness.faults.frozen import Frozen
from ...harness.faults.hang import Hang
from ...harness.faults.hang_holding_lock import HangHoldingLock
from ...harness.faults.index_error import RaiseIndexError
from ...harness.faults.keyword_only_error import RaiseKeywordOnlyError
from ...harness.faults.killed import Killed
from ...harness.faults.nan import Nan
from ...harness.faults.none_sample import NoneSample
from ...harness.faults.null_field import NullField
from ...harness.faults.ragged_window import RaggedWindow
from ...harness.faults.raises import Raise
from ...harness.faults.segfault import Segfault
from ...harness.faults.slow import Slow
from ...harness.faults.stop_iteration import RaiseStopIteration
from ...harness.faults.transient import Transient
from ...harness.faults.two_argument_error import RaiseTwoArgumentError
from ...harness.faults.unpicklable_error import RaiseUnpicklableError
from ...harness.faults.unpicklable_sample import UnpicklableSample
from ...harness.trial.phases import Batches, left_early, plain, rebuilt, set_back
from .base import Scenario

_LOCKSTEP = {"lockstep": True}
_BUDGET = {"max_consecutive_skips": 2}

SCENARIOS: tuple[Scenario, ...] = (
    Scenario("clean", "No fault at all: a loader that fails here cannot be judged in any other scenario.", settings=_LOCKSTEP),
    Scenario("shuffled", "Training shuffles, in another order in each epoch; all ranks and workers must draw from the same permutation, "
             "and set_epoch(0) brings the first order back.", settings={"shuffle": True, "phases": set_back()}),
    Scenario("drop-last", "Dropping the partial batch must cost at most one partial batch, not one for each worker.",
             size="partial-batches", settings={"drop_last": True}),
    Scenario("tiny", "A smoke test, or a class with three pictures: fewer samples than a batch, or than workers.", size="tiny"),
    Scenario("remainder-one", "The last batch has one sample, and the ranks do not divide the set evenly.",
             size="remainder-one", settings=_LOCKSTEP),
    Scenario("batch-of-one", "Evaluation runs with a batch size of one.", size="few-singles", settings={"batch_size": 1}),
    Scenario("no-samples", "A filter that matches nothing, or an empty shard.", size="none"),
    Scenario("one-bad", "One truncated file in the set: the most common fault.", Raise(), "one", settings=_LOCKSTEP),
    Scenario("first-bad", "The very first read fails.", Raise(), "first"),
    Scenario("last-bad", "The very last read fails, when prefetching has ended.", Raise(), "last"),
    Scenario("whole-batch-bad", "A directory, or a part of a shard, is missing: every sample of one batch is damaged.",
             Raise(), "batch", settings=_LOCKSTEP),
    Scenario("run-of-bad", "A part of the disk was lost: three batches in a row are damaged.", Raise(), "run"),
    Scenario("one-sided-damage", "All damage is in the share of one rank: its share shrinks, and the others wait.",
             Raise(), "odd-upper-half", settings=_LOCKSTEP),
    Scenario("all-bad", "A wrong path or a missing mount: every read fails.", Raise(), "all"),
    Scenario("null-field", "A row whose feature is null.", NullField(), "one"),
    Scenario("none-sample", "A data set that returns None for what it cannot read.", NoneSample(), "one"),
    Scenario("ragged-window", "A window shorter than the others, in the middle of a batch.", RaggedWindow(), "one"),
    Scenario("empty-tensor", "A picture without annotations: an empty tensor is legal, and is not a missing value.",
             EmptyTensor(), "one", size="few-singles", settings={"batch_size": 1}),
    Scenario("nan", "A NaN where the schema allows it is data.", Nan(), "one"),
    Scenario("stop-iteration", "A next() on an exhausted iterator inside the data set leaks StopIteration.",
             RaiseStopIteration(), "one"),
    Scenario("index-error", "An index that is out of range looks like the end of a sequence.", RaiseIndexError(), "one"),
    Scenario("two-argument-error", "An exception whose constructor takes two arguments, like many of the libraries'.",
             RaiseTwoArgumentError(), "one"),
    Scenario("keyword-only-error", "An exception whose constructor takes keyword arguments only.", RaiseKeywordOnlyError(), "one"),
    Scenario("unpicklable-error", "An exception with a lock or a socket in it cannot leave its worker.",
             RaiseUnpicklableError(), "one"),
    Scenario("unpicklable-sample", "A sample with a lazily opened file in it cannot leave its worker.",
             UnpicklableSample(), "batch-start"),
    # System errors that loaders treat differently from a damaged sample, each with its own scenario. EACCES has none
    # here: in memory it is one more OSError, and on disk `no-permission` covers it.
    Scenario("io-error", "A disk with a bad sector: an OSError with a number (EIO). Pillow's for a damaged picture has none, so "
             "careful loaders treat the two differently.", Errno("EIO"), "one"),
    Scenario("too-many-files", "A data set that leaks descriptors reaches the limit of its worker (EMFILE): loaders mistake it for a "
             "failure of their own pipes.", Errno("EMFILE"), "one"),
    Scenario("disk-full", "A data set that caches what it reads fills the disk (ENOSPC): loaders mistake it for a failure of their own "
             "cache.", Errno("ENOSPC"), "one"),
    Scenario("read-timed-out", "A network file system gives up (ETIMEDOUT): Python raises a TimeoutError, which is also what a "
             "loader raises after its own timeout.", Errno("ETIMEDOUT"), "one"),
    Scenario("stale-handle", "A file on NFS was replaced (ESTALE): loaders open it again and again, as if that always helped.",
             Errno("ESTALE"), "one"),
    Scenario("hung-read", "A read from a stalled network file system never returns.", Hang(), "one",
             needs_workers=True, timed=True),
    Scenario("hung-holding-lock", "A C extension blocks with the interpreter lock held: no Python code of its process can run.",
             HangHoldingLock(), "one", needs_workers=True, timed=True),
    Scenario("slow-read", "A read takes a large part of the timeout: it is slow, but it does not hang.", Slow(0.4), "one", timed=True),
    Scenario("slow-consumer", "A training step takes longer than the timeout: that is not the loader's fault.",
             size="few", timed=True, settings={"step_s": 1.3}),
    Scenario("segfault", "A decoder crashes on one file.", Segfault(), "one", needs_workers=True),
    Scenario("abort", "A failed assertion in native code.", Abort(), "one", needs_workers=True),
    Scenario("killed", "The out-of-memory killer takes a worker.", Killed(), "one", needs_workers=True),
    Scenario("frozen", "A worker is stopped: a debugger, a cgroup freezer, a suspended container.", Frozen(), "one",
             needs_workers=True, timed=True),
    Scenario("exit", "A library calls exit(1) in a worker.", Exit(code=1), "one", needs_workers=True),
    Scenario("exit-zero", "A library ends a worker with exit code 0, which looks like success.", Exit(code=0), "one",
             needs_workers=True),
    Scenario("transient", "A read fails once, and succeeds when tried again.", Transient(failures=1), "one"),
    Scenario("three-epochs", "Training runs more than one epoch.", settings={"phases": plain(3)}),
    Scenario("early-break", "A sanity check, or an early stop, ends the epoch early; the next one must be whole.",
             settings={"phases": left_early(2)}),
    Scenario("rebuilt", "A sweep, or an evaluation after each epoch, builds one loader after the other in one process: what each leaves "
             "behind accumulates.", settings={"phases": rebuilt()}),
    Scenario("rebuilt-after-break", "The same, with loaders that are dropped in the middle of an epoch.",
             settings={"phases": rebuilt(until=Batches(2))}),
    Scenario("skips-within-budget", "Two damaged samples in a row, a good one, and two more: a budget of two skips in a row allows it.",
             Raise(), "two-pairs", settings=_BUDGET),
    Scenario("skips-beyond-budget", "More damaged samples in a row than the job may skip: the data is gone, and the "
             "job must stop.", Raise(), "run", settings=_BUDGET),
    Scenario("resumed", "A job is preempted: it goes on in a new process from the state of its loader, taken after any batch.",
             size="six-batches", program="every-stop"),
    Scenario("resumed-shuffled", "The same, of a shuffled epoch: the order must be restored with the position.",
             size="six-batches", program="every-stop", settings={"shuffle": True}),
    Scenario("resumed-damaged", "The same, with one damaged sample before or after the stop.", Raise(), "one",
             size="six-batches", program="every-stop"),
    Scenario("resumed-twice", "A job is preempted twice in one epoch, and again in the next one.", size="six-batches", program="twice"),
    Scenario("resumed-at-end", "The state is taken when an epoch is over; the next one must be whole.",
             size="six-batches", program="at-the-end"),
    Scenario("resumed-other-workers", "A job goes on with another number of workers: exactly, or not at all.",
             size="six-batches", program="other-workers"),
    Scenario("resumed-other-ranks", "A job goes on on another number of machines: exactly, or not at all.",
             size="six-batches", program="other-ranks"),
    Scenario("after-failure", "The epoch after one that ended in an error.", Transient(failures=1), "one",
             settings={"phases": plain(2)}),
)
