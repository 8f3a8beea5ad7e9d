"""Tells the consumer that the trial supervisor has sent the signal of a phase."""

from __future__ import annotations

from pathlib import Path


def tell_signalled(folder: Path, phase: int) -> None:
    """Note that the signal of a phase is being sent."""
    _note(folder, phase).touch()


def was_signalled(folder: Path, phase: int) -> bool:
    """Whether the signal of a phase was sent."""
    return _note(folder, phase).exists()


def _note(folder: Path, phase: int) -> Path:
    return folder / f"signalled-{phase}"
