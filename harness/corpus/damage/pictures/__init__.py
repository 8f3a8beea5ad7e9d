"""What can be wrong with a picture's file."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import ClassVar, Literal

from ...base import DiskFault

Needs = Literal["any", "jpeg", "progressive", "png"]


class PictureFault(DiskFault):
    """Damage to the bytes of one picture: a separate file, or a member of a shard."""

    kinds: ClassVar[tuple[str, ...]] = ("imagefolder", "webdataset")
    needs: ClassVar[Needs] = "any"
    """How the picture must be stored for the fault to work. Generated files are stored that way, copied files are
    selected by it, and the members of shards are baseline JPEGs."""

    def damage(self, data: bytes, draw: random.Random, other: Callable[[], bytes]) -> bytes:
        """The damaged bytes.

        Args:
            data: the undamaged picture.
            draw: random choices that the parameters leave open.
            other: the undamaged picture of another sample.
        """
        raise NotImplementedError
