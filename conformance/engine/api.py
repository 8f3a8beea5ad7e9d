"""The suite as a library call."""

from __future__ import annotations

from typing import Any

from ...harness.errors import UserError
from ..options import Options
from ..report.model import Report
from .suite import Suite


def check_loader(loader: str, **options: Any) -> Report:
    """Check a loader's promises, as a library call.

    Args:
        loader: ``pkg.module:attr``, or a factory that can be imported by its module and name.
        options: fields of :class:`~badbatch.conformance.options.Options`.

    Raises:
        UserError: the loader, or an option, is wrong.
    """
    given = "".join(f", {name}={value!r}" for name, value in options.items())
    with Suite(name_of(loader), Options(**options), command=f"check_loader({name_of(loader)!r}{given})") as suite:
        suite.start()
        suite.prepare()
        return suite.run()


def name_of(loader: Any) -> str:
    """The ``pkg.module:attr`` of a factory.

    Raises:
        UserError: it has none, like a lambda or a function inside another: the trial could not import it.
    """
    if isinstance(loader, str):
        return loader
    module, name = getattr(loader, "__module__", None), getattr(loader, "__qualname__", None)
    if not module or not name or "<" in name or module == "__main__":
        raise UserError(
            f"{loader!r} cannot be imported by a name: define the factory at the top level of a module, "
            "or give its name as pkg.module:attr"
        )
    return f"{module}:{name}"
