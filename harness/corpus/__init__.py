"""Corpora on disk: damaged data, with a manifest that tells the truth about every sample."""

from __future__ import annotations
