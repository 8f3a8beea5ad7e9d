"""A JPEG with arithmetic coding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ....faults.base import Effect, fault
from ...arithmetic import encode
from . import PictureOddity

if TYPE_CHECKING:
    from ...studio import Canvas


@fault("arithmetic-coding", effect=Effect.LEGAL)
@dataclass(frozen=True)
class ArithmeticCoding(PictureOddity):
    """A grey JPEG with arithmetic coding in place of Huffman: legal, but contested where Pillow cannot decode it."""

    family = "coding"
    weight = 0.3

    def encode(self, canvas: Canvas) -> tuple[bytes, str]:
        return encode(np.asarray(canvas.picture.convert("L"))), ".jpg"
