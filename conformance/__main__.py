"""``python -m badbatch.conformance`` is the ``badbatch`` command."""

from __future__ import annotations

from .cli import main

main()
