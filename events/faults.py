"""What SQLite and the system say when a log cannot be read or written, as errors a user can act on."""

from __future__ import annotations

import errno
import sqlite3
from contextlib import closing
from pathlib import Path

from skillopt_es.events.errors import LogDamaged, LogError, LogUnreadable, LogUnwritable
from skillopt_es.events.plain import NotPlainError
from skillopt_es.events.raw import connect, raw_file

_PIECE = 1 << 20  # bytes in memory at once: a log may have gigabytes
_SAFE = "everything committed before is safe"
_UNWRITABLE = {
    sqlite3.SQLITE_FULL: ("the disk is full", f"free some space and resume; {_SAFE}"),
    sqlite3.SQLITE_READONLY: ("it is read-only", "make the run's folder and files writable, or copy the run elsewhere"),
    sqlite3.SQLITE_IOERR: ("the disk reports an error", f"check the disk's health and space, then resume; {_SAFE}"),
    sqlite3.SQLITE_CANTOPEN: ("it cannot be opened", "check that the run's folder exists and is writable"),
    sqlite3.SQLITE_PERM: ("access is denied", "check who owns the run's folder"),
    sqlite3.SQLITE_BUSY: ("another program holds it locked", "close the program that has the log open, then resume"),
    sqlite3.SQLITE_LOCKED: ("another program holds it locked", "close the program that has the log open, then resume"),
}
# What SQLite adds to SQLITE_IOERR when the system refused to read, size up, find or seek; a short read is damage.
_READING = {sqlite3.SQLITE_IOERR | number << 8 for number in (1, 7, 13, 22, 24)}
_DAMAGED = {
    sqlite3.SQLITE_CORRUPT: "its pages are malformed",
    sqlite3.SQLITE_NOTADB: "it is not an SQLite database",
    sqlite3.SQLITE_CONSTRAINT: "it refuses what should follow",
    sqlite3.SQLITE_SCHEMA: "its tables have changed",
}
_ERRNO = {
    errno.ENOSPC: sqlite3.SQLITE_FULL,
    errno.EDQUOT: sqlite3.SQLITE_FULL,
    errno.EROFS: sqlite3.SQLITE_READONLY,
    errno.EACCES: sqlite3.SQLITE_PERM,
    errno.EPERM: sqlite3.SQLITE_PERM,
}


# What a query can raise on a damaged file: sqlite3 stumbles over SQLite's own message when that quotes broken text.
QUERY_ERRORS = (sqlite3.Error, UnicodeDecodeError)


def sqlite_fault(error: Exception, path: Path) -> LogError:
    """The error to raise for one of SQLite's."""
    # The lower byte of an extended code is the plain one.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code == sqlite3.SQLITE_IOERR and getattr(error, "sqlite_errorcode", 0) in _READING:
        return LogUnreadable(f"{path} cannot be read: the disk reports an error ({error})")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):  # SQLite says so, too, where the disk fails it
        failed = _failing(path) or _failing(path.with_name(f"{path.name}-wal"))
        if failed is not None:
            return failed
        if _is_sound(path):
            return LogUnreadable(
                f"{path} cannot be read: the disk failed for a moment ({error})",
                hint="the file is whole: repeat the command, and check the disk's health",
            )
    if code in _UNWRITABLE:
        why, hint = _UNWRITABLE[code]
        return LogUnwritable(f"{path} cannot be used: {why} ({error})", hint=hint)
    return LogDamaged(f"{path} is damaged: {_DAMAGED.get(code, 'it cannot be read')} ({error})")


def _failing(path: Path) -> LogError | None:
    """Why a file cannot be read to its end, if it cannot; what is in it does not matter."""
    try:
        with raw_file(path) as read:
            at = 0
            while piece := read(at, _PIECE):  # as SQLite reads: a disk may fail one way of reading alone
                at += len(piece)
    except FileNotFoundError:
        return None
    except OSError as error:
        return read_fault(error, path)
    return None


def _is_sound(path: Path) -> bool:
    """Whether SQLite finds every page as it has to be, now that it is asked once more."""
    try:
        with closing(connect(path, "mode=ro")) as connection:
            return connection.execute("pragma integrity_check").fetchall() == [("ok",)]
    except QUERY_ERRORS:
        return False


def system_fault(error: OSError, path: Path) -> LogError:
    """The error to raise when the system refuses a file of a run."""
    code = _ERRNO.get(error.errno or 0, sqlite3.SQLITE_IOERR)
    why, hint = _UNWRITABLE[code]
    return LogUnwritable(f"{path} cannot be written: {why} ({error.strerror or error})", hint=hint)


def read_fault(error: OSError, path: Path) -> LogError:
    """The error to raise when the system cannot read a file of a run: that says nothing about what is in it."""
    if isinstance(error, NotPlainError):
        return LogUnreadable(f"{path} cannot be read: it {error.strerror}", hint="put the plain file back in its place")
    return LogUnreadable(f"{path} cannot be read: the system says {error.strerror or error}")
