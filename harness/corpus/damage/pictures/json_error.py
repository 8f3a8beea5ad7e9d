"""An API's error in place of a picture."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from ....faults.base import Effect, fault
from . import PictureFault


@fault("json-error", effect=Effect.ERROR)
@dataclass(frozen=True)
class JsonError(PictureFault):
    """The file is the JSON error message of the service that should have sent the picture."""

    family = "not a picture"

    def damage(self, data: bytes, draw: random.Random, other: Callable[[], bytes]) -> bytes:
        return f'{{"error": {{"code": 403, "message": "Access denied", "request": "{draw.getrandbits(64):016x}"}}}}'.encode()
