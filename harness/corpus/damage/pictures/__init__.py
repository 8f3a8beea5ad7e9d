"""What can be wrong with a picture's file."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import ClassVar, Literal

from ...base import DiskFault

Needs = Literal["any", "jpeg", "progressive", "png"]


class PictureFault(DiskFault):
    """Damage to the bytes of one picture: a file of its own, or a member of a shard."""

    kinds: ClassVar[tuple[str, ...]] = ("imagefolder", "webdataset")
    needs: ClassVar[Needs] = "any"
    """How the picture must be stored for the fault to fit; made files are stored so, copied ones are chosen by it, and the
    members of shards are baseline JPEGs."""

    def damage(self, data: bytes, draw: random.Random, other: Callable[[], bytes]) -> bytes:
        """The damaged bytes.

        Args:
            data: the undamaged picture.
            draw: for what the parameters leave open.
            other: the undamaged picture of another sample.
        """
        raise NotImplementedError
