"""What skills were worth after so many calls, tokens and so much time."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from skillopt_es.audit.spending_curve import spending_curve
from skillopt_es.events.journal import Journal
from skillopt_es.projections.usage import usage_of
from skillopt_es.runs.reading import Reading


def test_a_curve_only_goes_on_and_ends_with_all_that_was_used(demo_run: Path) -> None:
    """Each point is a change of what the current or the best skill was worth."""
    with Reading.of(demo_run) as reading:
        curve = spending_curve(reading)
        total = usage_of(Journal(reading.log.reader).charges()).total
    assert curve.points
    for before, after in pairwise(curve.points):
        assert before.seq < after.seq
        assert before.calls <= after.calls
        assert before.tokens <= after.tokens
        assert before.seconds <= after.seconds
    last = curve.points[-1]
    assert last.best == 1.0
    assert last.calls == total.calls
    assert last.tokens == total.input.reported + total.output.reported
    assert last.cost is None


def test_the_best_is_never_worth_less_than_before(demo_run: Path) -> None:
    """The initial skill's score is the first point."""
    with Reading.of(demo_run) as reading:
        values = [point.best for point in spending_curve(reading).points if point.best is not None]
    assert values == sorted(values)
    assert values[0] == 0.15
