"""``python -m badbatch.conformance`` is the ``badbatch`` command."""

from __future__ import annotations

from .commands.cli import main

main()
