"""What a run's skills were worth after so many calls, tokens, so much money and time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import cast

from attrs import frozen

from skillopt_es.events.journal import Journal
from skillopt_es.events.reader import Reader
from skillopt_es.projections.prices import Prices, recorded_prices
from skillopt_es.projections.summary import OVERVIEW, Summary, summarize
from skillopt_es.projections.usage import UsageSums, usage_of
from skillopt_es.runs.durations import COMINGS, Moment, moments_of
from skillopt_es.runs.overview import SESSIONS
from skillopt_es.runs.reading import Reading


@frozen(kw_only=True)
class Point:
    """
    After an event that changed what the current or the best skill was worth: both, and what had been used by then.

    Tokens are those that were reported, `cost` is None where no price is known; either is a lower bound where a call
    said less.
    """

    seq: int
    current: float | None
    best: float | None
    calls: int
    tokens: int
    cost: float | None
    seconds: float


@frozen(kw_only=True)
class SpendingCurve:
    """All points of a run, and the last one once more at its end; a fork's begin with those that it shares."""

    name: str
    currency: str
    points: tuple[Point, ...]


def spending_curve(reading: Reading) -> SpendingCurve:
    """The curve of a run as far as its log can be read."""
    prices = recorded_prices(recorded.event for recorded in reading.read(types=SESSIONS))
    changes = list(_changes(reading))
    calls, times = _calls(reading.log.reader), _at_work(moments_of(reading.log.reader, reading.until))
    journal, total, seen = Journal(reading.log.reader), usage_of(()).total, 0
    points = []
    for seq, at, summary in changes:
        made = bisect_right(calls, at)
        total, seen = total + _used(journal, seen, made, prices), max(seen, made)
        points.append(_point(seq, summary, total, prices, times.get(seq, 0.0)))
    return SpendingCurve(name=reading.run.name, currency=prices.currency, points=tuple(points))


def _used(journal: Journal, after: int, until: int, prices: Prices) -> UsageSums:
    if until <= after:
        return usage_of(()).total
    # Most calls are plain ones, which SQLite adds up: one by one they were half of what a curve took.
    return usage_of(journal.charges(after, until, plain=False), prices, journal.plain_sums(after, until)).total


def _changes(reading: Reading) -> Iterator[tuple[int, str, Summary]]:
    """Each event after which the current or the best skill is worth something else, and the last of all."""
    summary = Summary()
    said: tuple[float | None, float | None] = (None, None)
    last: tuple[int, str] | None = None
    for recorded in reading.read(types=OVERVIEW):
        summary = summarize([recorded.event], summary)
        worth = (summary.current.value, summary.best.value)
        if worth != said:
            said = worth
            yield recorded.seq, recorded.recorded_at, summary
            last = None
        else:
            last = recorded.seq, recorded.recorded_at
    if last is not None:
        yield *last, summary


def _calls(reader: Reader) -> list[str]:
    """When each call was recorded, never earlier than the one before it."""
    rows = reader.rows("select recorded_at from calls order by n")
    return list(accumulate((cast("str", at) for (at,) in rows), max))


def _at_work(moments: Iterable[Moment]) -> dict[int, float]:
    """For how many seconds writers had been at work, after the event with each number."""
    found: dict[int, float] = {}
    total = 0.0
    last: Moment | None = None
    for moment in moments:
        waited = last is not None and moment.type not in COMINGS
        seconds = (moment.at - last.at).total_seconds() if waited and last is not None else 0.0
        total += seconds
        found[moment.seq] = total
        last = moment
    return found


def _point(seq: int, summary: Summary, used: UsageSums, prices: Prices, seconds: float) -> Point:
    return Point(
        seq=seq,
        current=summary.current.value,
        best=summary.best.value,
        calls=used.calls,
        tokens=used.input.reported + used.output.reported,
        cost=float(used.cost.known) if prices.currency and used.cost.known is not None else None,
        seconds=seconds,
    )
