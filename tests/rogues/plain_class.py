"""A class that is called as torch's DataLoader is, and has no ``sampler`` parameter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.utils.data import DataLoader


class Plain:
    """Passes everything on to torch's own loader."""

    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        num_workers: int = 0,
        drop_last: bool = False,
        timeout: float = 0,
        generator: Any = None,
        multiprocessing_context: Any = None,
    ) -> None:
        self._loader: DataLoader[Any] = DataLoader(
            dataset,
            batch_size,
            shuffle=shuffle,
            num_workers=num_workers,
            drop_last=drop_last,
            timeout=timeout,
            generator=generator,
            multiprocessing_context=multiprocessing_context,
        )

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._loader)
