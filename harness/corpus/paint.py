"""Generated pictures: a shaded background, shapes, a little grain, a line or two of text."""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt

from .words import Vocabulary

Pixels = npt.NDArray[np.uint8]


def paint(draw: random.Random, size: tuple[int, int], words: Vocabulary) -> Pixels:
    """A new picture, ``(height, width, 3)`` uint8, about as hard to compress as a photograph."""
    from PIL import Image, ImageDraw, ImageFont

    width, height = size
    grain = np.random.default_rng(draw.getrandbits(64))
    corners = Image.fromarray(grain.integers(30, 226, (2, 2, 3), np.uint8))
    # Between the centres of the four pixels, so that the shade runs from edge to edge.
    shade = np.asarray(corners.resize(size, Image.Resampling.BILINEAR, (0.5, 0.5, 1.5, 1.5)))
    strength = draw.randint(1, 12)
    # At most 12 above 225, or below 30: nothing overflows.
    ground = shade - strength + grain.integers(0, 2 * strength + 1, (height, width, 1), np.uint8)

    picture = Image.fromarray(ground)
    pen = ImageDraw.Draw(picture)
    for _ in range(draw.randint(5, 12)):
        _shape(pen, draw, width, height)
    if min(size) >= 32:
        font = ImageFont.load_default(max(8, height // draw.randint(10, 18)))
        for _ in range(draw.randint(1, 3)):
            place = (draw.randrange(max(1, width // 2)), draw.randrange(height))
            pen.text(place, draw.choice(words.lines), fill=_colour(draw), font=font)
    return np.array(picture)


def _colour(draw: random.Random) -> tuple[int, int, int]:
    return draw.randrange(256), draw.randrange(256), draw.randrange(256)


def _shape(pen: object, draw: random.Random, width: int, height: int) -> None:
    from PIL import ImageDraw

    assert isinstance(pen, ImageDraw.ImageDraw)
    x, y = draw.randrange(width), draw.randrange(height)
    reach_x, reach_y = max(1, int(width * draw.uniform(0.05, 0.3))), max(1, int(height * draw.uniform(0.05, 0.3)))
    box = (x - reach_x, y - reach_y, x + reach_x, y + reach_y)
    kind = draw.randrange(4)
    if kind == 0:
        pen.ellipse(box, fill=_colour(draw))
    elif kind == 1:
        pen.rectangle(box, fill=_colour(draw))
    elif kind == 2:
        pen.polygon([(x, y - reach_y), (x + reach_x, y + reach_y), (x - reach_x, y + reach_y // 2)], fill=_colour(draw))
    else:
        pen.line(box, fill=_colour(draw), width=max(1, min(width, height) // 60))
