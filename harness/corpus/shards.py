"""Samples as members of tar shards: what a fault of shards may do, and what readers say about the resulting shard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from . import tarfiles
from .layout import StoredFault
from .oracles import NOTHING, WHOLE, lossy, raises
from .tarfiles import Member, Placed


@dataclass(frozen=True)
class Shard:
    """What a fault of one sample may know about its shard."""

    ids: range
    per_shard: int
    """Samples in a full shard."""
    keys: Mapping[int, str]
    """The keys of the shard's samples, and of the samples at the same places of the shards before and after it."""

    def partner(self, sample: int) -> int | None:
        """The next sample in the shard, or for the last sample the previous one; None: it is alone."""
        if len(self.ids) < 2:
            return None
        return sample + 1 if sample + 1 in self.ids else sample - 1

    def elsewhere(self, sample: int) -> int | None:
        """The sample at the same place of the shard before, or otherwise of the shard after; None: there is only one shard."""
        for other in (sample - self.per_shard, sample + self.per_shard):
            if other in self.keys and other not in self.ids:
                return other
        return None


class ShardFault(StoredFault):
    """Base class of the faults of shards."""

    def change_key(self, key: str) -> str:
        """The sample's key, for an oddity of names."""
        return key

    def change_members(self, members: list[Member], sample: int, shard: Shard) -> list[Member]:
        """All members of the shard, in order, after the change to this sample."""
        return members

    def touches(self, sample: int, shard: Shard) -> tuple[int, ...]:
        """Other samples, of any shard, that the fault may damage too."""
        return ()

    def change_blocks(self, data: bytes, placed: Sequence[Placed]) -> bytes:
        """The finished tar, damaged, before it is compressed."""
        return data


def with_members(members: Sequence[Member], sample: int, own: Sequence[Member]) -> list[Member]:
    """All members, with ``own`` in place of the members of this sample, at the position of its first."""
    first = next(place for place, member in enumerate(members) if member.sample == sample)
    kept = [member for member in members if member.sample != sample]
    return [*kept[:first], *own, *kept[first:]]


def middle(placed: Sequence[Placed], place: float) -> int:
    """The index in ``placed`` of the first member of a sample, this far through the samples that follow the first (0…1)."""
    firsts = [at for at, item in enumerate(placed) if at == 0 or placed[at - 1].member.sample != item.member.sample]
    after = firsts[1:] or firsts
    return after[int(place * len(after))]


def judge(
    data: bytes, compressed: bool, wanted: Mapping[int, tuple[str, Mapping[str, bytes]]], stored_keys: Mapping[int, str]
) -> dict[int, dict[str, str]]:
    """What each reference reader says about each sample.

    Args:
        wanted: key and fields of each undamaged sample.
        stored_keys: under which key each sample was really stored.
    """
    said: dict[int, dict[str, str]] = {sample: {} for sample in wanted}
    for name, read in tarfiles.READERS.items():
        given = read(data, compressed)
        found: dict[str, list[Sequence[tuple[str, bytes]]]] = {}
        for key, items in given.groups:
            found.setdefault(key, []).append(items)
        last = given.groups[-1][0] if given.groups else None
        for sample, (key, fields) in wanted.items():
            groups = found.get(stored_keys[sample], [])
            # The error ended the reading inside the group that was read last, or before all groups that were not read.
            cut = given.error if not groups or stored_keys[sample] == last else None
            word = _verdict(groups, fields, cut)
            if word == WHOLE and stored_keys[sample] != key:
                word = lossy("it has the key of another sample")
            said[sample][name] = word
    return said


def _verdict(
    groups: Sequence[Sequence[tuple[str, bytes]]], wanted: Mapping[str, bytes], cut: BaseException | None
) -> str:
    if not groups:
        return NOTHING if cut is None else raises(cut)
    names = [field for items in groups for field, _ in items]
    missing = [field for field in wanted if field not in names]
    if missing:
        return raises(f"declared: there is no .{missing[0]}") if cut is None else raises(cut)
    twice = [field for field in wanted if names.count(field) > 1]
    if twice:
        return raises(f"declared: there are two members .{twice[0]}")
    if len(groups) > 1:
        return raises("declared: its members are not next to each other")
    changed = [field for field, content in groups[0] if content != wanted.get(field, content)]
    return lossy(f".{', .'.join(changed)} changed") if changed else WHOLE
