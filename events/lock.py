"""
One writer a run: an `flock` on a file in the run's folder, freed by the system when its holder dies.

The file stays where it is (removing a lock file races) and says who holds it, for the message a second writer gets.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from contextlib import suppress
from pathlib import Path

from skillopt_es.events.errors import RunBusy
from skillopt_es.events.faults import system_fault

LOCK_FILE = "lock"


class RunLock:
    """The right to write to a run, held until `release`."""

    def __init__(self, folder: Path, *, start: str) -> None:
        path = folder / LOCK_FILE
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise system_fault(error, path) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._say({"host": socket.gethostname(), "pid": os.getpid(), "start": start})
        except BlockingIOError:
            busy = _busy(folder, os.pread(self._file, 4096, 0))
            os.close(self._file)
            raise busy from None
        except OSError as error:
            os.close(self._file)
            raise system_fault(error, path) from error

    def release(self) -> None:
        """Lets the next writer in."""
        with suppress(OSError):
            os.ftruncate(self._file, 0)
        os.close(self._file)

    def _say(self, holder: dict[str, str | int]) -> None:
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, json.dumps(holder).encode(), 0)


def _busy(folder: Path, content: bytes) -> RunBusy:
    """The error that names the holder as far as it is known."""
    try:
        holder = json.loads(content)
        host, pid, start = str(holder["host"]), int(holder["pid"]), str(holder["start"])
    except (ValueError, KeyError, TypeError):
        return RunBusy(f"another process is writing {folder}")
    return RunBusy(f"process {pid} on {host} has been writing {folder} since {start}", host=host, pid=pid, start=start)
