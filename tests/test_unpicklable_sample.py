"""A sample that cannot be pickled passes the real DataLoader without workers, and fails its batch with them."""

from __future__ import annotations

import copy
import dataclasses
import re
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from badbatch.harness.faults import Read
from badbatch.harness.faults.unpicklable_sample import UnpicklableSample, unpicklable
from torch.utils.data import DataLoader, Dataset, default_collate

pytestmark = pytest.mark.timeout(60)

FIRST_OF_SECOND_BATCH = 4


class Source(Dataset[dict[str, Any]]):
    """Twelve samples, one of which may be struck."""

    def __init__(self, struck: int | None) -> None:
        self.struck = struck

    def __len__(self) -> int:
        return 12

    def __getitem__(self, sample: int) -> dict[str, Any]:
        good = {"id": sample, "x": torch.full((8,), float(sample))}
        if sample != self.struck:
            return good
        read = Read(sample, value=lambda: good, took_hold=lambda: None, attempt=lambda: 0)
        struck: dict[str, Any] = UnpicklableSample().strike(read)
        return struck


def load(struck: int | None, workers: int) -> tuple[list[int], str]:
    """The ids that arrive, and the message of the error that ends it, if one does."""
    loader: DataLoader[dict[str, Any]] = DataLoader(
        Source(struck),
        batch_size=4,
        num_workers=workers,
        timeout=3 if workers else 0,
        multiprocessing_context="fork" if workers else None,
    )
    ids: list[int] = []
    try:
        for batch in loader:
            assert batch["x"].shape == (4, 8)
            assert batch["x"][:, 0].tolist() == batch["id"].tolist()
            ids.extend(batch["id"].tolist())
    except RuntimeError as error:
        return ids, str(error)
    return ids, ""


@pytest.mark.parametrize("workers", [0, 2])
def test_unstruck_epoch_is_whole(workers: int) -> None:
    """Without the fault every sample arrives, so what is missing below is missing because of it."""
    assert load(None, workers) == (list(range(12)), "")


def test_arrives_without_workers() -> None:
    """In one process nothing is pickled, so the sample is as good as any."""
    assert load(FIRST_OF_SECOND_BATCH, 0) == (list(range(12)), "")


def test_takes_its_batch_along_with_workers(capfd: pytest.CaptureFixture[str]) -> None:
    """The batch never leaves the worker, no error says so at the consumer, and it waits until its timeout."""
    ids, error = load(FIRST_OF_SECOND_BATCH, 2)
    assert ids == [0, 1, 2, 3]
    assert "timed out" in error
    assert "cannot pickle" in capfd.readouterr().err


class Pair(NamedTuple):
    """A sample as some data sets have it."""

    x: torch.Tensor
    label: int


@dataclasses.dataclass(frozen=True)
class Record:
    """A sample that only a collate function of the user's own can take."""

    x: int


@pytest.mark.parametrize(
    "sample",
    [
        {"x": torch.ones(2), "id": 1},
        (torch.ones(2), 1),
        [torch.ones(2), 1],
        Pair(torch.ones(2), 1),
        torch.ones(2),
        "text",
        b"bytes",
    ],
    ids=lambda sample: type(sample).__name__,
)
def test_batch_refuses_whatever_the_sample_is(sample: Any) -> None:
    """Collated first in its batch, the sample makes the batch unpicklable; its neighbours without it do not."""
    ForkingPickler.dumps(default_collate([sample, sample]))
    struck = default_collate([unpicklable(sample), sample])
    with pytest.raises(TypeError, match="cannot pickle"):
        ForkingPickler.dumps(struck)
    assert text(struck) == text(default_collate([sample, sample]))


def text(batch: Any) -> str:
    """The content of the batch, whatever its classes are called."""
    return re.sub(r"\s|unpicklable", "", repr(batch).lower())


def test_two_in_one_batch_collate() -> None:
    """Two struck samples of one batch do not disturb each other."""
    batch = default_collate([unpicklable((torch.ones(2), 1)), unpicklable((torch.zeros(2), 2))])
    assert batch[0].tolist() == [[1, 1], [0, 0]]


@pytest.mark.parametrize("value", [np.ones(2), Record(1), 5, 0.5], ids=lambda value: type(value).__name__)
def test_other_values_refuse_by_themselves(value: Any) -> None:
    """Arrays, numbers and objects equal what they were and cannot be pickled."""
    ForkingPickler.dumps(value)
    struck = unpicklable(value)
    assert isinstance(struck, type(value))
    assert np.array_equal(struck, value) or vars(struck) == vars(value)
    with pytest.raises(TypeError, match="cannot pickle"):
        ForkingPickler.dumps(struck)


def test_copy_refuses_too() -> None:
    """A shallow copy, as collating makes one, still refuses."""
    with pytest.raises(TypeError, match="cannot pickle"):
        ForkingPickler.dumps(copy.copy(unpicklable({"id": 1})))
