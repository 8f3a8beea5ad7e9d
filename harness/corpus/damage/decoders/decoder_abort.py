"""A file on which the decoder aborts."""

from __future__ import annotations

from dataclasses import dataclass

from ....faults.base import Effect, fault
from . import DecoderFault


@fault("decoder-abort", effect=Effect.CRASH)
@dataclass(frozen=True)
class DecoderAbort(DecoderFault):
    """Decoding the picture fails an assertion in native code, which ends the process (SIGABRT)."""

    befalls = "abort"
