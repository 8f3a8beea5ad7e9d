"""What can be wrong with time windows, and what can be odd but legal."""

from __future__ import annotations
