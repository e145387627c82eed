"""The runs of one directory for the page: found by name alone, read once for each state of their logs."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

from attrs import define, evolve, field

from skillopt_es.events.errors import LogError, RunNotFound
from skillopt_es.events.schema import LOG_FILE
from skillopt_es.report.facts import Depth, Facts, facts_of
from skillopt_es.runs.folders import is_run, is_written
from skillopt_es.runs.overview import Overview, Unreadable, known_overview, read_and_kept
from skillopt_es.runs.reading import Reading
from skillopt_es.ui.safety import Rules
from skillopt_es.ui.shell import Visit

T = TypeVar("T")
Mark = tuple[object, ...]
"""What tells one state of a log from another, without reading it."""

_TICK_NS = 100_000_000  # file systems tell times apart by up to 10 ms, some over a network by more
_MOST = {"whole": 2}  # read of so many runs is kept in memory: all of a long run is large
_USUAL = 16  # more runs than one person has open; what is forgotten is read again
_MOST_SAID = 100  # confirmations that are kept: the latest ones


def mark_of(folder: Path) -> Mark:
    """The state that a run's log is in; of one that was written just now, none that tells it from the next."""
    found: list[object] = [is_written(folder)]
    last = 0
    for path in (folder / LOG_FILE, folder / f"{LOG_FILE}-wal"):
        try:
            stat = path.stat()
        except OSError:
            found.append(None)
            continue
        found += (stat.st_size, stat.st_mtime_ns)
        last = max(last, stat.st_mtime_ns)
    # Two commits within one tick of the clock leave the same time, and often the same size.
    return tuple(found) if time.time_ns() - last > _TICK_NS else (*found, object())


@define
class Site:
    """The directory, the rules, and what was read lately."""

    directory: Path
    rules: Rules
    _read: OrderedDict[tuple[Path, object], tuple[Mark, object]] = field(factory=OrderedDict)
    _overviews: dict[Path, tuple[Mark, Overview | Unreadable]] = field(factory=dict)
    _said: OrderedDict[str, str] = field(factory=OrderedDict)
    _lock: threading.Lock = field(factory=threading.Lock)

    def visit(self) -> Visit:
        """What a page may offer; the guard lets nobody near one who is not signed in."""
        return Visit(form_token="" if self.rules.read_only else self.rules.form_token, directory=str(self.directory))

    def left(self, words: str) -> str:
        """Keeps what the next page is to say, and returns the code that an address may carry to it."""
        code = secrets.token_urlsafe(16)
        with self._lock:
            self._said[code] = words
            while len(self._said) > _MOST_SAID:
                self._said.popitem(last=False)
        return code

    def said(self, code: str) -> str:
        """The words that were left under a code; empty for any other. They stay: an open page is fetched often."""
        with self._lock:
            return self._said.get(code, "")

    def folders(self) -> list[Path]:
        """All runs, by name."""
        if not self.directory.is_dir():
            return []
        return sorted(path for path in self.directory.iterdir() if is_run(path))

    def folder(self, name: str) -> Path:
        """The folder of a run; only a name that the directory has leads to one, whatever was asked for."""
        for path in self.directory.iterdir() if self.directory.is_dir() else ():
            if path.name == name and is_run(path):
                return path
        raise RunNotFound(f"there is no run {name} here", hint="the list of runs has those that there are")

    def facts(self, folder: Path, depth: Depth) -> Facts:
        """The facts of a run as its log is now, under the name of its folder: that leads to it, also in a copy."""

        def read() -> Facts:
            with Reading.of(folder) as reading:
                return evolve(facts_of(reading, folder, depth), name=folder.name)

        return self.kept(folder, depth, read)

    def damage(self, folder: Path) -> str:
        """What is wrong with a run's log; empty where it is whole."""

        def read() -> str:
            with Reading.of(folder) as reading:
                return "" if reading.problem is None else f"{reading.problem}; it is shown as far as it can be read"

        return self.kept(folder, "damage", read)

    def kept(self, folder: Path, what: object, read: Callable[[], T]) -> T:
        """What was read of a run, read anew only if its log has changed since."""
        key, mark = (folder, what), mark_of(folder)
        with self._lock:
            found = self._read.get(key)
            if found is not None and found[0] == mark:
                self._read.move_to_end(key)
                return cast("T", found[1])
        value = read()
        with self._lock:
            self._read[key] = (mark, value)
            self._read.move_to_end(key)
            of_kind = [each for each in self._read if each[1] == what]
            for old in of_kind[: -_MOST.get(str(what), _USUAL)]:
                del self._read[old]
        return value

    def overviews(self) -> list[Overview | Unreadable]:
        """Where each run stands, by name; of those whose logs rest, as it was seen before."""
        found = {folder: self._overview(folder) for folder in self.folders()}
        with self._lock:
            self._overviews = found
        return [each for _, each in found.values()]

    def _overview(self, folder: Path) -> tuple[Mark, Overview | Unreadable]:
        mark, before = mark_of(folder), self._overviews.get(folder)
        if before is not None and before[0] == mark:
            return before
        try:
            return mark, known_overview(folder) or read_and_kept(folder)
        except LogError as error:
            return mark, Unreadable(folder, error.message)
