"""The pictures of a failing trial: what was stored and what arrived."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

for _needed in ("PIL", "faker"):
    pytest.importorskip(_needed)

import torch
import trials
from badbatch.conformance.engine.single import replay
from badbatch.conformance.engine.suite import Suite
from badbatch.conformance.options import Options
from badbatch.conformance.report.model import Report
from badbatch.harness.trial.snapshots import Album, Snapshot, snapshots
from badbatch.harness.trial.spec import Stored
from history_dsl import history_of
from PIL import Image


def test_the_pictures_of_a_trial_are_listed(tmp_path: Path) -> None:
    """Each sample is listed with its file and the existing pictures; other files are not pictures."""
    spec = history_of("0-3 end", source="imagefolder", stored=Stored("{}", files=tuple((f"a/{i}.jpg", i, 1) for i in range(12)))).spec
    spec.write(tmp_path / "trial.json")
    folder = tmp_path / "pictures"
    folder.mkdir()
    for name in ("7-stored.png", "7-arrived.png", "10-stored.png", "-1-arrived.png", "7-arrived.partial", "x-stored.png"):
        (folder / name).write_bytes(b"")
    assert snapshots(tmp_path) == [
        Snapshot(-1, "", None, folder / "-1-arrived.png"),
        Snapshot(7, "a/7.jpg", folder / "7-stored.png", folder / "7-arrived.png"),
        Snapshot(10, "a/10.jpg", folder / "10-stored.png", None),
    ]


def test_a_folder_without_pictures_has_none(tmp_path: Path) -> None:
    """A trial without pictures, a folder without a trial, and no folder at all give an empty list."""
    assert snapshots(tmp_path) == []
    assert snapshots(tmp_path / "nowhere") == []


@pytest.mark.parametrize(
    "picture",
    [
        np.full((3, 40, 50), 0.5, np.float32),
        np.full((40, 50, 3), 128, np.uint8),
        np.full((40, 50), 128 * 257, np.uint16),
        torch.full((3, 40, 50), 0.5, dtype=torch.bfloat16),
        Image.new("L", (50, 40), 128),
        Image.fromarray(np.full((40, 50), 128 * 257, np.uint16)),
    ],
    ids=["floats", "bytes", "16 bits", "bfloat16", "PIL", "PIL of 16 bits"],
)
def test_a_picture_of_any_form_is_kept(picture: Any, tmp_path: Path) -> None:
    """Arrays of any scale, tensors and PIL's pictures become the same RGB picture."""
    Album(tmp_path).add(3, picture)
    with Image.open(tmp_path / "pictures" / "3-arrived.png") as kept:
        assert (kept.mode, kept.size) == ("RGB", (50, 40))
        assert set(np.unique(np.asarray(kept))) <= {127, 128}


def test_an_album_is_small(tmp_path: Path) -> None:
    """The first picture of each of eight samples is kept, of a moderate size; what is not a picture is left out without an error."""
    album = Album(tmp_path)
    for picture in (b"no picture", np.zeros(3), object()):
        album.add(100, picture)
    for sample in range(20):
        album.add(sample, np.full((900, 2000), sample, np.uint8))
        album.add(sample, np.full((900, 2000), 255, np.uint8))
    assert [found.sample for found in snapshots(tmp_path)] == list(range(7))
    with Image.open(tmp_path / "pictures" / "5-arrived.png") as kept:
        assert kept.size == (512, 230)
        assert np.asarray(kept).max() == 5


def test_a_folder_that_cannot_be_written_costs_nothing(tmp_path: Path) -> None:
    """The trial continues."""
    Album(tmp_path / "nowhere").add(1, np.zeros((40, 40), np.uint8))
    assert not (tmp_path / "nowhere").exists()


def run(loader: str, scenario: str, keep: Path) -> Report:
    """One trial of a loader of pictures, whose folder is kept."""
    options = Options(workers=(0,), ranks=(1,), scenarios=(scenario,), keep=keep)
    with Suite(loader, options, trials.ROOT) as suite:
        suite.start()
        suite.prepare()
        return suite.run()


def only(report: Report, scenario: str) -> Path:
    """The folder of the trial of a scenario."""
    (folder,) = {trial.folder for trial in report.trials if trial.spec.scenario == scenario}
    assert folder is not None
    return folder


def test_a_failing_trial_keeps_the_pictures(tmp_path: Path) -> None:
    """The stored and the arrived picture are side by side, also after a replay; a lost picture is shown as it was stored."""
    folder = only(run("fixtures.loaders.liars_pictures:sixteen_bits_cut_off", "oddities", tmp_path / "cut"), "oddities")
    (found,) = snapshots(folder)
    assert (found.sample, Path(found.file).suffix) == (32, ".png")
    assert found.arrived is not None
    assert found.stored is not None
    with Image.open(found.arrived) as arrived, Image.open(found.stored) as stored:
        assert np.asarray(arrived).min() == 255
        assert np.asarray(stored).std() > 20
    replay(folder, tmp_path / "again")
    assert [again.sample for again in snapshots(tmp_path / "again")] == [32]

    folder = only(run("fixtures.loaders.liars_pictures:endings_unlisted", "oddities", tmp_path / "few"), "oddities")
    assert [(found.sample, found.arrived, found.stored is None) for found in snapshots(folder)] == [
        (2, None, False), (11, None, False), (35, None, False),
    ]  # fmt: skip


def test_a_passing_trial_keeps_none(tmp_path: Path) -> None:
    """Nor does one in which contested pictures arrive as some decoder had them."""
    report = run("fixtures.loaders.pictures:pictures", "damage-bits", tmp_path)
    assert not report.summary["fail"]
    for trial in report.trials:
        if trial.folder is not None:
            assert not (trial.folder / "pictures").exists()
