"""The id mark: what it survives, and what never looks like one."""

from __future__ import annotations

import io
import time
import warnings
from typing import Any

import numpy as np
import pytest
from badbatch.harness.errors import HarnessError
from badbatch.harness.identity.mark_code import mark_words, unword
from badbatch.harness.identity.marks import MAX_ID, draw_mark, read_mark
from hypothesis import given, settings
from hypothesis import strategies as st

Image = pytest.importorskip("PIL.Image")

ids = st.integers(0, MAX_ID)
sizes = st.tuples(st.integers(64, 512), st.integers(64, 512))
seeds = st.integers(0, 1 << 30)
smooth = st.sampled_from(
    [Image.Resampling.BILINEAR, Image.Resampling.BICUBIC, Image.Resampling.LANCZOS, Image.Resampling.BOX]
)


def scene(width: int, height: int, seed: int) -> Any:
    """Waves, blocks and grain: contents of every frequency, some with edges like the mark's."""
    source = np.random.default_rng(seed)
    down, across = np.arange(height)[:, None] / height, np.arange(width)[None, :] / width
    pixels = np.empty((height, width, 3), np.int16)
    pixels[..., 0] = 128 + 100 * np.sin(across * source.uniform(2, 40) + source.uniform(0, 6))
    pixels[..., 1] = 128 + 100 * np.sin(down * source.uniform(2, 40))
    pixels[..., 2] = 255 * across
    for _ in range(6):
        top, left = source.integers(0, height), source.integers(0, width)
        pixels[top : top + source.integers(4, height), left : left + source.integers(4, width)] = source.integers(
            0, 256, 3
        )
    strength = int(source.integers(1, 30))
    pixels += source.integers(-strength, strength + 1, (height, width, 1), dtype=np.int16)
    return pixels.clip(0, 255).astype(np.uint8)


def marked(sample: int, width: int = 256, height: int = 256, seed: int = 0) -> Any:
    """A scene with a mark, as an array of height × width × 3."""
    pixels = scene(width, height, seed)
    draw_mark(pixels, sample)
    return pixels


def jpeg(pixels: Any, quality: int) -> Any:
    """The picture after a trip through JPEG."""
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "JPEG", quality=quality)
    return Image.open(out)


@given(ids, sizes, st.integers(50, 95), seeds)
@settings(max_examples=25, deadline=None)
def test_survives_jpeg_at_every_size(sample: int, size: tuple[int, int], quality: int, seed: int) -> None:
    """A mark is read back whole from a JPEG of quality 50 or more at any size from 64 × 64 on."""
    reading = read_mark(jpeg(marked(sample, *size, seed), quality))
    assert (sample, True) == (reading.id, reading.whole)


@given(ids, sizes, st.integers(50, 95), smooth, st.tuples(st.integers(64, 300), st.integers(64, 300)), seeds)
@settings(max_examples=25, deadline=None)
def test_survives_resizing(
    sample: int, size: tuple[int, int], quality: int, filter_: Any, target: tuple[int, int], seed: int
) -> None:
    """A mark is read back whole after resizing to 64 × 64, and to any other size, down or up."""
    picture = jpeg(marked(sample, *size, seed), quality)
    for goal in ((64, 64), target):
        reading = read_mark(picture.resize(goal, filter_))
        assert (sample, True) == (reading.id, reading.whole)


@given(ids, st.sampled_from(["L", "1", "P", "RGB", "RGBA", "CMYK", "YCbCr", "I;16", "F", "LA"]), seeds)
@settings(max_examples=25, deadline=None)
def test_survives_every_mode(sample: int, mode: str, seed: int) -> None:
    """A mark is read back from a picture of every mode."""
    picture = Image.fromarray(marked(sample, seed=seed))
    if mode == "I;16":
        picture = Image.fromarray(np.asarray(picture.convert("L")).astype(np.uint16) * 257)
    elif mode == "P":
        picture = picture.quantize(256)
    elif mode == "1":
        picture = picture.convert("1", dither=Image.Dither.NONE)
    else:
        picture = picture.convert(mode)
    reading = read_mark(picture)
    assert (sample, True) == (reading.id, reading.whole)


@given(ids, st.booleans(), st.sampled_from(["uint8", "unit", "normalised", "half", "int64"]), seeds)
@settings(max_examples=25, deadline=None)
def test_survives_normalising_in_both_layouts(sample: int, channels_first: bool, form: str, seed: int) -> None:
    """A mark is read back from HWC and CHW arrays, of whole numbers or floats, normalised or not."""
    pixels: Any = marked(sample, 160, 128, seed)
    if form == "int64":
        pixels = pixels.astype(np.int64)
    elif form != "uint8":
        pixels = pixels / 255.0
        if form == "normalised":
            pixels = (pixels - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225]
        pixels = pixels.astype(np.float16 if form == "half" else np.float32)
    reading = read_mark(pixels.transpose(2, 0, 1) if channels_first else pixels)
    assert (sample, True) == (reading.id, reading.whole)


@given(ids, st.integers(0, 6), sizes, st.integers(50, 95), seeds)
@settings(max_examples=25, deadline=None)
def test_survives_every_orientation(sample: int, turn: int, size: tuple[int, int], quality: int, seed: int) -> None:
    """A mark is read back from a picture turned or mirrored in each of the ways that EXIF knows."""
    reading = read_mark(jpeg(marked(sample, *size, seed), quality).transpose(Image.Transpose(turn)))
    assert (sample, True) == (reading.id, reading.whole)


@given(ids, st.tuples(*[st.floats(0, 0.1)] * 4), st.sampled_from([(64, 64), (224, 224)]), smooth, seeds)
@settings(max_examples=40, deadline=None)
def test_survives_crops(
    sample: int, crop: tuple[float, float, float, float], goal: tuple[int, int], filter_: Any, seed: int
) -> None:
    """A mark is read back from a picture with up to a tenth cut off at each side, resized to a usual input size."""
    picture = jpeg(marked(sample, 256, 256, seed), 80)
    left, top, right, bottom = (round(256 * share) for share in crop)
    reading = read_mark(picture.crop((left, top, 256 - right, 256 - bottom)).resize(goal, filter_))
    assert sample == reading.id


@given(
    ids,
    seeds,
    st.sampled_from([(64, 64), (160, 224), (256, 256)]),
    st.floats(0.3, 0.95),
    st.sampled_from([0, 128, 255]),
)
@settings(max_examples=30, deadline=None)
def test_a_picture_that_lost_its_end_is_not_whole(
    sample: int, seed: int, size: tuple[int, int], kept: float, grey: int
) -> None:
    """A picture whose lower part decoded to one flat colour is never read as whole, turned or not, resized or not."""
    pixels = marked(sample, *size, seed)
    pixels[int(size[1] * kept) :] = grey
    for picture in (
        Image.fromarray(pixels),
        Image.fromarray(pixels).resize((64, 64)),
        Image.fromarray(pixels).rotate(180),
    ):
        reading = read_mark(picture)
        assert not reading.whole
        assert reading.id in (None, sample)


@given(ids, seeds, st.floats(0.1, 0.9), st.integers(50, 95), st.sampled_from([(96, 64), (256, 256), (224, 160)]))
@settings(max_examples=25, deadline=None)
def test_a_truncated_jpeg_is_not_whole(
    sample: int, seed: int, kept: float, quality: int, size: tuple[int, int]
) -> None:
    """Pillow's result for a truncated JPEG, if it is set to load truncated images, is never read as whole."""
    from PIL import ImageFile

    out = io.BytesIO()
    Image.fromarray(marked(sample, *size, seed)).save(out, "JPEG", quality=quality)
    data = out.getvalue()
    scan = data.rindex(b"\xff\xda") + 14
    ImageFile.LOAD_TRUNCATED_IMAGES = True
    try:
        reading = read_mark(Image.open(io.BytesIO(data[: scan + int((len(data) - scan) * kept)])))
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = False
    assert not reading.whole
    assert reading.id in (None, sample)


@given(ids, ids, seeds)
@settings(max_examples=20, deadline=None)
def test_two_pictures_in_one_are_nobody(first: int, second: int, seed: int) -> None:
    """A picture whose lower half is another sample's is read as neither, with both ids named."""
    pixels = marked(first, seed=seed)
    pixels[128:] = marked(second, seed=seed + 1)[128:]
    reading = read_mark(pixels)
    assert (first, second) == (reading.top, reading.bottom)
    assert reading.whole == (first == second)
    assert reading.id == (first if first == second else None)


@given(seeds, st.sampled_from([(64, 64), (128, 128), (200, 150), (256, 256)]))
@settings(max_examples=40, deadline=None)
def test_nothing_is_read_from_unmarked_pictures(seed: int, size: tuple[int, int]) -> None:
    """A picture without a mark is not read as any sample."""
    assert read_mark(scene(*size, seed)).id is None


def test_noise_and_stripes_are_never_misread() -> None:
    """None of many random strips, the likeliest to pass for marks, is read as a sample."""
    source = np.random.default_rng(3)
    misread = 0
    for _ in range(150):
        # Every pair of cells in contrast, as in a real strip: only the checksum prevents a wrong reading.
        cells = source.integers(0, 2, (32, 32)).astype(np.uint8)
        cells[1::2] = 1 - cells[0::2]
        misread += read_mark(cells.repeat(2, axis=0).repeat(2, axis=1) * 200).id is not None
    assert misread == 0


def test_a_strip_with_any_few_wrong_cells_is_refused() -> None:
    """No pattern of one or two wrong bits, and none of thousands of larger ones, turns one id into another."""
    source = np.random.default_rng(4)
    for sample in (0, 1, 123_456, MAX_ID):
        first, second = mark_words(sample)[0]
        whole = first << 24 | second
        patterns = [1 << i | 1 << j for i in range(48) for j in range(i, 48)]
        patterns += [int(pattern) for pattern in source.integers(1, 1 << 48, 2000)]
        for pattern in patterns:
            wrong = whole ^ pattern
            assert unword(wrong >> 24, wrong & 0xFFFFFF, 0) is None


def test_tensors_are_read() -> None:
    """Tensors are read like arrays, also in bfloat16, and also as a batch of one."""
    torch = pytest.importorskip("torch")
    pixels = torch.from_numpy(marked(77)).permute(2, 0, 1)
    for tensor in (pixels, pixels.float() / 255, (pixels.float() / 255 - 0.45).to(torch.bfloat16), pixels[None]):
        assert (read_mark(tensor).id, read_mark(tensor).whole) == (77, True)


@pytest.mark.parametrize(
    "picture", [np.zeros((1, 1, 3), np.uint8), np.zeros((5000, 1), np.uint8), np.zeros((64, 64)), np.zeros(5)]
)
def test_what_can_hold_no_mark_is_nobody(picture: Any) -> None:
    """Pictures too small for a mark, flat pictures and things that are not pictures give no reading."""
    assert read_mark(picture).id is None


def test_not_a_number_is_nobody() -> None:
    """A picture of nothing but NaN reads as nothing, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_mark(np.full((64, 64, 3), np.nan, np.float32)).id is None


def test_ids_beyond_the_marks_range_are_refused() -> None:
    """An id that does not fit is refused when it is drawn, and so is a picture that is too small."""
    with pytest.raises(HarnessError, match="16777215"):
        draw_mark(np.zeros((64, 64), np.uint8), MAX_ID + 1)
    with pytest.raises(HarnessError, match="63 × 64"):
        draw_mark(np.zeros((64, 63), np.uint8), 1)


def test_an_uncropped_picture_is_not_searched() -> None:
    """Reading a picture that is whole costs a fraction of reading one whose crop has to be found."""
    whole = marked(5)
    cropped = whole[20:, 20:]
    assert read_mark(cropped).id == read_mark(whole).id == 5
    assert 3 * min(_cost(whole) for _ in range(10)) < min(_cost(cropped) for _ in range(10))


def _cost(pixels: Any) -> float:
    began = time.process_time()
    for _ in range(10):
        read_mark(pixels)
    return (time.process_time() - began) / 10
