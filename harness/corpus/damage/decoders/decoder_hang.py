"""A file on which the decoder does not return."""

from __future__ import annotations

from dataclasses import dataclass

from ....faults.base import Effect, fault
from . import DecoderFault


@fault("decoder-hang", effect=Effect.STALL)
@dataclass(frozen=True)
class DecoderHang(DecoderFault):
    """Decoding the picture never returns and keeps the interpreter lock: no Python code of the process can run."""

    befalls = "hang"
