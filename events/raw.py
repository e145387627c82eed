"""
Connections to a log's file, and the file's bytes as they lie on disk.

POSIX drops all locks that a process has on a file when it closes any descriptor of that file, also the locks of
SQLite's connections (https://sqlite.org/howtocorrupt.html, 2.2). A client in another process that then closes its own
connection takes itself for the last one and removes the write-ahead log. What the run commits after that is lost with
its process. So a descriptor of a file that a connection is open to is kept, and used again, until the last connection
closes. SQLite does the same with its own descriptors.
"""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from threading import RLock

from skillopt_es.events.plain import open_plain

File = tuple[int, int]
"""A file by its device and number: its name may change, and a link may be another name of it."""

_lock = RLock()
_users: Counter[File] = Counter()  # connections of this process, and readers of raw bytes
_kept: dict[File, list[BufferedReader]] = {}  # descriptors that are closed with the last user


def _release(file: File) -> None:
    with _lock:
        _users[file] -= 1
        if not _users[file]:
            del _users[file]
            for each in _kept.pop(file, ()):
                each.close()


class LogConnection(sqlite3.Connection):
    """A connection that keeps descriptors of its files open as long as it is open itself."""

    _files: tuple[File, ...] = ()

    def holds(self, path: Path) -> None:
        """Notes that the connection has this file open, before it asks for the first lock on it."""
        file = _named(path.stat())
        with _lock:
            _users[file] += 1
            self._files = (*self._files, file)

    def close(self) -> None:
        """Closes the connection, and descriptors that nothing needs any more."""
        super().close()
        files, self._files = self._files, ()
        for file in files:
            _release(file)


def connect(path: Path, mode: str) -> LogConnection:
    """A bare connection in autocommit, usable from any thread."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{mode}",
        uri=True,
        isolation_level=None,
        timeout=30,
        # SQLite is built serialized, and several sizes of each bulk statement are worth keeping.
        check_same_thread=False,
        cached_statements=256,
        factory=LogConnection,
    )
    connection.holds(path)
    return connection


Read = Callable[[int, int], bytes]
"""Reads up to so many bytes from a place in the file: `(at, count)`."""


@contextmanager
def raw_file(path: Path) -> Iterator[Read]:
    """The bytes of a plain file; raises as `open_plain` does."""
    with _lock:
        kept = _kept.get(_named(path.stat()))
        file = kept[0] if kept else open_plain(path, follow=True)
        name = _named(os.fstat(file.fileno()))
        if not kept:
            _kept.setdefault(name, []).append(file)
        _users[name] += 1
    try:
        yield lambda at, count: _read_at(file, at, count)
    finally:
        _release(name)


def _named(found: os.stat_result) -> File:
    return found.st_dev, found.st_ino


def _read_at(file: BufferedReader, at: int, count: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(file.fileno(), count, at)
    with _lock:  # Windows has none, and all readers of a descriptor share one place
        os.lseek(file.fileno(), at, os.SEEK_SET)
        return os.read(file.fileno(), count)
