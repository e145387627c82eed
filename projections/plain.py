"""Recorded events and calls as plain JSON values, whole: big texts stand in their places."""

from __future__ import annotations

import json
from typing import cast

from attrs import asdict

from skillopt_es.events.catalog import Event, Recorded
from skillopt_es.events.journal import CallRow
from skillopt_es.events.strict import strict_converter
from skillopt_es.events.values import Json

_converter = strict_converter(detailed=False)


def plain_event(recorded: Recorded) -> dict[str, Json]:
    """An event as JSON, in the current version of its type."""
    kind = type(recorded.event)
    return {
        "seq": recorded.seq,
        "type": kind.__name__,
        "version": kind.VERSION,
        "recorded_at": recorded.recorded_at,
        "prev_hash": recorded.prev_hash,
        "hash": recorded.hash,
        "data": plain_payload(recorded.event),
    }


def plain_payload(event: Event) -> dict[str, Json]:
    """What an event says, as JSON."""
    return cast("dict[str, Json]", _converter.unstructure(event))


def plain_call(row: CallRow) -> dict[str, Json]:
    """A call as JSON; its messages and its answer are named by digest."""
    call = asdict(row.call)
    call.update(request=row.call.request.said, tries=json.loads(row.call.tries))
    return {
        "n": row.n,
        "attempt": row.attempt,
        "recorded_at": row.recorded_at,
        "digest": row.digest,
        **call,
    }
