"""What a fault is: a small frozen value that can act on one read. It does not know who runs it."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from ..errors import UserError
from ..nearest import listed, unknown


class Effect(enum.Enum):
    """What a fault does to the read. The expectation model uses this, never a fault's name."""

    ERROR = "error"  # the read raises
    VALUE = "value"  # the read returns something that is not a good sample
    UNPICKLABLE = "unpicklable"  # the read returns a good sample that cannot leave its process
    LEGAL = "legal"  # odd but good: a loader must deliver it
    STALL = "stall"  # the read does not return
    SLOW = "slow"  # the read returns the good sample, late
    CRASH = "crash"  # the reading process dies
    TRANSIENT = "transient"  # the read fails at first and succeeds when tried again


DAMAGING = frozenset({Effect.ERROR, Effect.VALUE, Effect.STALL, Effect.CRASH})
"""Effects after which the sample cannot be delivered as good."""


@dataclasses.dataclass(frozen=True)
class Read:
    """One read of one sample, as a fault sees it."""

    sample: int
    value: Callable[[], Any]
    """The undamaged sample."""
    took_hold: Callable[[], None]
    """A function that the fault calls just before it does the harm."""
    attempt: Callable[[], int]
    """How many times this sample was read before, over all processes of the trial. Each call counts as a read, so call
    it once."""


class Fault:
    """Base class of all faults. A subclass is a frozen dataclass, registered with :func:`fault`."""

    kind: ClassVar[str]
    effect: ClassVar[Effect]

    @property
    def damages(self) -> bool:
        """Whether the sample can no longer be delivered as good."""
        return self.effect in DAMAGING

    @property
    def may_recover(self) -> bool:
        """Whether a read with the fault may still return the good sample."""
        return False

    def strike(self, read: Read) -> Any:
        """Apply the fault to one read: raise, block, die, or return what the reader should get instead."""
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """``{"fault": kind, **parameters}``; the inverse of :func:`from_json`."""
        parameters = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}  # type: ignore[arg-type]
        return {"fault": self.kind, **parameters}


_REGISTRY: dict[str, type[Fault]] = {}
F = TypeVar("F", bound=type[Fault])


def fault(kind: str, *, effect: Effect) -> Callable[[F], F]:
    """Register a frozen dataclass as the fault ``kind``. The first docstring line becomes its title."""

    def register(cls: F) -> F:
        if kind in _REGISTRY:
            raise ValueError(f"two faults are called {kind!r}: {_REGISTRY[kind].__name__} and {cls.__name__}")
        cls.kind = kind
        cls.effect = effect
        _REGISTRY[kind] = cls
        return cls

    return register


def registered(kind: str) -> type[Fault] | None:
    """The fault of that kind, if there is one."""
    return _REGISTRY.get(kind)


def registry() -> dict[str, type[Fault]]:
    """All registered faults by kind, sorted by name."""
    return dict(sorted(_REGISTRY.items()))


def from_json(data: dict[str, Any]) -> Fault:
    """Build the fault that :meth:`Fault.to_json` described.

    Raises:
        UserError: the kind is unknown, or a parameter does not fit.
    """
    parameters = dict(data)
    kind = parameters.pop("fault", None)
    cls = _REGISTRY.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise UserError(unknown("fault", kind, _REGISTRY, listed("faults")))
    try:
        return cls(**parameters)
    except (TypeError, ValueError) as error:
        raise UserError(f"fault {kind!r} cannot have the parameters {parameters}: {error}") from error
