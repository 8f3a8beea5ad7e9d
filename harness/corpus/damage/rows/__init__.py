"""What can be wrong with rows and their files, and what can be odd but legal."""

from __future__ import annotations
