"""What all tests share: pytest's own fixture for running pytest, the supervisor's stage, and a Ctrl-C that comes through."""

from __future__ import annotations

import signal

pytest_plugins = ["pytester", "staging"]

# A shell that starts something in the background has it ignore SIGINT, and so would all that the tests start. What is
# caught here is back at its default after an exec.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
