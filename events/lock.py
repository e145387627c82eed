"""
One writer a run: an `flock` on the run's folder itself, freed by the system when its holder dies.

The folder cannot be taken away from under a run as a file in it can, and SQLite locks bytes of its files, never the
folder. The file `lock` only says who holds it, for the message a second writer gets, and may go missing.
"""

from __future__ import annotations

import errno
import json
import os
import socket
from contextlib import suppress
from pathlib import Path

from skillopt_es.events.errors import LogError, LogUnwritable, RunBusy
from skillopt_es.events.faults import system_fault
from skillopt_es.events.plain import read_plain

try:
    import fcntl
except ImportError:  # Windows: runs can be read there, see `RunLock`
    fcntl = None  # type: ignore[assignment]

LOCK_FILE = "lock"
_NO_LOCKS = (errno.EBADF, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)


def require_locks() -> None:
    """Raises LogUnwritable on a system that cannot give one process alone the right to write."""
    if fcntl is None:
        raise LogUnwritable(
            "this system has no lock (flock) that keeps a second writer out of a run: here, runs can only be read",
            hint="train on Linux or macOS, or on Windows in WSL",
        )


class RunLock:
    """The right to write to a run, held until `release`."""

    def __init__(self, folder: Path, *, start: str) -> None:
        """Raises RunBusy while another process has it, LogUnwritable where nobody can have it alone."""
        require_locks()
        try:
            self._folder = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise system_fault(error, folder) from error
        try:
            fcntl.flock(self._folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._file = _open(folder / LOCK_FILE)
        except OSError as error:
            os.close(self._folder)
            raise _refusal(error, folder) from error
        try:
            self._say({"host": socket.gethostname(), "pid": os.getpid(), "start": start})
        except OSError as error:
            self.release()
            raise system_fault(error, folder / LOCK_FILE) from error

    def release(self) -> None:
        """Lets the next writer in."""
        with suppress(OSError):
            os.ftruncate(self._file, 0)
        os.close(self._file)
        os.close(self._folder)

    def _say(self, holder: dict[str, str | int]) -> None:
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, json.dumps(holder).encode(), 0)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)


def _refusal(error: OSError, folder: Path) -> LogError:
    """Why the lock could not be had."""
    if isinstance(error, BlockingIOError):
        return _busy(folder)
    if error.filename is None and error.errno in _NO_LOCKS:
        return LogUnwritable(
            f"{folder} cannot be locked against a second writer ({error.strerror})",
            hint="network disks refuse it: keep runs on a local disk",
        )
    return system_fault(error, folder / LOCK_FILE)


def _busy(folder: Path) -> RunBusy:
    """The error that names the holder as far as it is known."""
    try:
        holder = json.loads(read_plain(folder / LOCK_FILE))
        host, pid, start = str(holder["host"]), int(holder["pid"]), str(holder["start"])
    except (OSError, ValueError, KeyError, TypeError):
        return RunBusy(f"another process is writing {folder}")
    return RunBusy(f"process {pid} on {host} has been writing {folder} since {start}", host=host, pid=pid, start=start)
