"""What can be wrong with rows and the files that hold them, and what can be odd about them."""

from __future__ import annotations
