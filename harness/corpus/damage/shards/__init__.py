"""What can be wrong with tar shards, and what can be odd but legal."""

from __future__ import annotations
