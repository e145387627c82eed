"""What was asked ahead of a verdict, and which of it nobody wanted in the end."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from skillopt_es.events.journal import CallRow, FinishedCall
from skillopt_es.events.requests import RecordedRequest
from skillopt_es.projections.usage import AheadTally


def row(slot: str, asked: str = "{}", *, ahead: bool = False, repeats: str = "") -> CallRow:
    """A recorded call."""
    request = RecordedRequest(asked)
    call = FinishedCall(
        slot=slot, role="target", stage="rollout", model="m", request=request, outcome="answered", ahead=ahead,
        repeats=repeats,
    )  # fmt: skip
    return CallRow(n=1, attempt=1, call=call, recorded_at="", prev_hash="", hash="")


ROWS = [row("e1/s1/b0/i1"), row("e1/s2/b0/i1", ahead=True), row("e1/s3/b0/i1", ahead=True)]


@pytest.mark.parametrize(
    ("accepted", "last", "wasted"), [((), None, 0), ((1,), None, 1), ((1, 2), None, 2), ((), 2, 1), ((), 1, 2)]
)
def test_a_taken_candidate_and_an_early_end_make_waste(
    accepted: Collection[int], last: int | None, wasted: int
) -> None:
    """What was asked under the skill before it is not what the step needs."""
    tally = AheadTally()
    assert list(tally.passing(ROWS)) == ROWS
    found = tally.result(accepted, last_step=last)
    assert (found.made.calls, found.wasted.calls, found.repeats) == (2, wasted, 0)


def test_a_place_that_asks_something_else_later_wasted_its_call() -> None:
    """And a repeat saved one."""
    tally = AheadTally()
    rows = [*ROWS, row("e1/s2/b0/i1", '{"model": "other"}'), row("e1/s2/b0/i2", repeats="e1/s1/b0/i1")]
    assert len(list(tally.passing(rows))) == 5
    found = tally.result(())
    assert (found.wasted.calls, found.repeats) == (1, 1)
