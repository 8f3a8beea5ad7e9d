"""What can be wrong with lines of JSON, and what can be odd about them."""

from __future__ import annotations
