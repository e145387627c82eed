"""What the replies of all analysts have around their proposals: the patch, its list, and reminder notes beside it."""

from __future__ import annotations

from attrs import frozen

from skillopt_es.events.values import FailurePattern, Json
from skillopt_es.replies.json_reader import Unusable, read_object
from skillopt_es.replies.notes import read_notes
from skillopt_es.replies.parts import patterns_in, text_in


@frozen(kw_only=True)
class PatchEnvelope:
    """An analyst's reply with its proposals still as they came."""

    rows: tuple[Json, ...]
    patterns: tuple[FailurePattern, ...]
    reasoning: str
    notes: tuple[str, ...]


def read_envelope(text: str, key: str, *, support: int, most_notes: int) -> PatchEnvelope | Unusable:
    """The reply whose proposals stand in the list `key`; notes are read, and may come alone, if asked for."""
    found = read_object(text)
    if isinstance(found, Unusable):
        return found
    inner = found.get("patch", found)
    if inner is None and most_notes:
        inner = {}  # there may be lapses alone
    if not isinstance(inner, dict):
        return Unusable(f"`patch` must be an object with `reasoning` and `{key}`")
    notes = read_notes({**inner, **found}, most=most_notes) if most_notes else ()
    if isinstance(notes, Unusable):
        return notes
    rows = inner.get(key, [] if notes else None)
    if not isinstance(rows, list):
        return Unusable(f"`patch.{key}` must be a list (an empty one if nothing should change)")
    return PatchEnvelope(
        rows=tuple(rows),
        patterns=patterns_in(found.get("failure_summary"), support, with_cause=most_notes > 0),
        reasoning=text_in(inner, "reasoning"),
        notes=notes,
    )
