"""A read that raises an exception which takes only keyword arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from .base import Effect, Fault, Read, fault


class KeywordOnlyError(Exception):
    """An error whose constructor accepts only keyword arguments."""

    def __init__(self, *, sample: int, reason: str) -> None:
        super().__init__(f"sample {sample} {reason}")
        self.sample = sample
        self.reason = reason


@fault("keyword-only-error", effect=Effect.ERROR)
@dataclass(frozen=True)
class RaiseKeywordOnlyError(Fault):
    """The read raises an exception whose constructor takes keyword arguments only.

    Neither ``type(error)(message)`` nor pickle's default can rebuild it when it leaves a worker. Clients of object
    stores raise such errors, with the request and the response as keywords.
    """

    def strike(self, read: Read) -> NoReturn:
        read.took_hold()
        raise KeywordOnlyError(sample=read.sample, reason="cannot be read")
