"""What can be wrong with time windows, and what can be odd about them."""

from __future__ import annotations
