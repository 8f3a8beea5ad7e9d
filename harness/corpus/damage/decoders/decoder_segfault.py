"""A file on which the decoder crashes."""

from __future__ import annotations

from dataclasses import dataclass

from ....faults.base import Effect, fault
from . import DecoderFault


@fault("decoder-segfault", effect=Effect.CRASH)
@dataclass(frozen=True)
class DecoderSegfault(DecoderFault):
    """Decoding the picture causes a segmentation fault, as in native decoders that trust a malformed header."""

    befalls = "segfault"
