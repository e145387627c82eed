"""Usage: every call is counted once in every grouping, and what was not reported is not zero."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from attrs import evolve

from skillopt_es.events.journal import CallRow, FinishedCall, Journal
from skillopt_es.events.log import EventLog
from skillopt_es.projections.usage import SlotPlace, Tally, Usage, slot_place, usage_of

CALL = FinishedCall(slot="baseline/i1", role="target", stage="rollout", model="m", request="{}", outcome="answered")


def row(slot: str = "baseline/i1", tries: int = 0, **changes: object) -> CallRow:
    """A recorded call."""
    waited = json.dumps([{"kind": "server", "status": 503, "message": "", "waited_ms": 1}] * tries)
    call = evolve(CALL, slot=slot, tries=waited, **changes)  # type: ignore[arg-type]
    return CallRow(n=1, attempt=1, call=call, recorded_at="", prev_hash="", hash="")


@pytest.mark.parametrize(
    ("slot", "place", "epoch", "step"),
    [
        ("baseline/i1", "baseline", None, None),
        ("baseline/a/b/c", "baseline", None, None),
        ("e1/s2/b0/i1", "e1/s2/b0", 1, 2),
        ("e1/s2/b0/e9/s9/gate", "e1/s2/b0", 1, 2),
        ("e1/s2/b0/i1/turn-2/again", "e1/s2/b0", 1, 2),
        ("e1/s2/b0/failure-0", "e1/s2/b0", 1, 2),
        ("e1/s2/merge/failure-1-0", "e1/s2/merge", 1, 2),
        ("e1/s2/merge/final/again", "e1/s2/merge", 1, 2),
        ("e1/s2/rank", "e1/s2/rank", 1, 2),
        ("e10/s123/gate/i/1", "e10/s123/gate", 10, 123),
        ("e1/s2/current/i1", "e1/s2/current", 1, 2),
        ("e2/slow/previous/s3/x", "e2/slow/previous", 2, None),
        ("e2/slow/advice/again", "e2/slow/advice", 2, None),
        ("e2/meta", "e2/meta", 2, None),
        ("e2/slow/gate/i1", "e2/slow/gate", 2, None),
        ("final/val/i1", "final/val", None, None),
        ("final/test/best/i/1", "final/test/best", None, None),
        ("eval/val/i1", "eval/val", None, None),
        ("doctor", "doctor", None, None),
    ],
)
def test_a_slot_is_read_from_the_left(slot: str, place: str, epoch: int | None, step: int | None) -> None:
    """An item's id may look like anything."""
    assert slot_place(slot) == SlotPlace(place, epoch, step)


def test_what_was_not_reported_is_not_zero() -> None:
    """The sum of what was said, and how many said nothing; nothing at all is None."""
    usage = usage_of([row(input_tokens=7), row(), row(input_tokens=0)]).total
    assert usage.input == Tally(reported=7, silent=1, speaking=2)
    assert usage.input.known == 7
    assert usage.output.known is None
    assert usage.output.silent == 3


def test_a_reported_zero_is_known() -> None:
    """Unlike silence."""
    assert usage_of([row(cached_tokens=0)]).total.cached.known == 0


def test_tries_count_every_attempt_on_the_wire() -> None:
    """Two that were repeated and the answer; the one that failed."""
    usage = usage_of([row(tries=2), row(tries=1, outcome="failed", error_kind="server")]).total
    assert (usage.calls, usage.failed, usage.tries) == (2, 1, 4)


def test_no_calls_are_no_usage() -> None:
    """The fold of nothing."""
    usage = usage_of([])
    assert usage.total == Usage()
    assert usage.by_stage == {}


def test_every_grouping_adds_up_to_the_whole(demo_run: Path) -> None:
    """On the demo's journal."""
    with EventLog.open(demo_run) as log:
        usage = usage_of(Journal(log.reader).read())
        assert usage.total.calls == len(Journal(log.reader))
    for groups in (usage.by_stage, usage.by_role, usage.by_step, usage.by_epoch, usage.by_place):
        for number in ("calls", "failed", "tries"):
            assert sum(getattr(group, number) for group in groups.values()) == getattr(usage.total, number)
        assert sum(group.input.reported for group in groups.values()) == usage.total.input.reported
    assert set(usage.by_role) == {"target", "optimizer"}
    assert {1, 2, 3, None} == set(usage.by_epoch)
    assert usage.by_place["baseline"].calls == 40
