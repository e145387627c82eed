"""
How many processes there are behind the walls and how much memory they hold: their own, their files and their sockets.

No other memory outlives a mapping there: the filter of system calls closes what would (`syscalls.py`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress

_KIB = 1024  # /proc counts memory in them
_MEMORY_SECONDS = 0.02  # a program that takes 5 GB a second is 100 MB over its limit by then; looking itself costs time
_OWN = (b"RssAnon:", b"VmSwap:")
_SHARE = (b"Pss_Anon:", b"SwapPss:")


class Watch:
    """Counts from process 1; `processes` is a /proc, open, in which other processes may be listed, too."""

    def __init__(self, processes: int, *, most_processes: int, most_bytes: int, socket_bytes: int) -> None:
        self._proc = processes
        self._socket_bytes = socket_bytes
        self._self = os.readlink("self", dir_fd=processes)
        self._space = os.readlink("self/ns/pid", dir_fd=processes)
        # Where a new /proc was refused this is the machine's own, which lists everybody.
        self._shared = self._self != "1"
        self._most_processes = most_processes
        self._most_bytes = most_bytes + self._files_and_sockets()  # what is there already was given
        self._next = 0.0

    def exceeded(self) -> str:
        """Which limit is passed: `processes` or `memory`; nothing when none is. Process 1 does not count."""
        here = list(self._here())
        if len(here) > self._most_processes:
            return "processes"
        begun = time.monotonic()
        if begun < self._next:
            return ""
        too_much = self._files_and_sockets() + sum(self._sum(f"{each}/status", _OWN) for each in here)
        if too_much > self._most_bytes:
            # After a fork both have the same pages: who has how much of them takes longer to find out.
            too_much = self._files_and_sockets() + sum(self._sum(f"{each}/smaps_rollup", _SHARE) for each in here)
        ended = time.monotonic()
        # Looking takes a sixth of the time at most, however many there are to look at.
        self._next = ended + max(_MEMORY_SECONDS, 5 * (ended - begun))
        return "memory" if too_much > self._most_bytes else ""

    def _here(self) -> Iterator[str]:
        for name in os.listdir(self._proc):
            if name.isdigit() and name != self._self and (not self._shared or self._is_here(name)):
                yield name

    def _is_here(self, name: str) -> bool:
        with suppress(OSError):  # somebody else's, or gone
            return os.readlink(f"{name}/ns/pid", dir_fd=self._proc) == self._space
        return False

    def _files_and_sockets(self) -> int:
        disk = os.statvfs("/")
        return (disk.f_blocks - disk.f_bfree) * disk.f_frsize + self._sockets() * self._socket_bytes

    def _sockets(self) -> int:
        first = self._read("self/net/sockstat").split(b"\n", 1)[0]  # sockets: used 3
        return int(first.split()[-1])

    def _sum(self, path: str, names: tuple[bytes, ...]) -> int:
        """The sum of these lines of a file about a process; nothing when it is gone."""
        with suppress(ProcessLookupError, FileNotFoundError):
            lines = self._read(path).split(b"\n")
            return _KIB * sum(int(line.split()[1]) for line in lines if line.startswith(names))
        return 0

    def _read(self, path: str) -> bytes:
        descriptor = os.open(path, os.O_RDONLY, dir_fd=self._proc)
        try:
            return os.read(descriptor, 65_536)
        finally:
            os.close(descriptor)
