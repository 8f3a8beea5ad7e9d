"""Corpora on disk: damaged data, with a manifest that says of every sample whether it is good."""

from __future__ import annotations
