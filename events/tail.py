"""
`tail`: where the log ended at its last commit, kept outside the database until the next anchor says so.

SQLite drops what follows a flipped bit in its write-ahead log, or a log that was deleted, without a word, and the
anchor is only as new as the last barrier. A line goes here after each commit, when what it names is on disk, so a
process that dies at any moment leaves a line that is true, at worst one commit behind. Two lines take turns, as the two
meta pages of LMDB do: one that a power cut tears leaves the other.

It is not synced: after a power cut it may be older, and is then true all the same. A line costs 5 us of processor time
a commit, which up to 64 calls share; a sync would take as long as the commit itself, .2 to 4 ms
(docs/dev/decisions/0002-state-may-lead-the-disk.md).

Tried and dropped:

- The anchor alone: a lost end was told only where an anchor had named it, so all since the last barrier could go.
- The file alone: without it a log looked like one of a writer that had ended well, so `tail` could be taken away from a
  killed run unseen. `lock` says now that it must be there.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from attrs import asdict, evolve, frozen

from skillopt_es.events.anchor import Anchor, parsed_anchor, sync_folder
from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.faults import read_fault, system_fault
from skillopt_es.events.lock import marked_lock
from skillopt_es.events.plain import read_plain
from skillopt_es.events.values import digest_of

TAIL_FILE = "tail"
# Long enough for any end; what is left of a line is blank.
_LINE = 1024
# Written in turns: when one is torn, the end before it stands in the other.
_LINES = 2
# How much of its own digest a line ends with.
_CHECK = 16
_LOOKS = 3  # a line takes microseconds to write: a reader that meets a torn one three times has met no writer
# No link is followed, and no pipe waited for, that somebody put in its place.
_WRITING = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@frozen
class Told:
    """
    What the file says: where the log ended, if anything, and how many of its lines are not what was written.

    `gone`: it is not there, though the last writer did not put it away.
    """

    end: Anchor | None
    damaged: int
    gone: bool = False


class TailFile:
    """The file of one writer."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / TAIL_FILE
        self._file: int | None = None
        self._turn = 0
        self._owed: Anchor | None = None

    def begin(self) -> None:
        """Has the file in its place, with what stands in it; raises LogUnwritable where the disk refuses."""
        if self._file is not None:
            return
        try:
            there = self._path.exists()
            self._file = os.open(self._path, _WRITING, 0o644)
            if not there:
                sync_folder(self._path.parent)
        except OSError as error:
            raise system_fault(error, self._path) from error

    def note(self, end: Anchor) -> None:
        """Says that the log ends there, once that is durable; what the disk refuses is owed, see `settle`."""
        self._owed = end
        with suppress(OSError):  # the commit stands; the next one hears of it
            self._write(end)

    def settle(self) -> None:
        """Writes what is still owed; raises LogUnwritable where the disk refuses it again."""
        if self._owed is not None:
            try:
                self._write(self._owed)
            except OSError as error:
                raise system_fault(error, self._path) from error

    def clear(self) -> None:
        """Says nothing any more: the anchor does."""
        self._owed, self._turn = None, 0
        with suppress(OSError):  # a line that stays is still true
            if self._file is not None:
                os.ftruncate(self._file, 0)

    def remove(self) -> None:
        """Takes the file away: the anchor says it all, and nobody writes any more."""
        self.close()
        with suppress(OSError):
            self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """Gives the file back as it is."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _write(self, end: Anchor) -> None:
        if self._file is None:
            self._file = os.open(self._path, _WRITING | os.O_TRUNC, 0o644)
        os.pwrite(self._file, _line(end), self._turn * _LINE)
        self._turn = (self._turn + 1) % _LINES
        self._owed = None


def read_tail(folder: Path) -> Told:
    """What `tail` says; nothing where there is none. Raises LogDamaged where not one of its lines can be read."""
    told = _read(folder)
    for _ in range(_LOOKS):  # a writer may be in the middle of a line
        if not told.damaged:
            break
        told = _read(folder)
    if told.damaged and told.end is None:
        raise LogDamaged(f"{folder / TAIL_FILE} is damaged: it is not what was written")
    return evolve(told, gone=_is_gone(folder))


def _is_gone(folder: Path) -> bool:
    """Whether `tail` was taken away; a writer that comes or goes meanwhile is not mistaken for that."""
    for _ in range(_LOOKS):
        marked = marked_lock(folder)
        if not marked or os.path.lexists(folder / TAIL_FILE) or marked_lock(folder) != marked:
            return False
    return True


def _read(folder: Path) -> Told:
    path = folder / TAIL_FILE
    try:
        content = read_plain(path)
    except FileNotFoundError:
        return Told(None, 0)
    except OSError as error:
        raise read_fault(error, path) from error
    # A line whose turn has not come is a hole of zeros.
    lines = [content[start : start + _LINE].strip(b"\0") for start in range(0, len(content), _LINE)]
    written = [line for line in lines if line]
    ends = [end for end in map(_parsed, written) if end is not None]
    newest = max(ends, key=lambda end: (end.seq, end.calls), default=None)
    return Told(newest, len(written) - len(ends))


def _line(end: Anchor) -> bytes:
    said = json.dumps(asdict(end), sort_keys=True).encode()
    return said.ljust(_LINE - _CHECK - 1) + digest_of(said)[:_CHECK].encode() + b"\n"


def _parsed(line: bytes) -> Anchor | None:
    """The line, or None for one that is not what was written."""
    said = line[: -_CHECK - 1].rstrip(b" ")
    return parsed_anchor(said) if line[-_CHECK - 1 :] == digest_of(said)[:_CHECK].encode() + b"\n" else None
