"""What all tests share: pytest's own fixture for running pytest, the supervisor's stage, and signals that come through."""

from __future__ import annotations

import signal

pytest_plugins = ["pytester", "staging"]

# A shell that starts something in the background has it ignore SIGINT, and nohup SIGHUP; so would all that the tests start. What is
# caught here is back at its default after an exec.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for _ignored in (signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(_ignored) is signal.SIG_IGN:
        signal.signal(_ignored, lambda number, frame: None)  # this process still ignores it
