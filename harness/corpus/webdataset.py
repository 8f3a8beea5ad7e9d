"""``webdataset``: tar shards with a picture, a text, a JSON object and a class for each sample, plain or gzipped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import UserError
from . import content, gzipped, shards, tarfiles
from .base import Chunk, CorpusKind, DiskFault, MadeFile, Recipe, State
from .damage.pictures import PictureFault
from .draws import draw
from .layout import Layout, Regions, StoredFault, check_choices, storage_of
from .oracles import lossy, state_of
from .records import record_of
from .shards import Shard, ShardFault
from .studio import picture_bytes
from .tarfiles import Member
from .truth import judge

_CHUNK = 100  # samples: about half a second's work, most of it on pictures


class WebDatasetKind(CorpusKind):
    """One sample is a group of members ``<key>.cls``, ``.jpg``, ``.json`` and ``.txt``; the key is the id in eight digits."""

    name = "webdataset"
    formats = ("tar", "tar.gz")
    libraries = ("pillow", "numpy", "faker", "opencv-python-headless", "opencv-python")

    def check(self, recipe: Recipe) -> None:
        check_choices(recipe, storage_of(recipe, self.formats))
        try:
            import PIL  # noqa: F401 - only to see whether it is installed
        except ImportError as error:
            raise UserError(
                "pictures are drawn by Pillow, which is not installed: pip install 'badbatch[corpus]'"
            ) from error
        self._fields(recipe, 0, None)

    def _layout(self, recipe: Recipe) -> Layout:
        return Layout(recipe, storage_of(recipe, self.formats), recipe.per_file)

    def chunks(self, recipe: Recipe) -> Iterator[Chunk]:
        return self._layout(recipe).chunks(_CHUNK)

    def undamaged(self, recipe: Recipe, sample: int) -> bytes:
        return b"".join(self._fields(recipe, sample, self._layout(recipe).of_sample(sample)).values())

    def members(self, recipe: Recipe, sample: int) -> dict[str, bytes]:
        """The sample's members before any damage: field name to bytes."""
        return self._fields(recipe, sample, self._layout(recipe).of_sample(sample))

    def make(self, recipe: Recipe, chunk: Chunk) -> Iterator[MadeFile]:
        layout = self._layout(recipe)
        for number in chunk.payload:
            yield from self._files(recipe, layout, number)

    def _fields(self, recipe: Recipe, sample: int, fault: DiskFault | None) -> dict[str, bytes]:
        """The undamaged fields, in the order of their members."""
        row = content.row(recipe.seed, sample)
        fields: dict[str, Any] = {
            "cls": str(sample % content.CLASSES),
            "jpg": picture_bytes(recipe.seed, sample, recipe.size, recipe.samples),
        }
        fields["json"] = content.canonical({name: row[name] for name in ("id", "number", "amount", "spans")})
        fields["txt"] = row["text"]
        if isinstance(fault, StoredFault) and fault.odd:
            fault.change_row(fields)
        return {name: value.encode() if isinstance(value, str) else value for name, value in fields.items()}

    def _files(self, recipe: Recipe, layout: Layout, number: int) -> Iterator[MadeFile]:
        storage = storage_of(recipe, self.formats)
        compressed = storage == "tar.gz"
        path = f"data/shard-{number:06d}.{storage}"
        ids = layout.ids(number)
        faults = {sample: layout.of_sample(sample) for sample in ids}
        whole = layout.of_file(number)
        strike = whole if isinstance(whole, ShardFault) else ShardFault()
        shard = _shard(layout, number)

        fields = {sample: self._fields(recipe, sample, faults[sample]) for sample in ids}
        wanted = {sample: (shard.keys[sample], fields[sample]) for sample in ids}
        meant = {
            sample: [Member(sample, f"{key}.{field}", data) for field, data in own.items()]
            for sample, (key, own) in wanted.items()
        }
        pictures = {
            sample: self._damaged_picture(recipe, sample, fault, fields[sample]["jpg"])
            for sample, fault in faults.items()
            if isinstance(fault, PictureFault)
        }
        members = [
            member._replace(data=pictures[sample]) if sample in pictures and member.field == "jpg" else member
            for sample in ids
            for member in meant[sample]
        ]
        members, suffers = _damaged(members, faults, shard)
        tar, placed = tarfiles.write(members)
        tar = strike.change_blocks(tar, placed)
        data = gzipped.compress(tar) if compressed else tar
        data = (whole if isinstance(whole, StoredFault) else strike).change_bytes(
            data, Regions(((0, len(data)),), ((0, len(data)),), len(data))
        )
        own = {sample: [member for member in members if member.sample == sample] for sample in ids}
        said, spared = self._judged(data, compressed, wanted, {sample: own[sample][0].key for sample in ids}, pictures)
        for sample, (neighbour, fault) in _robbed(layout, number).items():
            if state_of(said[sample])[0] is State.GOOD:
                suffers[sample] = fault
                said[sample]["key index"] = lossy(f"sample {neighbour} of another shard has the same key")

        records = tuple(
            record_of(
                sample,
                path,
                said[sample],
                stored=b"".join(member.data for member in own[sample]),
                wanted=b"".join(fields[sample].values()),
                own=None if sample in spared else faults[sample],
                whole=whole,
                neighbour=suffers.get(sample),
                changed=own[sample] != meant[sample] and sample not in pictures,  # the decoders' results already report these
                members=tuple(member.name for member in own[sample]),
            )
            for sample in ids
        )
        yield MadeFile(path, data, records, fault=None if whole is None else whole.to_json())
        if isinstance(whole, StoredFault) and whole.adds_file is not None:
            empty = tarfiles.write([])[0]
            empty = gzipped.compress(empty) if compressed else empty
            yield MadeFile(f"data/shard-{number:06d}-{whole.adds_file}.{storage}", empty, fault=whole.to_json())

    def _damaged_picture(self, recipe: Recipe, sample: int, fault: PictureFault, picture: bytes) -> bytes:
        def another() -> bytes:
            return picture_bytes(recipe.seed, (sample + 1) % recipe.samples, recipe.size, recipe.samples)

        return fault.damage(picture, draw(recipe.seed, sample, "damage"), another)

    def _judged(
        self,
        data: bytes,
        compressed: bool,
        wanted: Mapping[int, tuple[str, Mapping[str, bytes]]],
        stored_keys: Mapping[int, str],
        pictures: Mapping[int, bytes],
    ) -> tuple[dict[int, dict[str, str]], set[int]]:
        """What readers of shards say about each sample; for one whose picture was damaged, what decoders say about the picture.

        If the picture is as good as before and the readers still refuse it, their results are used: something else
        damaged the sample. Those samples are the second value.
        """
        stored = {
            sample: (key, {**fields, "jpg": pictures[sample]} if sample in pictures else fields)
            for sample, (key, fields) in wanted.items()
        }
        said = shards.judge(data, compressed, stored, stored_keys)
        spared = set()
        for sample, picture in pictures.items():
            of_picture = judge(picture, wanted[sample][1]["jpg"])
            if state_of(of_picture)[0] is State.GOOD and state_of(said[sample])[0] is not State.GOOD:
                spared.add(sample)
            else:
                said[sample] = of_picture
        return said, spared


def _damaged(
    members: list[Member], faults: Mapping[int, DiskFault | None], shard: Shard
) -> tuple[list[Member], dict[int, DiskFault]]:
    """The members after all changes, and for each sample that another sample's fault may damage, that fault."""
    suffers: dict[int, DiskFault] = {}
    for sample, fault in faults.items():
        if isinstance(fault, ShardFault) and not fault.odd:
            members = fault.change_members(members, sample, shard)
            suffers.update(dict.fromkeys(fault.touches(sample, shard), fault))
    return members, suffers


def _key(layout: Layout, sample: int) -> str:
    fault = layout.of_sample(sample)
    key = f"{sample:08d}"
    return fault.change_key(key) if isinstance(fault, ShardFault) and fault.odd else key


def _shard(layout: Layout, number: int) -> Shard:
    near = (other for other in (number - 1, number, number + 1) if 0 <= other < layout.files)
    keys = {sample: _key(layout, sample) for other in near for sample in layout.ids(other)}
    return Shard(layout.ids(number), layout.per_file, keys)


def _robbed(layout: Layout, number: int) -> dict[int, tuple[int, ShardFault]]:
    """The samples of this shard whose key is also in a neighbouring shard, the sample with that key, and its fault."""
    found: dict[int, tuple[int, ShardFault]] = {}
    for beside in (number - 1, number + 1):
        if not 0 <= beside < layout.files:
            continue
        shard = _shard(layout, beside)
        for neighbour in shard.ids:
            fault = layout.of_sample(neighbour)
            if isinstance(fault, ShardFault):
                touched = (sample for sample in fault.touches(neighbour, shard) if sample in layout.ids(number))
                found.update(dict.fromkeys(touched, (neighbour, fault)))
    return found


KIND = WebDatasetKind()
