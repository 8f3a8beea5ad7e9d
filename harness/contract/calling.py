"""Finds the loader that the user named, and calls it the way its users do."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
from collections.abc import Callable
from typing import Any

from .. import plugins
from ..articles import with_article
from ..errors import LoaderError, one_line
from ..nearest import hint
from .job import Contract, Job, declared


@dataclasses.dataclass(frozen=True)
class Target:
    """A resolved loader."""

    name: str
    """``pkg.module:attr``."""
    call: Callable[..., Any]
    drop_in: bool
    """Called as ``cls(dataset, batch_size=…)``, not as ``factory(job)``."""
    module: str = ""
    """The module that was imported for it."""

    @property
    def ids(self) -> Callable[[Any], Any] | None:
        """The factory's own ``@loader(ids=…)``."""
        return getattr(self.call, "__badbatch_ids__", None)

    def takes(self, parameter: str) -> bool:
        """Whether it can be called with a keyword argument of this name."""
        found = _parameters(self.call)
        return found is None or any(p.name == parameter or p.kind is p.VAR_KEYWORD for p in found)

    def contract(self, source: str) -> Contract:
        """What is declared for a source by the decorator, or by the way in which a drop-in class is called."""
        if not self.drop_in:
            return declared(self.call, source)
        base = declared(self.call, source)
        if base.sources is None:
            base = dataclasses.replace(base, sources=("map", "sharded_stream"))
        if base.persistent_workers is None and _names(self.call, "persistent_workers"):
            base = dataclasses.replace(base, persistent_workers=True)
        if base.shuffles is None and not _takes(self.call, "shuffle"):
            base = dataclasses.replace(base, shuffles=False)
        if base.order is None and not _takes(self.call, "generator"):
            base = dataclasses.replace(base, order="free")
        return base


@dataclasses.dataclass(frozen=True)
class Built:
    """A loader, and how to set its epoch."""

    loader: Any
    set_epoch: Callable[[int], Any] | None


def resolve(name: str) -> Target:
    """Import ``pkg.module:attr``, or the loader that another package adds under that name.

    Raises:
        LoaderError: in one line, what is wrong with the name, the module or the attribute.
    """
    module_name, colon, attribute = name.partition(":")
    if not colon and (added := plugins.named(plugins.LOADERS)):
        if name not in added:
            raise LoaderError(f"{name!r} names no loader: write it as pkg.module:attr, or as one of {', '.join(added)}")
        return dataclasses.replace(resolve(added[name].value), name=name)
    if not colon or not module_name or not attribute:
        raise LoaderError(f"{name!r} names no loader: write it as pkg.module:attr, like torch.utils.data:DataLoader")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(error.name + ".")):
            raise LoaderError(
                f"there is no module {error.name!r}: run from the folder that contains it, or install it"
            ) from error
        raise LoaderError(f"{module_name} cannot be imported: {one_line(error)}") from error
    except (Exception, SystemExit) as error:
        raise LoaderError(f"{module_name} cannot be imported: {one_line(error)}") from error
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            names = [known for known in dir(found) if not known.startswith("_")]
            raise LoaderError(f"{module_name} has no attribute {attribute!r}{hint(part, names, '')}") from None
        except (Exception, SystemExit) as error:  # a module's own __getattr__, which may import more
            raise LoaderError(f"{name} cannot be imported: {one_line(error)}") from error
    return dataclasses.replace(describe(name, found), module=module_name)


def describe(name: str, found: Any) -> Target:
    """What kind of loader an object is.

    Raises:
        LoaderError: it is not a loader: not callable, or it takes neither a job nor a data set.
    """
    if not callable(found):
        raise LoaderError(f"{name} is {with_article(type(found).__name__)}, not a callable: a factory takes a job, a class a dataset")
    parameters = _parameters(found)
    if parameters is None:
        return Target(name, found, drop_in=False)
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
    if positional and positional[0].name == "dataset":
        return Target(name, found, drop_in=True)
    required = [p.name for p in positional if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    required += [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if not positional or len(required) > 1:
        given = ", ".join(required) or "nothing"
        raise LoaderError(
            f"{name} takes {given}: a factory takes one argument, the job; a drop-in class takes `dataset` first"
        )
    return Target(name, found, drop_in=False)


def build(target: Target, job: Job) -> Built:
    """Call the loader for one job.

    Raises:
        LoaderError: it returned something that cannot be iterated.
        Exception: anything that the loader itself raises.
    """
    if target.drop_in:
        return _drop_in(target, job)
    loader = target.call(job)
    if not hasattr(loader, "__iter__") and not hasattr(loader, "__getitem__"):
        raise LoaderError(
            f"{target.name} returned {with_article(type(loader).__name__)}, which cannot be iterated: return an iterable of batches"
        )
    return Built(loader, _set_epoch(loader))


def _drop_in(target: Target, job: Job) -> Built:
    import torch
    from torch.utils.data import DistributedSampler, IterableDataset

    set_epoch: Callable[[int], Any] | None = None
    options: dict[str, Any] = {
        "batch_size": job.batch_size,
        "num_workers": job.num_workers,
        "drop_last": job.drop_last,
    }
    if job.num_workers > 0:
        options["timeout"] = job.timeout
        if job.start_method is not None:
            options["multiprocessing_context"] = job.start_method
        if job.persistent_workers:
            options["persistent_workers"] = True
    if not isinstance(job.dataset, IterableDataset):
        assert job.dataset is not None
        if job.world_size > 1:
            sampler: Any = DistributedSampler(
                job.dataset,
                num_replicas=job.world_size,
                rank=job.rank,
                shuffle=job.shuffle,
                seed=job.seed,
            )
            options["sampler"] = sampler
            set_epoch = sampler.set_epoch
        else:
            options["shuffle"] = job.shuffle
            if job.shuffle:
                options["generator"] = torch.Generator().manual_seed(job.seed)
    options = {name: value for name, value in options.items() if target.takes(name)}
    loader = target.call(job.dataset, **options)
    if not hasattr(loader, "__iter__") and not hasattr(loader, "__getitem__"):
        raise LoaderError(f"{target.name} made {with_article(type(loader).__name__)}, which cannot be iterated")
    return Built(loader, set_epoch or _set_epoch(loader))


def _set_epoch(loader: Any) -> Callable[[int], Any] | None:
    """The function that a training script would call before each epoch: the loader's own, or that of its sampler."""
    found = getattr(loader, "set_epoch", None) or getattr(getattr(loader, "sampler", None), "set_epoch", None)
    return found if callable(found) else None


def _names(call: Callable[..., Any], parameter: str) -> bool:
    """Whether a signature has a parameter of that name."""
    return any(found.name == parameter for found in _parameters(call) or ())


def _takes(call: Callable[..., Any], parameter: str) -> bool:
    """Whether a call passes an argument of that name on: the signature has it, or takes any name, or cannot be read."""
    parameters = _parameters(call)
    return parameters is None or any(found.name == parameter or found.kind is found.VAR_KEYWORD for found in parameters)


def _parameters(call: Callable[..., Any]) -> tuple[inspect.Parameter, ...] | None:
    try:
        return tuple(inspect.signature(call).parameters.values())
    except (TypeError, ValueError):  # a builtin without a signature
        return None
