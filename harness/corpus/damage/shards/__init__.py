"""What can be wrong with tar shards, and what can be odd about them."""

from __future__ import annotations
