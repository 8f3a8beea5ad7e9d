"""Corpora on disk: data gone bad, with a manifest that tells the truth about every sample."""

from __future__ import annotations
