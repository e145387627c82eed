"""
`.overviews.json` beside the runs: what each of them came to when it was last read, so that many can be listed at once.

It can be deleted at any time. An overview is taken from it only while the files of its run are, to the system, those
that were read: the same inodes, sizes and times of change. Files that were written a moment ago may change once more
within one tick of the disk's clock, so of these nothing is kept.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

from attrs import field, frozen

from skillopt_es.events.anchor import ANCHOR_FILE
from skillopt_es.events.schema import LOG_FILE
from skillopt_es.events.strict import MISFITS, strict_converter
from skillopt_es.events.tail import TAIL_FILE
from skillopt_es.events.values import Json, digest_of
from skillopt_es.version import software_version

FILE = ".overviews.json"
FORMAT = 1
SETTLED_NS = 2_000_000_000
_FILES = (LOG_FILE, f"{LOG_FILE}-wal", ANCHOR_FILE, TAIL_FILE)

Marks = list[Json]
"""What the system says of a run's files; an entry for each that tells one version of it from another."""


Entry = tuple[Marks, Json]
"""The marks of a run's files when they were read, and its overview as plain values."""


@frozen
class Index:
    """What is known of the runs of a directory: by name, the marks of its files and its overview as plain values."""

    directory: Path
    known: Mapping[str, Entry] = field(factory=dict)

    @classmethod
    def read(cls, directory: Path) -> Index:
        """The index of a directory; nothing is known where it is not there or not what was written."""
        try:
            text, digest, end = (directory / FILE).read_text(encoding="utf-8").split("\n")
            said = json.loads(text) if not end and digest_of(text.encode()) == digest else {}
            if said.get("format") != [FORMAT, software_version()]:
                return cls(directory)
            return cls(directory, {name: (marks, value) for name, [marks, value] in said["runs"].items()})
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return cls(directory)

    def value(self, name: str, marks: Marks) -> Json:
        """What is known of a run whose files have these marks; None for nothing."""
        then, value = self.known.get(name, ([], None))
        return value if then == marks else None

    def write(self, runs: Mapping[str, Entry]) -> None:
        """
        Puts a new index in its place, or leaves the old one where that cannot be written: it only saves time.

        What was changed a moment ago is left out.
        """
        now = self._now()
        lasting = {name: entry for name, entry in runs.items() if settled(entry[0], now)}
        if lasting == self.known:
            return
        text = json.dumps({"format": [FORMAT, software_version()], "runs": lasting})
        new = self.directory / f"{FILE}.{os.getpid()}"
        with suppress(OSError):
            try:
                new.write_text(f"{text}\n{digest_of(text.encode())}\n", encoding="utf-8")
                new.replace(self.directory / FILE)
            finally:
                new.unlink(missing_ok=True)

    def _now(self) -> int:
        """The time on the clock of the directory's disk; 0 where nothing can be written."""
        probe = self.directory / f"{FILE}.{os.getpid()}"
        try:
            probe.touch()
            try:
                return probe.stat().st_mtime_ns
            finally:
                probe.unlink()
        except OSError:
            return 0


def marks_of(folder: Path) -> Marks:
    """What the system says of a run's files now."""
    marks: Marks = []
    for name in _FILES:
        try:
            found = (folder / name).stat()
        except OSError:
            marks.append(None)
            continue
        if found.st_size:  # an empty write-ahead log says no more than none
            # SQLite sets the owner of that log at each opening, which changes its ctime.
            changed = found.st_mtime_ns if name.endswith("-wal") else found.st_ctime_ns
            marks.append([found.st_ino, found.st_size, found.st_mtime_ns, changed])
        else:
            marks.append(None)
    return marks


def settled(marks: Marks, now: int) -> bool:
    """Whether the files were last changed well before that time."""
    return all(mark is None or max(_times(mark)) < now - SETTLED_NS for mark in marks)


def _times(mark: Json) -> Iterable[int]:
    assert isinstance(mark, list)
    return [time for time in mark[2:] if isinstance(time, int)]


converter = strict_converter(detailed=False)
converter.register_unstructure_hook(Decimal, str)
converter.register_structure_hook(Decimal, lambda value, _: Decimal(value))
converter.register_unstructure_hook(Path, str)
converter.register_structure_hook(Path, lambda value, _: Path(value))

__all__ = ["MISFITS", "Entry", "Index", "converter", "marks_of"]
