"""``manifest.badbatch``, ``files.badbatch`` and ``corpus.badbatch``: the truth about a corpus, written and read as a stream.

The schema is described in ``docs/corpus-manifest.md``. No data file has the extension ``.badbatch``, so a reader that
lists files by extension does not read these as data. Corpora of badbatch 0.1 have other names, which are read as well.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import UserError
from .base import SCHEMA_VERSION, FileRecord, Recipe, SampleRecord
from .folders import Folder, folder

MANIFEST, FILES, CORPUS, README = "manifest.badbatch", "files.badbatch", "corpus.badbatch", "README.md"
_FORMERLY = {MANIFEST: "manifest.jsonl", FILES: "files.jsonl", CORPUS: "corpus.json"}
_MARK = "badbatch corpus"
_EDITED = ": was the corpus edited? badbatch corpus verify shows what differs"
_KEYS = ("recipe", "seed", "counts", "manifests")
_encode = json.JSONEncoder(separators=(",", ":")).encode  # ASCII, so that names that are not valid Unicode survive


def line(record: SampleRecord | FileRecord) -> bytes:
    """One line of a manifest, with its newline."""
    return _encode(record.to_json()).encode("ascii") + b"\n"


@dataclass
class Counts:
    """What a corpus contains, counted while it is made."""

    samples: int = 0
    files: int = 0
    bytes: int = 0
    states: Counter[str] = field(default_factory=Counter)
    faults: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By name and state."""
    oddities: Counter[tuple[str, str]] = field(default_factory=Counter)
    held_not: int = 0
    """Samples with a fault that are as good as before."""

    def add(self, record: SampleRecord) -> None:
        """Count one sample."""
        self.samples += 1
        self.states[record.state.value] += 1
        if record.fault is not None:
            self.faults[record.fault["fault"], record.state.value] += 1
        if record.oddity is not None:
            self.oddities[record.oddity["fault"], record.state.value] += 1
        self.held_not += record.took_hold is False

    def include(self, other: Counts) -> None:
        """Add the counts of another part of the corpus."""
        for name in ("samples", "files", "bytes", "held_not"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("states", "faults", "oddities"):
            getattr(self, name).update(getattr(other, name))

    def to_json(self) -> dict[str, Any]:
        """``{"state": {…}, "fault": {name: {state: n}}, "oddity": …}`` and the sums."""

        def nested(counter: Counter[tuple[str, str]]) -> dict[str, dict[str, int]]:
            out: dict[str, dict[str, int]] = {}
            for (name, state), count in sorted(counter.items()):
                out.setdefault(name, {})[state] = count
            return out

        return {
            "samples": self.samples,
            "files": self.files,
            "bytes": self.bytes,
            "state": dict(sorted(self.states.items())),
            "fault": nested(self.faults),
            "oddity": nested(self.oddities),
            "did_not_take_hold": self.held_not,
        }


def corpus_json(
    recipe: Recipe, counts: Counts, libraries: Mapping[str, str], digests: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """The content of ``corpus.badbatch``. ``digests`` has the name, sha256 and length of each manifest file."""
    return {
        "what": _MARK,
        "schema": SCHEMA_VERSION,
        "made_by": f"badbatch {_version('badbatch') or '(not installed)'}",
        "recipe": recipe.to_json(),
        "seed": recipe.seed,
        "counts": counts.to_json(),
        "libraries": dict(libraries),
        "manifests": {name: dict(digest) for name, digest in digests.items()},
    }


def digest_of(data: bytes) -> dict[str, Any]:
    """``sha256`` (hexadecimal) and ``length`` of a file's bytes."""
    return {"sha256": hashlib.sha256(data).hexdigest(), "length": len(data)}


def library_versions(names: tuple[str, ...]) -> dict[str, str]:
    """Versions of Python and of the given distributions that are installed, and of the libraries that Pillow was built with."""
    found = {"python": platform.python_version(), "zlib": zlib.ZLIB_RUNTIME_VERSION}
    found.update({name: version for name in names if (version := _version(name))})
    if "pillow" in found:
        from PIL import features

        for part in ("libjpeg_turbo", "jpg", "zlib", "webp", "libtiff"):
            if version := features.version(part):
                found[f"pillow:{part}"] = version
    return found


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def read_corpus(where: Folder | str) -> dict[str, Any]:
    """``corpus.badbatch`` of a corpus.

    Raises:
        UserError: there is no corpus, or its schema is unknown to this version.
    """
    where = folder(where) if isinstance(where, str) else where
    name = stored_name(where, CORPUS)
    try:
        with where.open(name, "rb") as file:
            data = json.loads(file.read())
    except (OSError, ValueError) as error:
        raise UserError(f"{where.address} is not a corpus of badbatch: it has no readable {name}") from error
    if not isinstance(data, dict) or data.get("what") != _MARK:
        raise UserError(f"{where.address} is not a corpus of badbatch: its {name} is something else")
    if data.get("schema") != SCHEMA_VERSION:
        raise UserError(
            f"{where.address} has a manifest of schema {data.get('schema')}, and this badbatch reads {SCHEMA_VERSION}: "
            "make the corpus again from its recipe"
        )
    if missing := [key for key in _KEYS if key not in data]:
        raise UserError(f"{where.address}: {name} lacks {', '.join(missing)}: make the corpus again")
    return data


def stored_name(where: Folder, name: str) -> str:
    """The real name of one of a corpus's own files: today's, or the former one if only that exists."""
    former = _FORMERLY.get(name)
    if former is None or where.holds(name) or not where.holds(former):
        return name
    return former


def own_files(where: Folder) -> frozenset[str]:
    """The files of a corpus that are not data.

    Raises:
        UserError: there is no corpus.
    """
    return frozenset((stored_name(where, CORPUS), README, *read_corpus(where)["manifests"]))


def read_recipe(where: Folder | str) -> Recipe:
    """The recipe from which a corpus was made.

    Raises:
        UserError: there is no corpus, or its recipe was edited and can no longer be read.
    """
    where = folder(where) if isinstance(where, str) else where
    recipe = read_corpus(where)["recipe"]
    try:
        return Recipe.from_json(recipe)
    except UserError as error:
        name = stored_name(where, CORPUS)
        raise UserError(f"{where.address}: the recipe in {name} cannot be read ({error}){_EDITED}") from error


def read_samples(where: Folder | str) -> Iterator[SampleRecord]:
    """Every sample's record, in order of ids, one at a time.

    Raises:
        UserError: a line is not a valid record, or its id is not the number of the line; the message names the line.
    """
    where = folder(where) if isinstance(where, str) else where
    name = stored_name(where, MANIFEST)
    for number, text in enumerate(read_lines(where, name)):
        try:
            record = SampleRecord.from_json(json.loads(text))
            problem = _problem(record, number)
        except (UserError, ValueError) as error:
            problem = str(error)
        if problem:
            raise UserError(f"{where.address}: line {number + 1} of {name} is not a sample's record ({problem}){_EDITED}")
        yield record


def _problem(record: SampleRecord, number: int) -> str:
    """What is wrong with a parsed record, in words; empty: nothing."""
    if record.id != number:
        return f"its id is {record.id!r}, and should be {number}"
    for name, struck in (("fault", record.fault), ("oddity", record.oddity)):
        if struck is not None and not isinstance(struck.get("fault"), str):
            return f"its {name} is {struck!r}"
    return ""


def read_lines(where: Folder | str, name: str) -> Iterator[bytes]:
    """The raw lines of one of a corpus's manifests, by today's name or the one that it has.

    Raises:
        UserError: it does not exist.
    """
    where = folder(where) if isinstance(where, str) else where
    try:
        with where.open(stored_name(where, name), "rb") as file:
            yield from file
    except FileNotFoundError as error:
        raise UserError(f"{where.address} has no {name}") from error
