"""``sharded_stream``: a stream that splits itself by rank and worker."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ...contract.job import Contract
from ..in_memory import InMemory
from ..truth import Walk

if TYPE_CHECKING:
    from ..memory import Reader


def _dataset(samples: int, reader: Reader, rank: int, ranks: int) -> Any:
    from ..memory import ShardedStream

    return ShardedStream(samples, reader, rank, ranks)


def _promises(contract: Contract) -> Contract:
    # The source splits itself by stride, so a drop-in class owes nothing for the remainder.
    return dataclasses.replace(contract, tail="exact", uneven_ranks=True)


SOURCE = InMemory(
    "sharded_stream",
    "In memory: an iterable torch data set that splits itself by rank and by "
    "torch.utils.data.get_worker_info(). Samples are those of map.",
    Walk.SHARE,
    _dataset,
    _promises,
)
