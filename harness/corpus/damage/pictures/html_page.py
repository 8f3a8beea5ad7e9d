"""An error page in place of a picture."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from ....faults.base import Effect, fault
from . import PictureFault


@fault("html-page", effect=Effect.ERROR)
@dataclass(frozen=True)
class HtmlPage(PictureFault):
    """The file is the HTML error page that a server sent with status 200."""

    family = "not a picture"

    def damage(self, data: bytes, draw: random.Random, other: Callable[[], bytes]) -> bytes:
        number = draw.getrandbits(48)
        return (
            "<!DOCTYPE html>\n<html><head><title>503 Service Unavailable</title></head>\n"
            "<body><h1>Service Unavailable</h1><p>The server is temporarily unable to service your request. "
            f"Reference #{number:012x}</p></body></html>\n"
        ).encode()
