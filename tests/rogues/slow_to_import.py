"""A module whose import starts a daemon and then does not end."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

subprocess.Popen(["sleep", "3600"], start_new_session=True)
Path(os.environ["ROGUE_FLAG"]).touch()
time.sleep(3600)
