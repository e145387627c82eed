"""
What happens in a run, sent to an open page as it happens: server-sent events whose id is the number of the event.

A page says up to which event it shows the run; a browser that lost its connection says which event it had last. Either
way it is told every later event once, in order. Each page asks the log for itself, by number, and holds nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import cast

from skillopt_es.events.catalog import Recorded, RunCompleted
from skillopt_es.events.errors import LogError, RunNotFound, SkillOptError
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import Json
from skillopt_es.presenting.event_lines import in_words, milestone
from skillopt_es.runs.folders import is_run, is_written
from skillopt_es.runs.now import Now, now_of
from skillopt_es.ui.run_page import now_words
from skillopt_es.ui.site import Mark, Site, mark_of

LOOK_EVERY = 0.1
"""Seconds between two looks at a log that somebody writes."""
_IDLE_EVERY = 0.5  # a run that is resumed shows on the page half a second later
_LIST_EVERY = 1.0  # each look asks the disk about the files of every run
_BEAT_SECONDS = 15.0  # a connection that says nothing for longer may be taken for a dead one
_AT_ONCE = 200  # events of one message block: others have their turn in between


def message(kind: str, data: Json, *, seq: int | None = None) -> str:
    """One server-sent event."""
    lead = "" if seq is None else f"id: {seq}\n"
    return f"{lead}event: {kind}\ndata: {json.dumps(data)}\n\n"


def told(recorded: Recorded) -> str:
    """One event of a log, for an open page: its line, and whether it deserves a fresh look at the page."""
    event = recorded.event
    turned = bool(milestone(event)) or isinstance(event, RunCompleted)
    data: dict[str, Json] = {
        "seq": recorded.seq,
        "at": recorded.recorded_at,
        "type": type(event).__name__,
        "says": in_words(event),
        "turned": turned,
    }
    return message("happened", data, seq=recorded.seq)


async def until_it_fails(messages: AsyncIterator[str]) -> AsyncIterator[str]:
    """The messages; an open page is told of an error that ends them, and the terminal shows one that is a bug."""
    try:
        async for each in messages:
            yield each
    except SkillOptError as error:
        yield message("failed", {"says": str(error)})
    except Exception as error:
        yield message("failed", {"says": f"{type(error).__name__}: {error}"})
        raise


async def run_stream(folder: Path, after: int) -> AsyncIterator[str]:
    """Every event after `after`, each new one as it is written, and in between what the writer is doing."""
    said: Now | None = None
    quiet = 0.0
    at_work: bool | None = None
    with _Tail(folder, after) as tail:
        while True:
            if not is_run(folder):
                raise RunNotFound(f"there is no run {folder.name} here any more")
            written = is_written(folder)
            if written != at_work:
                at_work = written
                yield message("state", {"written": written})
            while new := tail.next(written=written):
                quiet = 0.0
                for recorded in new:
                    yield told(recorded)
                await asyncio.sleep(0)  # others have their turn
            now = now_of(folder) if written else None
            if now != said:
                said, quiet = now, 0.0
                yield message("now", cast("Json", now_words(now)))
            every = LOOK_EVERY if written else _IDLE_EVERY
            quiet += every
            if quiet >= _BEAT_SECONDS:
                quiet = 0.0
                yield ": still here\n\n"
            await asyncio.sleep(every)


class _Tail:
    """The events of a log after a number, some at a time: by an open log while it is written, else by its files."""

    def __init__(self, folder: Path, after: int) -> None:
        self._folder = folder
        self._after = after
        self._log: EventLog | None = None
        self._seen: Mark | None = None

    def __enter__(self) -> _Tail:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def next(self, *, written: bool) -> list[Recorded]:
        """The next ones that there are; of a damaged log those before the damage, which the page itself tells of."""
        try:
            return self._next(written=written)
        except LogError:
            self._close()
            return []

    def _next(self, *, written: bool) -> list[Recorded]:
        if not written:
            mark = mark_of(self._folder)
            if mark == self._seen:
                self._close()  # nobody writes: the file is not held
                return []
            self._seen = mark
        if self._log is None:
            self._log = EventLog.open(self._folder)
        head = self._log.head().seq
        if head <= self._after:
            return []
        self._seen = None  # there may be more
        found = list(self._log.read(self._after, min(head, self._after + _AT_ONCE)))
        self._after = found[-1].seq
        return found

    def _close(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None


async def list_stream(site: Site) -> AsyncIterator[str]:
    """Says that something in the directory is not as it was, for an open list of runs."""

    def look() -> tuple[object, ...]:
        return tuple((folder.name, mark_of(folder)) for folder in site.folders())

    async for each in _changes(look):
        yield each


async def _changes(look: Callable[[], object]) -> AsyncIterator[str]:
    quiet, seen = 0.0, await asyncio.to_thread(look)
    yield message("state", {})
    while True:
        await asyncio.sleep(_LIST_EVERY)
        found = await asyncio.to_thread(look)
        quiet += _LIST_EVERY
        if found != seen:
            seen, quiet = found, 0.0
            yield message("changed", {})
        elif quiet >= _BEAT_SECONDS:
            quiet = 0.0
            yield ": still here\n\n"
