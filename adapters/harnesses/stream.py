"""An agent's standard output as events."""

from __future__ import annotations

import json
from typing import cast

from attrs import frozen

from skillopt_es.adapters.harnesses.agent import Event


@frozen
class Stream:
    """The JSON objects of an output, one a line, and the first of its lines that is none."""

    events: tuple[Event, ...]
    garbage: str


def read_stream(output: bytes) -> Stream:
    """The events of an output; a line that is cut, empty or no JSON object does not hide the others."""
    events: list[Event] = []
    garbage = ""
    # Not splitlines, which would also split at characters inside JSON texts.
    for line in output.decode(errors="replace").split("\n"):
        if not line.strip():
            continue
        parsed = _parsed(line)
        if parsed is None:
            garbage = garbage or line.strip()[:500]
        else:
            events.append(parsed)
    return Stream(tuple(events), garbage)


def _parsed(line: str) -> Event | None:
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        # RecursionError is what deep nesting raises.
        return None
    return cast(Event, value) if isinstance(value, dict) else None


def total(*counts: int | None) -> int | None:
    """The sum of what is known; None when nothing is."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
