"""The content of a row, a window, a line or a caption, computed from seed and id; and the id read back, field by field.

Each field alone shows the sample that it belongs to, without the seed and without Faker, so that a value that belongs to
another sample, or was damaged on its way, is noticed. Numbers are exact in their column's type and the same on every platform.
"""

from __future__ import annotations

import functools
import json
import math
import random
import re
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import UserError

UNREADABLE = -1
"""What a reading function returns for a value that no sample has: damaged, mixed, or null where null is forbidden."""

ROW_FIELDS = ("id", "text", "number", "amount", "spans")
"""Of ``parquet`` and ``jsonl``: int64, string, float64 (NaN is legal), int32, list of lists of int64; none may be null."""
WINDOW_FIELDS = ("id", "start_us", "values")
"""Of ``windows``: int64, int64 (microseconds since 1970), :data:`WINDOW` × float32 (NaN is legal, infinity is not)."""
WINDOW = 64
"""Length of a window. Every digit of its code is in it four times, so that a NaN hides none."""
CLASSES = 10
"""How many classes the labels in tar shards know: a sample's class is its id modulo this."""

_START_US, _STEP_US = 1_577_836_800_000_000, 250_000  # 2020-01-01, four windows a second
_AMOUNT_FACTOR, _AMOUNT_SHIFT, _AMOUNTS = 1_103_515_245, 12_345, 1 << 31  # odd factor: a permutation of 0 … 2**31 - 1
_AMOUNT_INVERSE = pow(_AMOUNT_FACTOR, -1, _AMOUNTS)
_PERIOD = 16  # hexadecimal digits in a window's code: 8 of the id, 3 of the length, 5 of a check sum
_TOLERANCE = 1 / 16  # bfloat16 rounds 15.125 by 1/32
_MARKED = re.compile(r"(\[(\d+)\] .*) \[(\d+):([0-9a-f]{8})\]", re.DOTALL)
_MASK = (1 << 64) - 1

_LOCALES = {  # the script's joint between words, and whether the locale has words of its own (others answer in Latin)
    "en_US": (" ", True), "de_DE": (" ", True), "vi_VN": (" ", True), "el_GR": (" ", True), "ru_RU": (" ", True),
    "ar_AA": (" ", True), "he_IL": (" ", True), "hi_IN": (" ", False), "ko_KR": (" ", False), "th_TH": ("", True),
    "ja_JP": ("", True), "zh_CN": ("", True),
}  # fmt: skip


def _mix(number: int) -> int:
    """splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014)."""
    z = (number + 1) * 0x9E3779B97F4A7C15 & _MASK
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    z = (z ^ z >> 27) * 0x94D049BB133111EB & _MASK
    return z ^ z >> 31


@functools.lru_cache(maxsize=4)
def vocabulary(seed: int) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """For each script: the joint between its words, and words, names and places that Faker draws for this seed.

    Raises:
        UserError: Faker is not installed.
    """
    try:
        from faker import Faker
    except ImportError as error:
        raise UserError("texts are drawn by Faker, which is not installed: pip install 'badbatch[corpus]'") from error
    scripts = []
    for locale, (joint, has_words) in _LOCALES.items():
        source = Faker(locale, use_weighting=False)
        source.seed_instance(seed)
        words = source.words(40) if has_words else []
        words += [source.name() for _ in range(8 if has_words else 24)]
        words += [source.city() for _ in range(4 if has_words else 12)]
        # Brackets and line ends are the mark's and the format's own business.
        scripts.append((joint, tuple(re.sub(r"[\[\]\s]+", " ", word).strip() for word in words)))
    return tuple(scripts)


def mark(sample: int, text: str) -> str:
    """``text`` between two marks of the sample, the second of which holds a check sum of all that comes before it."""
    head = f"[{sample}] {text}"
    return f"{head} [{sample}:{zlib.crc32(head.encode()):08x}]"


def text(seed: int, sample: int) -> str:
    """A marked sentence in one of twelve scripts."""
    joint, words = vocabulary(seed)[_mix(sample) % len(_LOCALES)]
    draw = random.Random(f"{seed}/{sample}/text")
    return mark(sample, joint.join(draw.choices(words, k=draw.randint(4, 12))))


def number(sample: int) -> float:
    """The id and a fraction of 12 bits computed from it: exact in float64."""
    return sample + (_mix(sample) >> 52) / 4096


def amount(sample: int) -> int:
    """A whole number of 31 bits; every id below 2**31 has its own."""
    return (sample * _AMOUNT_FACTOR + _AMOUNT_SHIFT) % _AMOUNTS


def spans(sample: int) -> list[list[int]]:
    """Three to five lists of three to five numbers, each ``64 * id + 8 * list + place``."""
    bits = _mix(sample)
    return [
        [64 * sample + 8 * outer + inner for inner in range(3 + (bits >> 8 * outer) % 3)]
        for outer in range(3 + (bits >> 50) % 3)
    ]


def row(seed: int, sample: int) -> dict[str, Any]:
    """A row of ``parquet``, an object of ``jsonl``: see :data:`ROW_FIELDS`."""
    return {
        "id": sample,
        "text": text(seed, sample),
        "number": number(sample),
        "amount": amount(sample),
        "spans": spans(sample),
    }


def start_us(sample: int) -> int:
    """When the window begins, in microseconds since 1970."""
    return _START_US + sample * _STEP_US


def window(sample: int, length: int = WINDOW) -> npt.NDArray[np.float32]:
    """``length`` values in 0…16: a digit of the window's code each, plus a ripple of ±1/8 that also depends on the id.

    The code holds the length, so that a window that was cut or lengthened is noticed.
    """
    bits = _mix(sample * 4096 + length)
    code = (sample & 0xFFFFFFFF) << 32 | (length & 0xFFF) << 20 | bits & 0xFFFFF
    place = np.arange(length)
    digits = np.array([code >> 4 * (_PERIOD - 1 - i) & 15 for i in range(_PERIOD)])
    ripple = np.abs((place * (1 + 2 * (bits >> 30 & 3)) + (bits >> 40 & 31)) % 32 - 16) - 8
    return (digits[place % _PERIOD] + ripple / 64).astype(np.float32)


def window_row(sample: int) -> dict[str, Any]:
    """A row of ``windows``: see :data:`WINDOW_FIELDS`."""
    return {"id": sample, "start_us": start_us(sample), "values": window(sample).tolist()}


def canonical(value: Any) -> bytes:
    """One text for one content: JSON with NaN and infinity by name, no spaces, floats as Python repeats them."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def plain(value: Any) -> Any:
    """The value in Python's own types, from a tensor, an array, an Arrow scalar or bytes of UTF-8."""
    for name in ("as_py", "tolist"):
        if hasattr(value, name):
            return getattr(value, name)()
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace")
    return value


def id_of_id(value: Any) -> int:
    """A plain id; a whole float is taken too, as a column that met a null becomes one."""
    whole = _whole(plain(value))
    return whole if whole is not None and whole >= 0 else UNREADABLE


def id_of_text(value: Any) -> int | None:
    """The id in a marked text; None for the empty string, which is legal and says nothing."""
    value = plain(value)
    if value == "":
        return None
    found = _MARKED.fullmatch(value) if isinstance(value, str) else None
    if found is None or found[2] != found[3]:
        return UNREADABLE
    return int(found[2]) if zlib.crc32(found[1].encode("utf-8", "surrogatepass")) == int(found[4], 16) else UNREADABLE


def id_of_number(value: Any) -> int | None:
    """The id in :func:`number`, also after a trip through float32; None for NaN, which is legal and says nothing."""
    value = plain(value)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or math.isinf(value):
        return UNREADABLE
    if math.isnan(value):
        return None
    for sample in (math.floor(value), round(value), math.ceil(value)):
        if sample >= 0 and value in (number(sample), float(np.float32(number(sample)))):
            return sample
    return UNREADABLE


def id_of_amount(value: Any) -> int:
    """The id in :func:`amount`."""
    whole = _whole(plain(value))
    if whole is None or not 0 <= whole < _AMOUNTS:
        return UNREADABLE
    return (whole - _AMOUNT_SHIFT) * _AMOUNT_INVERSE % _AMOUNTS


def id_of_spans(value: Any) -> int | None:
    """The id in :func:`spans`; None for an empty list. Single empty lists inside are legal, missing numbers are not."""
    value = plain(value)
    if not isinstance(value, (list, tuple)):
        return UNREADABLE
    inner = [plain(item) for item in value]
    if not all(isinstance(item, (list, tuple)) for item in inner):
        return UNREADABLE
    first = next((plain(item[0]) for item in inner if len(item)), None)
    if first is None:
        return (
            None
            if all(isinstance(item, (list, tuple)) and not item for item in inner) and not any(inner)
            else UNREADABLE
        )
    if not isinstance(first, int) or first < 0:
        return UNREADABLE
    wanted = spans(first // 64)
    whole = len(inner) == len(wanted) and all(not len(a) or list(map(plain, a)) == b for a, b in zip(inner, wanted))
    return first // 64 if whole else UNREADABLE


def id_of_start(value: Any) -> int:
    """The id in :func:`start_us`."""
    whole = _whole(plain(value))
    if whole is None or whole < _START_US or (whole - _START_US) % _STEP_US:
        return UNREADABLE
    return (whole - _START_US) // _STEP_US


def id_of_window(value: Any) -> int:
    """The id in :func:`window`, of any floating type, NaN skipped; UNREADABLE also for a wrong length and infinity."""
    value = plain(value)
    if not isinstance(value, (list, tuple)) or any(item is None for item in value):
        return UNREADABLE  # numpy would take None for NaN
    try:
        found = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return UNREADABLE
    if found.ndim != 1 or found.size < _PERIOD or np.isinf(found).any():
        return UNREADABLE
    code = 0
    for place in range(_PERIOD):
        copies = found[place::_PERIOD]
        copies = copies[~np.isnan(copies)]
        if not copies.size or not 0 <= (digit := round(float(copies[0]))) <= 15:
            return UNREADABLE
        code = code << 4 | digit
    sample = code >> 32
    wanted = window(sample, len(found))
    fits = np.isnan(found) | (np.abs(found - wanted) <= _TOLERANCE)
    return sample if code >> 20 & 0xFFF == len(found) & 0xFFF and bool(fits.all()) else UNREADABLE


def id_of_json(value: Any) -> int:
    """The id in a JSON text (or parsed object) whose fields all belong to one sample."""
    value = plain(value)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return UNREADABLE
    if not isinstance(value, Mapping):
        return UNREADABLE
    ids = {found for found in check_row(value).values() if found is not None}
    return ids.pop() if len(ids) == 1 else UNREADABLE


def id_of_key(value: Any) -> int:
    """The id at the beginning of a key of a tar shard, folders aside."""
    found = re.match(r"(\d+)", str(plain(value)).rpartition("/")[2])
    return int(found[1]) if found else UNREADABLE


_READERS = {
    "id": id_of_id,
    "text": id_of_text,
    "number": id_of_number,
    "amount": id_of_amount,
    "spans": id_of_spans,
    "start_us": id_of_start,
    "values": id_of_window,
    "__key__": id_of_key,
    "txt": id_of_text,
    "json": id_of_json,
}


def check_row(row: Mapping[str, Any]) -> dict[str, int | None]:
    """Whose each field is, by the field's own content, for the fields that this module knows.

    Returns:
        For each known field that is there: the id of the sample that it belongs to; None where it legally says nothing
        (empty string, empty list, NaN); :data:`UNREADABLE` where it belongs to no sample. The sample is intact when
        none is unreadable and all ids are equal. ``cls``, a class, is only held against the ids beside it.
    """
    found: dict[str, int | None] = {name: read(row[name]) for name, read in _READERS.items() if name in row}
    if "cls" in row:
        owner = next((sample for sample in found.values() if sample is not None and sample >= 0), None)
        label = plain(row["cls"])
        label = int(label) if isinstance(label, str) and label.isdecimal() else _whole(label)
        found["cls"] = None if owner is None else owner if label == owner % CLASSES else UNREADABLE
    return found


def _whole(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if isinstance(value, float) and not (math.isfinite(value) and value.is_integer()):
        return None
    return int(value)
