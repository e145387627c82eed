"""
Requests that a run has made before: at temperature 0 the recorded answer serves again, where the config says so.

Only answers from other parts of the run count, so that it does not matter which of two calls ended first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from skillopt_es.events.journal import CallRow
from skillopt_es.ports import ChatRequest

_DRAWN_ANEW = re.compile(r"/(d\d+|told)/item/")


class Repeats:
    """The answered calls of a run by what they asked."""

    def __init__(self, rows: Iterable[CallRow]) -> None:
        self._rows: dict[str, dict[str, CallRow]] = {}
        for row in rows:
            self.add(row)

    def add(self, row: CallRow) -> None:
        """One more call; one that failed, was cut, or repeats another is no use."""
        call = row.call
        if call.outcome == "answered" and call.finish != "length" and not call.repeats:
            self._rows.setdefault(call.request_digest, {})[call.slot] = row

    def find(self, request: ChatRequest, digest: str) -> CallRow | None:
        """The call of another step or evaluation that asked the very same; only where an answer is no draw."""
        if request.temperature != 0 or _DRAWN_ANEW.search(request.slot):  # a gate that draws again wants a new answer
            return None
        here = _part(request.slot)
        slots = [slot for slot in self._rows.get(digest, ()) if _part(slot) != here]
        return self._rows[digest][min(slots)] if slots else None


def _part(slot: str) -> str:
    """What belongs together: calls that may be in flight at the same time."""
    return "/".join(slot.split("/")[:2])
