"""A fault. It imports nothing of badbatch but the fault's own parts, since faults are loaded first."""

from __future__ import annotations

import dataclasses
from typing import NoReturn

from badbatch.harness.faults.base import Effect, Fault, Read, fault


@fault("hail", effect=Effect.ERROR)
@dataclasses.dataclass(frozen=True)
class Hail(Fault):
    """The read fails as if hail had struck the antenna."""

    def strike(self, read: Read) -> NoReturn:
        read.took_hold()
        raise OSError(f"hail struck sample {read.sample}")
