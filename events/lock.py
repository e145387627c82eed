"""
One writer a run: an `flock` on the run's folder itself, freed by the system when its holder dies.

The folder cannot be taken away from under a run as a file in it can, and SQLite locks bytes of its files, never the
folder. The file `lock` says who holds it, for the message a second writer gets, and may go missing.

It also says whether `tail` lies beside the log: it is marked once that is so, and the mark goes before `tail` does. A
mark without a `tail` is therefore a session that was broken off and whose `tail` somebody took away.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from attrs import frozen

from skillopt_es.events.errors import LogError, LogUnwritable, RunBusy
from skillopt_es.events.faults import system_fault
from skillopt_es.events.plain import read_plain

try:
    import fcntl
except ImportError:  # Windows: runs can be read there, see `RunLock`
    fcntl = None  # type: ignore[assignment]

LOCK_FILE = "lock"
_MARK = "tail"
_MOST = 4096  # bytes: a holder is one line; any other file in its place is not read whole
# A program that is being started holds all files of its parent until it is loaded: for milliseconds, or longer.
_TRIES, _PAUSE = 100, 0.02
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
            # Not inherited: a program that we start would hold the lock for as long as it lives.
            self._folder = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise system_fault(error, folder) from error
        try:
            _lock(self._folder, folder)
            self._file = _open(folder / LOCK_FILE)
        except OSError as error:
            os.close(self._folder)
            raise _refusal(error, folder) from error
        self._path = folder / LOCK_FILE
        self._holder: dict[str, str | int] = {"host": socket.gethostname(), "pid": os.getpid(), "start": start}
        try:
            self._marked = _is_marked(os.pread(self._file, _MOST, 0))  # by a writer that was killed
            self._say(self._holder)
        except OSError as error:
            os.close(self._file)
            os.close(self._folder)
            raise system_fault(error, self._path) from error

    def mark(self) -> None:
        """Says that `tail` is there, from now on until `unmark`; raises LogUnwritable where the disk refuses."""
        self._marked = True
        try:
            self._say(self._holder)
        except OSError as error:
            raise system_fault(error, self._path) from error

    def unmark(self) -> bool:
        """Whether it is taken back for good that `tail` is there; where the disk refuses, `tail` must stay."""
        marked, self._marked = self._marked, False
        try:
            self._say(self._holder)
            os.fsync(self._file)
        except OSError:
            self._marked = marked
            return False
        return True

    def release(self) -> None:
        """Lets the next writer in; a mark stays, for what it says is still so."""
        with suppress(OSError):
            if self._marked:
                self._say({})
            else:
                os.ftruncate(self._file, 0)
        os.close(self._file)
        os.close(self._folder)

    def _say(self, holder: Mapping[str, str | int]) -> None:
        said = json.dumps({**holder, _MARK: True} if self._marked else holder).encode() + b"\n"
        os.pwrite(self._file, said, 0)  # over the old line and then to length: a mark outlives a kill between the two
        os.ftruncate(self._file, len(said))


def _lock(descriptor: int, folder: Path) -> None:
    """Takes the lock, or raises why not; what a dead holder was just starting may keep it for a moment yet."""
    for _ in range(_TRIES):
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = holder_of(folder)
            if holder is None or holder.may_live:
                raise
            time.sleep(_PAUSE)
    return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@frozen
class Holder:
    """Who the lock file says is writing, and since when."""

    host: str
    pid: int
    start: str

    @property
    def is_here(self) -> bool:
        """Whether it is a process of this machine."""
        return self.host == socket.gethostname()

    @property
    def may_live(self) -> bool:
        """Whether it lives; of another machine's process nobody can tell from here."""
        return not self.is_here or _lives(self.pid)


def holder_of(folder: Path) -> Holder | None:
    """Who has a run open for writing, or had when it died; a writer that ends leaves the file empty."""
    try:
        said = json.loads(read_plain(folder / LOCK_FILE))
        return Holder(str(said["host"]), int(said["pid"]), str(said.get("start", "")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _lives(pid: int) -> bool:
    if os.name != "posix":
        return False  # nobody can write here; and asking by a signal of number 0 would send one
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        # It lives, and is somebody else's.
        return True
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    """Whether it has ended and nobody has asked how: in a container that may last, for its process 1 does not ask."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z"
    except (OSError, IndexError):
        return False


def marked_lock(folder: Path) -> bytes:
    """What `lock` says, where it is marked; nothing where it is not, or cannot be read."""
    try:
        content = read_plain(folder / LOCK_FILE)
    except OSError:
        return b""
    return content if _is_marked(content) else b""


def _is_marked(content: bytes) -> bool:
    """Whether the first line says so; what follows it is left from a longer one."""
    try:
        said = json.loads(content.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(said, dict) and said.get(_MARK) is True


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)


def _refusal(error: OSError, folder: Path) -> LogError:
    """Why the lock could not be had."""
    if isinstance(error, BlockingIOError):
        return _busy(folder)
    # flock names no file. Where one is named, it is `lock` that could not be opened.
    if error.filename is None and error.errno in _NO_LOCKS:
        return LogUnwritable(
            f"{folder} cannot be locked against a second writer ({error.strerror})",
            hint="network disks refuse it: keep runs on a local disk",
        )
    return system_fault(error, folder / LOCK_FILE)


def _busy(folder: Path) -> RunBusy:
    """The error that names the holder as far as it is known."""
    holder = holder_of(folder)
    if holder is None or not holder.start:
        return RunBusy(f"another process is writing {folder}")
    host, pid, start = holder.host, holder.pid, holder.start
    return RunBusy(f"process {pid} on {host} has been writing {folder} since {start}", host=host, pid=pid, start=start)
