"""Writes into a corpus's slow pipes, so that each delivers its picture late."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from .base import SampleRecord, State
from .manifest import read_recipe, read_samples
from .recipe import kind_of

_POLL_S = 0.02
_PIECES = 6  # each piece costs a wake-up, which is late on a busy machine


@contextmanager
def feeding(root: str) -> Iterator[int]:
    """While it is open, every slow pipe of the corpus delivers its undamaged sample to each reader.

    Yields:
        How many pipes are written to. Hanging pipes never are.
    """
    slow = [record for record in read_samples(root) if record.state is State.SLOW]
    recipe = read_recipe(root)
    kind = kind_of(recipe.kind)
    stop = threading.Event()
    threads = [
        threading.Thread(
            target=_feed,
            args=(root, f"{root}/{record.path}", kind.undamaged(recipe, record.id), _seconds(record), stop),
        )
        for record in slow
    ]
    for thread in threads:
        thread.start()
    try:
        yield len(threads)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _seconds(record: SampleRecord) -> float:
    return float((record.fault or {}).get("seconds", 1.0))


def _feed(root: str, path: str, data: bytes, seconds: float, stop: threading.Event) -> None:
    """Wait for a reader, write the data piece by piece, and repeat. Never blocks longer than one poll."""
    above, name = os.path.split(os.path.abspath(root))
    beside = os.path.join(above, f".{name}")  # not inside the corpus: a loader may be listing it
    piece = max(1, -(-len(data) // _PIECES))
    while not stop.is_set():
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:  # the pipe does not exist any more: the corpus was removed
                return
            stop.wait(_POLL_S)  # no reader
            continue
        # Replace the pipe first: two readers of one pipe would share its bytes, and a second writer could keep the
        # first reader from seeing the end.
        renewed = _renew(path, beside)
        try:
            at = 0
            while at < len(data) and not stop.wait(seconds / _PIECES):
                try:
                    at += os.write(descriptor, data[at : at + piece])
                except BlockingIOError:  # the pipe is full: the reader is slower than the writer
                    continue
        except BrokenPipeError:  # the reader left
            pass
        finally:
            os.close(descriptor)
        if not renewed:
            return


def _renew(path: str, beside: str) -> bool:
    """Replace the pipe with a new one; False: its folder was removed."""
    fresh = f"{beside}.pipe-{threading.get_ident()}"
    try:
        os.mkfifo(fresh)
        os.replace(fresh, path)
    except FileNotFoundError:
        with suppress(FileNotFoundError):
            os.unlink(fresh)
        return False
    return True
