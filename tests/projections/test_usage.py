"""Usage: every call is counted once in every grouping, and what was not reported is not zero."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from skillopt_es.events.catalog import Event, Recorded, RunForked, RunPaused, RunResumed, RunStarted
from skillopt_es.events.journal import CallRow, FinishedCall, Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.requests import KINDS, RecordedRequest
from skillopt_es.events.values import SkillTree, SplitIds
from skillopt_es.projections.prices import Prices, prices_in
from skillopt_es.projections.usage import Money, Tally, UsageSums, crashes, usage_of

CALL = FinishedCall(
    slot="baseline/i1", role="target", stage="rollout", model="m", request=RecordedRequest("{}"), outcome="answered"
)


def row(
    slot: str = "baseline/i1", tries: int = 0, rows: tuple[dict[str, object], ...] = (), **changes: object
) -> CallRow:
    """A recorded call."""
    waited = [{"kind": "server", "status": 503, "message": "", "waited_ms": 1}] * tries
    call = evolve(CALL, slot=slot, tries=json.dumps([*waited, *rows]), **changes)  # type: ignore[arg-type]
    return CallRow(n=1, attempt=1, call=call, recorded_at="", prev_hash="", hash="")


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


def test_a_repeat_is_no_call_and_reports_nothing() -> None:
    """What no call has reported stays unknown beside it."""
    repeat = row(repeats="baseline/i0", input_tokens=0, output_tokens=0, cached_tokens=0, reasoning_tokens=0)
    made = row(input_tokens=7)
    assert usage_of([made, repeat, repeat]) == usage_of([made])
    assert usage_of([made, repeat]).total.cached.known is None


def test_tries_count_every_attempt_on_the_wire() -> None:
    """Two that were repeated and the answer; the one that failed."""
    usage = usage_of([row(tries=2), row(tries=1, outcome="failed", error_kind="server")]).total
    assert (usage.calls, usage.failed, usage.tries) == (2, 1, 4)


def test_no_calls_are_no_usage() -> None:
    """The fold of nothing."""
    usage = usage_of([])
    assert usage.total == UsageSums()
    assert usage.by_stage == {}


def test_reading_no_more_than_the_charges_comes_to_the_same(demo_run: Path) -> None:
    """Every group of the demo."""
    with EventLog.open(demo_run) as log:
        journal = Journal(log.reader)
        assert usage_of(journal.charges()) == usage_of(journal.read())
        assert usage_of(journal.charges(after=100)) == usage_of(journal.read(after=100))


def test_every_grouping_adds_up_to_the_whole(demo_run: Path) -> None:
    """On the demo's journal."""
    with EventLog.open(demo_run) as log:
        usage = usage_of(Journal(log.reader).read())
        assert usage.total.calls == len(Journal(log.reader))
    for groups in (
        usage.by_stage,
        usage.by_role,
        usage.by_step,
        usage.by_epoch,
        usage.by_evaluation,
        usage.by_place,
    ):
        for number in ("calls", "failed", "tries"):
            assert sum(getattr(group, number) for group in groups.values()) == getattr(usage.total, number)
        assert sum(group.input.reported for group in groups.values()) == usage.total.input.reported
    assert set(usage.by_role) == {"target", "optimizer"}
    assert {1, 2, 3, None} == set(usage.by_epoch)
    assert usage.by_place["baseline"].calls == 40
    assert usage.by_evaluation["baseline"].calls == 40
    assert {place for place in usage.by_evaluation if place and place.startswith("final/test/")}
    assert not any(place and "/b0" in place for place in usage.by_evaluation)


# --- sessions ------------------------------------------------------------------------------------------------------

STARTED = RunStarted(software="", config={}, algorithm="classic", folder="", skill=SkillTree(files={}),
                     splits=SplitIds((), (), (), {}), steps_per_epoch=1, total_steps=1)  # fmt: skip
PAUSED, RESUMED = RunPaused(reason="interrupt", message=""), RunResumed(software="")
FORKED = RunForked(software="", parent="p", parent_id="", seq=1, inherited=0, values={})


@pytest.mark.parametrize(
    ("events", "times"),
    [
        ([(1, STARTED), (9, PAUSED), (10, RESUMED)], 0),
        ([(1, STARTED), (9, PAUSED), (12, RESUMED)], 0),  # a command recorded something meanwhile
        ([(1, STARTED), (9, FORKED), (12, RESUMED)], 0),
        ([(1, STARTED), (9, RESUMED)], 1),
        ([(1, STARTED), (5, PAUSED), (6, RESUMED), (9, RESUMED), (12, RESUMED)], 2),
        ([(1, STARTED), (5, RESUMED), (6, FORKED), (8, RESUMED)], 0),
        ([(1, STARTED), (6, FORKED), (8, RESUMED), (9, RESUMED)], 1),
    ],
)
def test_a_writer_that_ended_without_a_pause_was_killed(events: list[tuple[int, Event]], times: int) -> None:
    """Whatever a command recorded between the pause and the next writer."""
    assert (
        crashes(Recorded(seq=seq, recorded_at="", event=event, hash="", prev_hash="") for seq, event in events) == times
    )


# --- attempts that gave no answer ----------------------------------------------------------------------------------


def tried(*tries: dict[str, object], **changes: object) -> CallRow:
    """A recorded call with these tries before its end."""
    return row(rows=tries, **{"input_tokens": 10, "output_tokens": 1, **changes})


EMPTY = {"kind": "empty", "status": 200, "message": "", "waited_ms": 1, "usage": {"input": 10, "output": 3}}


def test_a_reply_that_could_not_be_used_is_counted() -> None:
    """It was asked again, and both were paid for."""
    total = usage_of([tried(EMPTY)]).total
    assert (total.input, total.output) == (Tally(20, 0, 1), Tally(4, 0, 1))


def test_a_failed_call_with_reported_tokens_is_counted() -> None:
    """Although it has no answer."""
    failed = tried(EMPTY, EMPTY, outcome="failed", error_kind="empty", input_tokens=None, output_tokens=None)
    total = usage_of([failed]).total
    assert (total.input, total.output, total.failed) == (Tally(20, 0, 1), Tally(6, 0, 1), 1)


def test_a_refused_attempt_costs_nothing_and_a_late_one_something_unknown() -> None:
    """429 was never worked on; what broke off may have been."""
    refused = {"kind": "rate_limit", "status": 429, "message": "", "waited_ms": 1}
    late = {"kind": "timeout", "status": None, "message": "", "waited_ms": 1}
    assert usage_of([tried(refused)]).total.input == Tally(10, 0, 1)
    assert usage_of([tried(late)]).total.input == Tally(10, 1, 1)
    assert usage_of([row(outcome="failed", error_kind="auth")]).total.input.known == 0
    assert usage_of([row(outcome="failed", error_kind="transport")]).total.input.known is None


# --- money ---------------------------------------------------------------------------------------------------------


def prices(**rows: dict[str, float]) -> Prices:
    """Prices as a run's config records them."""
    return prices_in(
        {"model": {"target": "t", "optimizer": "o"}, "prices": {"unit": "EUR per 1M tokens", "models": {**rows}}}
    )


def test_money_is_exact() -> None:
    """A million calls at a tenth of a cent's tenth are a round sum."""
    known = prices(t={"input": 0.1, "output": 0.2})
    total = usage_of([row(input_tokens=1, output_tokens=1)] * 1000, known).total.cost
    assert (known.currency, total) == ("EUR", Money(Decimal("0.0003"), 0, 1000))


def test_cached_tokens_have_their_price() -> None:
    """Of which how many were cached is known, the sum is; else the cheaper price is the least."""
    known = prices(t={"input": 2, "output": 0, "cached_input": 1})
    asked = {"input_tokens": 1_000_000, "output_tokens": 0}
    assert usage_of([row(**asked, cached_tokens=400_000)], known).total.cost == Money(Decimal("1.6"), 0, 1)
    assert usage_of([row(**asked)], known).total.cost == Money(Decimal(1), 1, 1)


def test_what_has_no_price_or_no_tokens_is_unknown() -> None:
    """The sum is a lower bound and says of how many calls it is; nothing known is None."""
    known = prices(t={"input": 1, "output": 1})
    half = row(input_tokens=1_000_000)
    optimizer = row(role="optimizer", input_tokens=5, output_tokens=5)
    assert usage_of([half, optimizer, row()], known).total.cost == Money(Decimal(1), 3, 1)
    assert usage_of([optimizer], known).total.cost.known is None
    assert usage_of([], known).total.cost.known == 0
    assert usage_of([row(input_tokens=1, output_tokens=1)]).total.cost.known is None


counts = st.none() | st.integers(0, 10**9)
calls = st.builds(
    row,
    slot=st.sampled_from(["baseline/i1", "e1/s2/b0/i1", "e1/s2/rank", "e2/meta", "final/test/best/i1"]),
    role=st.sampled_from(["target", "optimizer"]),
    stage=st.sampled_from(["rollout", "analyst"]),
    outcome=st.sampled_from(["answered", "failed"]),
    input_tokens=counts,
    output_tokens=counts,
    cached_tokens=counts,
)


@given(st.lists(calls, max_size=12))
def test_groups_add_up_exactly_and_a_part_is_no_more_than_the_whole(rows: list[CallRow]) -> None:
    """Whatever is known of which calls."""
    usage = usage_of(rows, prices(t={"input": 0.15, "output": 0.6, "cached_input": 0.075}))
    for groups in (usage.by_stage, usage.by_role, usage.by_step, usage.by_epoch, usage.by_evaluation, usage.by_place):
        assert sum((group.cost.amount for group in groups.values()), Decimal(0)) == usage.total.cost.amount
        assert sum(group.cost.unknown for group in groups.values()) == usage.total.cost.unknown
        for kind in KINDS:
            whole = getattr(usage.total, kind)
            assert sum(getattr(group, kind).reported for group in groups.values()) == whole.reported
