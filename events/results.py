"""
The results of single items, read from a log by a few of their fields.

A long run has hundreds of thousands of them, and whoever adds them up needs no whole events: the fields alone, found in
the payload's canonical JSON, cost a third. Each row's hash is checked all the same, and a row that is not plainly as we
write it today (an older version, no measurement, a text in a blob, something erased or damaged) is read as the event
that it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple, cast, get_args

from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.chain import event_hash
from skillopt_es.events.errors import LogDamaged, LogUnreadable
from skillopt_es.events.log import EventLog
from skillopt_es.events.reader import ROWS
from skillopt_es.events.values import Measured, Outcome, Purpose

_MOST_ODD = 50  # of a chunk: so many are read one by one in no time, more are read with all around them
_NAME = RolloutCompleted.__name__
_PURPOSES = frozenset(get_args(Purpose))
_COLUMNS = "seq, version, recorded_at, cause, prev_hash, hash, data"
_OF_RESULTS = f"type = '{_NAME}' and seq > ? and seq <= ?"
_Row = tuple[int, int, str, "str | None", bytes, bytes, str]
# Keys are sorted, and a quote within a text is escaped: what looks like a key and its value is one.
_TEXT = r'"([^"\\]*(?:\\.[^"\\]*)*)"'
_FIELDS = re.compile(
    rf'"item":{_TEXT},"outcome":{{"hard":([^,]+),"kind":"measured","soft":([^}}]+)}},"place":{_TEXT},'
    rf'(?:"prediction":{_TEXT},)?"purpose":{_TEXT},"skill":{_TEXT},"task_type":{_TEXT}'
)


class Result(NamedTuple):
    """What came of one item at event `seq`; a tuple, for there are very many."""

    seq: int
    item: str
    place: str
    purpose: Purpose
    skill: str
    task_type: str
    outcome: Outcome


def results(log: EventLog, until: int, purposes: Collection[Purpose] = ()) -> Iterator[Result]:
    """The results up to event `until`, in order, of these purposes or all; raises LogDamaged as reading events does."""
    known: dict[tuple[str, str], Measured] = {}
    after = 0
    while after < until:
        try:
            rows = _chunk(log, after, until, purposes)
        except LogUnreadable:
            raise
        except LogDamaged:  # a broken page: reading event by event says where
            yield from _of_events(log, after, until, purposes)
            return
        last = rows[-1][0] if len(rows) == ROWS else until
        found = [_plain(row, known) for row in rows]
        if found.count(None) > _MOST_ODD:
            yield from _of_events(log, after, last, purposes)
        else:
            for row, result in zip(rows, found, strict=True):
                yield from _of_events(log, row[0] - 1, row[0], purposes) if result is None else (result,)
        after = last


def _chunk(log: EventLog, after: int, until: int, purposes: Collection[Purpose]) -> Sequence[_Row]:
    wanted = " or ".join("instr(data, ?)" for _ in purposes)
    where = f"{_OF_RESULTS} and ({wanted})" if wanted else _OF_RESULTS
    sql = f"select {_COLUMNS} from events where {where} order by seq limit {ROWS}"  # noqa: S608 -- of names of ours
    return cast("Sequence[_Row]", log.reader.rows(sql, [after, until, *(f'"purpose":"{each}"' for each in purposes)]))


def _plain(row: _Row, known: dict[tuple[str, str], Measured]) -> Result | None:
    """The result in a row; None for one that is not plainly a measurement, whole and of today's version."""
    seq, version, at, cause, prev_hash, hash_, data = row
    try:
        if version != RolloutCompleted.VERSION or event_hash(prev_hash, seq, _NAME, version, at, cause, data) != hash_:
            return None
        found = _FIELDS.search(data)
        if found is None:
            return None
        item, hard, soft, place, _, purpose, skill, kind = found.groups()
        outcome = known.get((hard, soft))
        if outcome is None:
            outcome = known[hard, soft] = Measured(float(hard), float(soft))
        if "\\" in found[0]:
            item, place, kind = (json.loads(f'"{text}"') for text in (item, place, kind))
    except (TypeError, ValueError):  # a damaged file can give anything in any column
        return None
    if purpose not in _PURPOSES:
        return None
    return Result(seq, item, place, cast("Purpose", purpose), skill, kind, outcome)


def _of_events(log: EventLog, after: int, until: int, purposes: Collection[Purpose]) -> Iterator[Result]:
    for recorded in log.read(after, until, (_NAME,)):
        event = recorded.event
        assert isinstance(event, RolloutCompleted)
        if not purposes or event.purpose in purposes:
            yield Result(
                recorded.seq, event.item, event.place, event.purpose, event.skill, event.task_type, event.outcome
            )
