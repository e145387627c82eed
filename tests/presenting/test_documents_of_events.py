"""An event or a call as plain JSON says all that was recorded."""

from __future__ import annotations

import json
from pathlib import Path

from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.presenting.documents import plain_call, plain_event


def test_every_event_is_json_with_its_place_in_the_chain(demo_run: Path) -> None:
    """Each one's hash is the next one's `prev_hash`."""
    with EventLog.open(demo_run) as log:
        rows = [json.loads(json.dumps(plain_event(each))) for each in log.read()]
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    assert [row["prev_hash"] for row in rows[1:]] == [row["hash"] for row in rows[:-1]]
    assert all(isinstance(row["data"], dict) and row["version"] >= 1 for row in rows)


def test_a_call_names_its_texts_by_digest(demo_run: Path) -> None:
    """What it was asked and what it tried are values, no text within a text."""
    with EventLog.open(demo_run) as log:
        row = json.loads(json.dumps(plain_call(next(iter(Journal(log.reader).read())))))
    assert isinstance(row["request"], dict)
    assert isinstance(row["tries"], list)
    assert row["n"] == 1
