"""``python -m badbatch.conformance.commands.cli`` is the ``badbatch`` command."""

from __future__ import annotations

from . import main

main()
