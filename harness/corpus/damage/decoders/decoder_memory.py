"""A file on which the decoder takes all memory."""

from __future__ import annotations

from dataclasses import dataclass

from ....faults.base import Effect, fault
from . import DecoderFault


@fault("decoder-memory", effect=Effect.ERROR)
@dataclass(frozen=True)
class DecoderMemory(DecoderFault):
    """Decoding the picture allocates memory until none is left.

    If the process has a memory limit, that ends in a MemoryError.
    """

    befalls = "memory"
