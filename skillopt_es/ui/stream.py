"""
What happens in a run, sent to an open page as it happens: server-sent events whose id is the number of the event.

A page says up to which event it shows the run; a browser that lost its connection says which event it had last. Either
way it is told every later event once, in order. Each page asks the log for itself, by number, and holds nothing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import cast

from skillopt_es.events.catalog import Recorded, RunCompleted
from skillopt_es.events.errors import LogError
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import Json
from skillopt_es.presenting.event_lines import in_words, milestone
from skillopt_es.runs.folders import is_written
from skillopt_es.runs.now import Now, now_of
from skillopt_es.ui.run_page import now_words
from skillopt_es.ui.site import Mark, Site, mark_of

LOOK_EVERY = 0.1
"""Seconds between two looks at a log that somebody writes."""
_IDLE_EVERY = 0.5
_LIST_EVERY = 1.0
_BEAT_SECONDS = 15.0  # a connection that says nothing for longer may be taken for a dead one
_AT_ONCE = 200


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


async def run_stream(folder: Path, after: int) -> AsyncIterator[str]:
    """Every event after `after`, each new one as it is written, and in between what the writer is doing."""
    said: Now | None = None
    quiet, seen = 0.0, cast("Mark | None", None)
    yield message("state", {"written": is_written(folder)})
    while True:
        written = is_written(folder)
        mark = mark_of(folder)
        if mark != seen:
            # Before the log is read: what is written meanwhile is another state, and looked at again.
            seen = mark
            async with aclosing(_new(folder, after)) as events:
                async for recorded in events:
                    after, quiet = recorded.seq, 0.0
                    yield told(recorded)
        now = now_of(folder) if written else None
        if now != said:
            said, quiet = now, 0.0
            yield message("now", cast("Json", now_words(now)))
        quiet += LOOK_EVERY if written else _IDLE_EVERY
        if quiet >= _BEAT_SECONDS:
            quiet = 0.0
            yield ": still here\n\n"
        await asyncio.sleep(LOOK_EVERY if written else _IDLE_EVERY)


async def _new(folder: Path, after: int) -> AsyncGenerator[Recorded, None]:
    """The events after `after`, some at a time, so that others have their turn; of a damaged log, those before."""
    try:
        with EventLog.open(folder) as log:
            head = log.head().seq
            while after < head:
                for recorded in log.read(after, min(head, after + _AT_ONCE)):
                    after = recorded.seq
                    yield recorded
                await asyncio.sleep(0)
    except LogError:
        return  # the page itself says what is wrong


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
