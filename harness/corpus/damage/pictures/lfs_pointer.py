"""A Git LFS pointer in place of a picture."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass

from ....faults.base import Effect, fault
from . import PictureFault


@fault("lfs-pointer", effect=Effect.ERROR)
@dataclass(frozen=True)
class LfsPointer(PictureFault):
    """The file is the pointer that Git LFS stores in place of a file that was not fetched."""

    family = "not a picture"

    def damage(self, data: bytes, draw: random.Random, other: Callable[[], bytes]) -> bytes:
        digest = hashlib.sha256(data).hexdigest()
        return f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {len(data)}\n".encode()
