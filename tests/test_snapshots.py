"""The pictures of a failing trial: what was stored and what arrived."""

from __future__ import annotations

from pathlib import Path

from badbatch.harness.trial.snapshots import Snapshot, snapshots
from badbatch.harness.trial.spec import Stored
from history_dsl import history_of


def test_the_pictures_of_a_trial_are_listed(tmp_path: Path) -> None:
    """Each sample is listed with its file and the pictures that are there; other files are not taken for pictures."""
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
    """A trial without pictures, a folder that holds no trial, and no folder at all give an empty list."""
    assert snapshots(tmp_path) == []
    assert snapshots(tmp_path / "nowhere") == []
