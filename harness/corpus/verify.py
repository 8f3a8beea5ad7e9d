"""Every byte of a corpus compared with its manifest."""

from __future__ import annotations

import collections
import functools
import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from .folders import Folder, folder
from .manifest import CORPUS, MANIFEST, README, own_files, read_corpus, read_lines, stored_name
from .workers import ordered

_LINES = 512
_FEW = 1024  # files; below this number, more processes cost more than they save
What = Literal["missing", "changed", "kind", "extra", "manifest"]


@dataclass(frozen=True)
class Change:
    """One difference between a corpus and its manifest."""

    what: What
    path: str
    detail: str

    def __str__(self) -> str:
        return f"{self.what}: {self.path}: {self.detail}" if self.detail else f"{self.what}: {self.path}"


def verify(
    address: str, *, jobs: int | None = None, progress: Callable[[int, int], None] | None = None
) -> Iterator[Change]:
    """All differences between a corpus and its manifest: missing, changed and extra files, and a changed manifest.

    Special files are never opened. For a file that this user cannot read, only the path is compared.

    Args:
        address: of the corpus, as :func:`.make.make` takes it.
        jobs: number of processes; None: one for each processor.
        progress: called with the number of compared files and the number of all files.

    Raises:
        UserError: there is no corpus.
    """
    where = folder(address)
    corpus = read_corpus(where)
    name = next(
        reversed(corpus["manifests"])
    )  # files.badbatch if it exists: only it has the digests of shared files
    total = int(corpus["counts"]["files"])
    for own, digest in corpus["manifests"].items():
        yield from _own_changes(where, own, digest, corpus["counts"])
    yield from _readme_changes(where, corpus)
    jobs = 1 if not where.local or total < _FEW else jobs or os.cpu_count() or 1
    done = expected = 0
    lines = read_lines(where, name)
    pieces: Iterator[list[bytes]] = iter(lambda: list(itertools.islice(lines, _LINES)), [])
    for there, count, changes in ordered(functools.partial(_compare, where.address), pieces, jobs):
        done += count
        expected += there
        yield from changes
        if progress is not None:
            progress(done, total)
    yield from (Change("extra", path, "") for path in _extras(where, name, expected))


def strangers(where: Folder) -> Iterator[str]:
    """Paths of the files in a corpus's folder that its manifest does not list.

    Raises:
        UserError: there is no corpus, or its manifest does not exist.
    """
    corpus = read_corpus(where)
    yield from _extras(where, next(reversed(corpus["manifests"])))
    changes = list(_readme_changes(where, corpus))
    if (changes and changes[0].what != "missing") or ("readme" not in corpus and where.look(README)[0] != "missing"):
        yield README  # somebody else wrote or changed it


def _readme_changes(where: Folder, corpus: dict[str, Any]) -> Iterator[Change]:
    if "readme" not in corpus:  # a corpus of badbatch 0.1 has none
        return
    found, data = where.look(README)
    change = _difference(corpus["readme"], None, found, data)
    if change is not None:
        yield Change(change[0], README, change[1])


def _own_changes(where: Folder, name: str, digest: dict[str, Any], counts: dict[str, Any]) -> Iterator[Change]:
    found, length = hashlib.sha256(), 0
    states: collections.Counter[str] = collections.Counter()
    for text in read_lines(where, name):
        found.update(text)
        length += len(text)
        # Quotation marks inside a value are escaped, so this can only match the field.
        states[text.partition(b'"state":"')[2].partition(b'"')[0].decode("ascii", "replace")] += 1
    if found.hexdigest() != digest["sha256"]:
        yield Change("manifest", name, f"it was changed: it has {length} bytes, and {digest['length']} when it was made")
    elif name == stored_name(where, MANIFEST) and (
        dict(states) != counts["state"] or sum(states.values()) != counts["samples"]
    ):
        yield Change("manifest", stored_name(where, CORPUS), "its counts of samples and states differ from the manifest")


def _compare(address: str, lines: list[bytes]) -> tuple[int, int, list[Change]]:
    """How many of the files in the lines exist, how many lines there are, and what is wrong."""
    where = folder(address)
    there, changes = 0, []
    for text in lines:
        try:
            record = json.loads(text)
            path, special = record["path"], record.get("special")
        except (ValueError, KeyError, TypeError):
            changes.append(Change("manifest", "a line", text[:80].decode("utf-8", "replace").strip()))
            continue
        found, data = where.look(path)
        there += found != "missing"
        change = _difference(record, special, found, data)
        if change is not None:
            changes.append(Change(change[0], path, change[1]))
    return there, len(lines), changes


def _difference(
    record: dict[str, Any], special: str | None, found: str | None, data: bytes | None
) -> tuple[What, str] | None:
    if found != special:
        if found == "missing":
            return "missing", ""
        return "kind", f"there is {_words(found)} in place of {_words(special)}"
    if data is None or record.get("sha256") is None:
        return None
    if len(data) != record["length"]:
        return "changed", f"{len(data)} bytes instead of {record['length']}"
    if hashlib.sha256(data).hexdigest() != record["sha256"]:
        return "changed", f"same length ({len(data)}), but other bytes"
    return None


def _words(special: str | None) -> str:
    return {
        None: "an ordinary file",
        "missing": "nothing",
        "dangling-link": "a dangling link",
        "directory": "a folder",
        "no-permission": "a file that may not be read",
        "fifo": "a named pipe",
    }.get(special, str(special))


def _extras(where: Folder, name: str, expected: int | None = None) -> Iterator[str]:
    """Files that no record names. If the expected number is known they are only counted, which needs no memory."""
    own = own_files(where)
    if expected is not None and sum(1 for path in where.paths() if path not in own) == expected:
        return
    known = set()
    for text in read_lines(where, name):
        try:
            known.add(json.loads(text)["path"])
        except (ValueError, KeyError, TypeError):
            continue
    for path in where.paths():
        if path not in own and path not in known:
            yield path
