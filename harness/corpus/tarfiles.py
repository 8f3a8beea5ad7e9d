"""Tar shards as bytes, and reference readers of them: what each returns, and how it ends."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from . import gzipped

BLOCK = tarfile.BLOCKSIZE


class Member(NamedTuple):
    """One file in a shard."""

    sample: int
    """The sample that it belongs to, whatever its name is."""
    name: str
    data: bytes

    @property
    def key(self) -> str:
        """The sample's key in the WebDataset convention: everything before the first dot of the last path part."""
        return split(self.name)[0]

    @property
    def field(self) -> str:
        """The field's name in the convention: everything after that dot."""
        return split(self.name)[1]


class Placed(NamedTuple):
    """Where a member is in the tar, in bytes."""

    member: Member
    header: int
    """The offset of its first header block, or of its extended header (PAX) if it has one."""
    data: int


@dataclass(frozen=True)
class Given:
    """What a reader returned from a shard until it ended."""

    groups: tuple[tuple[str, tuple[tuple[str, bytes], ...]], ...]
    """Samples as the reader sees them: key, and (field, bytes) of each member, in order."""
    error: BaseException | None
    """What ended the reading, if it was not the end of the archive."""


def split(name: str) -> tuple[str, str]:
    """Key and field of a member's name."""
    folder, slash, last = name.rpartition("/")
    stem, _, field = last.partition(".")
    return folder + slash + stem, field


def write(members: Sequence[Member]) -> tuple[bytes, list[Placed]]:
    """The members as an uncompressed tar, whose headers contain nothing about this machine or time."""
    sink = io.BytesIO()
    placed = []
    with tarfile.open(fileobj=sink, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for member in members:
            header = sink.tell()
            info = tarfile.TarInfo(member.name)
            info.size = len(member.data)
            archive.addfile(info, io.BytesIO(member.data))
            placed.append(Placed(member, header, sink.tell() - -(-len(member.data) // BLOCK) * BLOCK))
    return sink.getvalue(), placed


def strict(data: bytes, compressed: bool) -> Given:
    """Read member by member with tarfile, without hiding errors. Consecutive members with one key are a sample.

    ``TarFile.next`` ends without an error at a bad header that is not the first; this reader raises there.
    """
    plain, ending = gzipped.decompress(data) if compressed else (data, None)
    groups: list[tuple[str, list[tuple[str, bytes]]]] = []
    error: BaseException | None = ending
    try:
        for info, content in _walk(plain):
            key, field = split(info.name)
            if not groups or groups[-1][0] != key:
                groups.append((key, []))
            groups[-1][1].append((field, content))
    except (tarfile.TarError, OSError, ValueError) as caught:
        error = ending or caught
    return Given(tuple((key, tuple(items)) for key, items in groups), error)


def _walk(plain: bytes) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as archive:
        assert archive.fileobj is not None
        archive.offset = 0
        while True:
            archive.fileobj.seek(archive.offset)
            try:
                info = tarfile.TarInfo.fromtarfile(archive)
            except (tarfile.EOFHeaderError, tarfile.EmptyHeaderError):  # type: ignore[attr-defined]
                return  # the end marker, or the end of the file at a member's boundary, which readers accept
            content = plain[info.offset_data : info.offset_data + info.size]
            if len(content) < info.size:
                raise tarfile.ReadError("unexpected end of data")
            if info.isfile():
                yield info, content


def resync(data: bytes, compressed: bool) -> Given:
    """Everything that tarfile finds when it skips whatever is not a header, by key; of two equal names the later counts."""
    plain, ending = gzipped.decompress(data) if compressed else (data, None)
    groups: dict[str, dict[str, bytes]] = {}
    error: BaseException | None = ending
    try:
        with tarfile.open(fileobj=io.BytesIO(plain), mode="r:", ignore_zeros=True) as archive:
            for info in archive:
                opened = archive.extractfile(info) if info.isfile() else None
                if opened is not None:
                    key, field = split(info.name)
                    groups.setdefault(key, {})[field] = opened.read()
    except (tarfile.TarError, OSError, ValueError) as caught:
        error = ending or caught
    return Given(tuple((key, tuple(items.items())) for key, items in groups.items()), error)


READERS: dict[str, Callable[[bytes, bool], Given]] = {"tarfile": strict, "tarfile-resync": resync}
