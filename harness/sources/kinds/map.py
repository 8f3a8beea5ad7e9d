"""``map``: a data set with a length and an index."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from ...contract.job import Contract
from ..in_memory import InMemory
from ..truth import Walk

if TYPE_CHECKING:
    from ..memory import Reader


def _dataset(samples: int, reader: Reader, rank: int, ranks: int) -> Any:
    from ..memory import FaultyMap, Numbers

    return FaultyMap(Numbers(samples), reader)


def _promises(contract: Contract) -> Contract:
    # A drop-in class gets a DistributedSampler, which pads.
    return dataclasses.replace(contract, tail="pad") if contract.tail is None else contract


SOURCE = InMemory(
    "map",
    "In memory: a map-style torch data set. dataset[i] is {'id': i, 'x': float32[8]}, where x is computed from"
    " the id.",
    Walk.INDEX,
    _dataset,
    _promises,
)
