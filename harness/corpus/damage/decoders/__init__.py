"""Whole files that make their decoder fail: marked files for :mod:`badbatch.harness.instrumentation.decoder`."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import ClassVar

from ...marked import marked
from ..pictures import PictureFault


class DecoderFault(PictureFault):
    """Decoding the file harms the process that decodes it. Outside of a trial it is a file of an unknown format."""

    by_name = True
    family = "decoder"
    befalls: ClassVar[str]
    """The name in the marked file: a key of :data:`badbatch.harness.instrumentation.decoder.EFFECTS`."""

    def damage(self, data: bytes, draw: random.Random, other: Callable[[], bytes]) -> bytes:
        return marked(self.befalls, data)
