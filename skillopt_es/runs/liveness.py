"""Whether somebody writes a run right now, told from outside without touching its lock."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Literal

from skillopt_es.events.lock import LOCK_FILE
from skillopt_es.events.plain import read_plain

Status = Literal["new", "running", "stopped", "paused", "completed", "scored"]


def is_written(folder: Path) -> bool:
    """Whether a live process has the run open for writing, as far as its lock file tells."""
    try:
        holder = json.loads(read_plain(folder / LOCK_FILE))
        host, pid = str(holder["host"]), int(holder["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return False  # a writer that ends leaves the file empty
    if host != socket.gethostname():
        return True
    if os.name != "posix":
        return False  # nobody can write here; and asking by a signal of number 0 would send one
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def status_now(recorded: Literal["new", "running", "paused", "completed"], folder: Path) -> Status:
    """The status that a log records, with a run whose writer is gone told apart as `stopped`."""
    return "stopped" if recorded == "running" and not is_written(folder) else recorded
