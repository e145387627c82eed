"""
Requests that a run has made before: at temperature 0 the recorded answer serves again, where the config says so.

Only answers from other parts of the run count, so that it does not matter which of two calls ended first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from skillopt_es.events.journal import CallRow
from skillopt_es.events.places import Place
from skillopt_es.events.values import CallRef
from skillopt_es.ports import ChatRequest


class Repeats:
    """
    The answered calls of a run by what they asked.

    Those that were made ahead of a verdict count once somebody has asked for them: a run without them has no others.
    """

    def __init__(self, rows: Iterable[CallRow], used: Collection[CallRef] = ()) -> None:
        self._rows: dict[str, dict[str, CallRow]] = {}
        self._ahead: dict[tuple[str, str], CallRow] = {}
        for row in rows:
            self.add(row)
            if row.call.ahead and row.ref in used:
                self.asked_for(row.call.slot, row.call.request_digest)

    def add(self, row: CallRow) -> None:
        """One more call; one that failed, was cut, or repeats another is no use."""
        call = row.call
        if call.outcome != "answered" or call.finish == "length" or call.repeats:
            return
        if call.ahead:
            self._ahead[call.slot, call.request_digest] = row
        else:
            self._rows.setdefault(call.request_digest, {})[call.slot] = row

    def asked_for(self, slot: str, digest: str) -> None:
        """A request was put; if its answer was there ahead of time, it is one like all others now."""
        row = self._ahead.pop((slot, digest), None)
        if row is not None:
            self._rows.setdefault(digest, {})[slot] = row

    def find(self, request: ChatRequest, digest: str) -> CallRow | None:
        """The call of another step or evaluation that asked the very same; only where an answer is no draw."""
        if request.temperature != 0 or Place(request.slot).drawn_anew:  # a gate that draws again wants a new answer
            return None
        here = _part(request.slot)
        slots = [slot for slot in self._rows.get(digest, ()) if _part(slot) != here]
        return self._rows[digest][min(slots)] if slots else None


def _part(slot: str) -> str:
    """What belongs together: calls that may be in flight at the same time."""
    return Place(slot).starts(2)
