"""Runs the probes of a loader, which infer what its contract does not declare."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from ...harness.contract.job import Contract
from ...harness.trial.history import History
from ...harness.trial.spec import Topology, TrialSpec
from ..judging import probe
from ..options import Options
from ..scenarios.topologies import unsupported
from .forking import fails
from .pool import Pool
from .questions import Questions

_SEVERAL = 2  # workers: with a single one, its short batch would be the last of the rank
_MOST_IN_A_BATCH = 8


def probed(pool: Pool, clean: Callable[[TrialSpec], TrialSpec], specs: Sequence[TrialSpec]) -> list[History]:
    """The histories of some probes, in their order. If one hangs, its clean trial shows whether forks are at fault.

    Args:
        clean: the clean trial in the topology of a trial.
    """
    found = _apart(pool, specs)
    suspected = [clean(history.spec) for history in found if fails(history)] if pool.may_learn_to_spawn else []
    if not suspected:
        return found
    pool.histories(dict.fromkeys(suspected), gate=True)
    return found if pool.may_learn_to_spawn else _apart(pool, specs)


def _apart(pool: Pool, specs: Sequence[TrialSpec]) -> list[History]:
    """The histories of some probes, which must not meet in ``/dev/shm``: how the loader uses it is not known yet."""
    if pool.separates:
        return pool.histories(specs)
    found = [history for spec in specs for history in pool.histories([spec])]
    if len(found) == 1 and found[0].ended.segments:  # whether a name is fixed is shown by a second trial
        found = pool.histories(specs)
    return found


def complete(
    source: str,
    contract: Contract,
    questions: Questions,
    options: Options,
    run: Callable[[Sequence[TrialSpec]], list[History]],
) -> Contract:
    """The contract of a loader for a source, with what is not declared inferred from probes.

    Args:
        run: runs trials; gives their histories in the order of the trials.

    Raises:
        LoaderError: the loader cannot be judged: it cannot be built, iterated or read.
    """
    workers = 0 if contract.workers is None or 0 in contract.workers else min(contract.workers)
    ranks = 1 if contract.ranks is None or 1 in contract.ranks else min(contract.ranks)
    first = questions.named("one-bad", source, Topology(workers, ranks), contract)
    history, *with_workers = run([first, *_with_workers(source, contract, questions, options, ranks)])
    if probe.not_begun(history):  # it may open all files when it is built, and so read the damage there
        [whole] = run([dataclasses.replace(questions.named("clean", source, Topology(workers, ranks), contract), lockstep=False)])
        probe.must_be_usable(whole)
    else:
        probe.must_be_usable(history)
    found = probe.infer(history, contract)
    for history in with_workers:
        found = probe.infer_workers(history, found)
    several = [number for number in options.ranks if number > 1 and not unsupported(contract, Topology(workers, number))]
    if found.tail is None and several:
        uneven = questions.named("remainder-one", source, Topology(workers, several[0]), found)
        [history] = run([dataclasses.replace(uneven, lockstep=False)])
        found = probe.infer_tail(history, found)
    return found


def _with_workers(source: str, contract: Contract, questions: Questions, options: Options, ranks: int) -> list[TrialSpec]:
    """The probe that shows what workers make of the work; none where there is nothing to infer from it."""
    supported = sorted({n for n in options.workers if n and (contract.workers is None or n in contract.workers)})
    workers = next((number for number in supported if number >= _SEVERAL), supported[0] if supported else 0)
    if not workers or (contract.readers is not None and (contract.short_batches is not None or workers < _SEVERAL)):
        return []
    spec = questions.named("remainder-one", source, Topology(workers, ranks), contract)
    return [dataclasses.replace(spec, lockstep=False, batch_size=_uneven(spec.samples // ranks, workers))]


def _uneven(samples: int, workers: int) -> int:
    """A batch size that divides no worker's share of the samples, if there is one."""
    shares = {samples // workers, -(-samples // workers)}
    return next((size for size in range(_MOST_IN_A_BATCH, 1, -1) if all(share % size for share in shares)), _MOST_IN_A_BATCH)
