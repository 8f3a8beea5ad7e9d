"""The vocabulary of the event log: what happened, who wrote it, and what the flags of a record mean.

``docs/event-log.md`` describes it for programs in other languages. :mod:`.event_log` writes and reads the log.
"""

from __future__ import annotations

import enum


class Kind(enum.IntEnum):
    """What happened. The comments say what ``sample``, ``aux`` and ``flags`` contain."""

    BUILDING = 1  # the factory is being called
    BUILT = 2  # it returned; flags: 1 if the loader has a state
    LENGTH = 3  # sample: len(loader); flags: 0 before the first epoch, 1 after it
    EPOCH = 4  # the consumer is about to call iter(); flags: 1 if it can tell the loader the number of the epoch (set_epoch)
    ASK = 5  # the consumer is about to call next(); aux: step; sample: ns it waited for a processor so far
    GOT = 6  # next() returned a batch; sample: its size; aux: step
    ARRIVED = 7  # one sample of that batch; sample: id or -1; aux: step; flags: Content
    RAISED = 8  # an error reached the consumer; sample: step; aux: text; flags: Where
    END = 9  # StopIteration; aux: step
    CAPPED = 10  # the consumer gave up; aux: step; flags: Cap
    BROKE = 11  # the consumer left the epoch on purpose; aux: step
    EPOCH_DONE = 12
    READ = 13  # a read of a sample begins; aux: the thread; flags: 1 in another thread than the main one of its process
    READ_DONE = 14  # it returned, or (flags: 1) raised; aux: then the error's text
    FAULT = 15  # the fault of this sample takes effect now
    SKIPPED = 16  # the loader called on_skip; aux: text
    REPORTED = 17  # an entry of loader.skipped; sample: id or -1; aux: count; flags: 1 for the line with the total
    CLOSING = 18  # the consumer begins to drop an epoch's iterator, or (flags: 1) to close and drop the loader
    CLOSED = 19
    LEFTOVER = 20  # something of the loader is left after closing; aux: text; flags: Remains
    WAITED = 21  # in lock step: the other ranks never reached this step; aux: step
    FINISHED = 22  # the consumer of this rank ran to its end
    UNREADABLE = 23  # a batch whose ids could not be found; aux: text; sample: step
    DELAY = 24  # sample: nanoseconds that the consumer's thread waited for a processor so far (schedstat)
    FIELDS = 25  # which fields a sample from disk has; sample: id or -1; aux: a bit for each of storedbatch.FIELDS
    KEPT = 27  # something of the loader that exists once, however many loaders are built; aux: text; flags: Remains
    REASON = 26  # a reason that loader.skipped gives; sample: for how many skips; aux: text
    SAVED = 28  # the loader gave its state; aux: step; sample: bytes of the state when pickled
    LOADED = 29  # the loader was given the state of phase `sample`
    SIGNALLED = 30  # the trial supervisor sent a signal; flags: its number; aux: to how many processes; pid: to which first
    REACHED = 33  # the consumer waits for the signal of its phase; aux: step
    MEMORY = 31  # of process `pid`; sample: bytes of memory that it does not share; aux: its threads
    DESCRIPTORS = 32  # of process `pid`; sample: its open descriptors


class Actor(enum.IntEnum):
    """Who wrote a record."""

    RANK = 0  # the process in which the consumer runs
    WORKER = 1  # any process below it
    SUPERVISOR = 2  # the trial supervisor
    STORAGE = 3  # what serves the data: a file system or a server of the trial


class Content(enum.IntFlag):
    """What was found about a delivered sample."""

    WHOLE = 1  # it is the sample, field by field
    WRONG = 2  # it is not what was written, or its fields belong to different samples
    UNCHECKED = 4  # the batch contains only ids and no other content
    MARKED = 8  # it arrives marked as missing
    MIXED = 16  # with WRONG: some of its fields belong to another sample


class Where(enum.IntEnum):
    """In which call an error reached the consumer."""

    NEXT = 0
    ITER = 1
    OUTSIDE = 2  # in a line of the consumer itself, from a signal handler
    FACTORY = 3
    CLOSE = 4
    LENGTH = 5
    REPORT = 6
    DISTRIBUTED = 7
    SAVE = 8
    LOAD = 9


class Cap(enum.IntEnum):
    """Why the consumer gave up an epoch."""

    CALLS = 0  # far more calls of next() than the epoch can need
    ERRORS = 1  # errors follow each other without a batch between them


class Remains(enum.IntEnum):
    """What was left behind."""

    PROCESS = 0
    THREAD = 1
    SHARED_MEMORY = 2
    DESCRIPTOR = 3
    FILE = 4
