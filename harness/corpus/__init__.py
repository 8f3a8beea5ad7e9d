"""Corpora on disk: damaged data, and a manifest that says for each sample whether it is good."""

from __future__ import annotations
