"""What can be wrong with lines of JSON, and what can be odd but legal."""

from __future__ import annotations
