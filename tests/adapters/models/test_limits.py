"""What is let through to an endpoint, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from support.fake_time import FakeTime, settle

from skillopt_es.adapters.models.errors import Failure, failure
from skillopt_es.adapters.models.limits import Limiter, Slots, TokenBucket
from skillopt_es.config import load_config
from skillopt_es.ports import calls_within, files_needed
from skillopt_es.sessions.opening import model_settings

RATE_LIMITED = Failure(kind="rate_limit", message="slow", retry=True, status=429, server_wait=7.0)
NO_KEY = failure("auth", "HTTP 401: who are you?", status=401)


def limiter(time: FakeTime, *, concurrency: int = 8, rpm: int = 0, tpm: int = 0) -> Limiter:
    return Limiter(
        concurrency=concurrency, requests_per_minute=rpm, tokens_per_minute=tpm, clock=time.clock, sleep=time.sleep
    )


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 5))


def test_a_bucket_gives_a_tenth_of_a_minute_at_once_and_then_its_rate() -> None:
    """60 a minute: six at once, then one a second."""
    time = FakeTime()
    bucket = TokenBucket(60, time.clock)
    assert [bucket.reserve(1) for _ in range(9)] == pytest.approx([0, 0, 0, 0, 0, 0, 1, 2, 3])


def test_a_bucket_fills_with_time_but_never_beyond_its_capacity() -> None:
    """An idle hour does not allow more than the usual burst."""
    time = FakeTime()
    bucket = TokenBucket(60, time.clock)
    for _ in range(6):
        bucket.reserve(1)
    time.now += 2
    assert [bucket.reserve(1) for _ in range(3)] == pytest.approx([0, 0, 1])
    time.now += 3600
    assert [bucket.reserve(1) for _ in range(7)] == pytest.approx([0, 0, 0, 0, 0, 0, 1])


def test_an_amount_larger_than_the_bucket_passes_and_is_paid_by_the_next() -> None:
    """A prompt of more tokens than a burst must not wait forever."""
    time = FakeTime()
    bucket = TokenBucket(600, time.clock)
    assert bucket.reserve(160) == 0
    assert bucket.reserve(10) == pytest.approx(11)


def test_tokens_that_were_not_used_are_given_back() -> None:
    """The reply's own count replaces the estimate."""
    time = FakeTime()
    bucket = TokenBucket(600, time.clock)
    bucket.reserve(60)
    bucket.refund(50)
    assert bucket.reserve(50) == 0


def test_no_minute_exceeds_its_requests_by_more_than_the_burst() -> None:
    """A hundred callers at 60 a minute: at most 66 start within any 60 seconds."""
    time = FakeTime()
    starts: list[float] = []

    async def scenario() -> None:
        gate = limiter(time, rpm=60)
        for _ in range(150):
            assert await gate.enter(0) is None
            starts.append(time.now)
            gate.leave()

    run(scenario())
    assert max(sum(start <= other < start + 60 for other in starts) for start in starts) <= 67
    assert starts[-1] - starts[0] == pytest.approx(144)


def test_never_more_than_the_slots_are_inside() -> None:
    """The third caller waits until the first has left."""

    async def scenario() -> None:
        gate = limiter(FakeTime(), concurrency=2)
        await gate.enter(0)
        await gate.enter(0)
        third = asyncio.create_task(gate.enter(0))
        await settle()
        assert not third.done()
        gate.leave()
        assert await third is None

    run(scenario())


def test_a_429_makes_everybody_wait_as_long_as_the_server_said() -> None:
    """A caller that never saw the 429 starts exactly when the server's wait is over."""

    async def scenario() -> None:
        time = FakeTime(jump=False)
        gate = limiter(time)
        gate.learn(RATE_LIMITED, final=False)
        others = [asyncio.create_task(gate.enter(0)) for _ in range(3)]
        await time.advance(6.9)
        assert not any(other.done() for other in others)
        await time.advance(0.1)
        assert all(other.done() for other in others)

    run(scenario())


def test_a_second_429_prolongs_the_pause() -> None:
    """Who wakes from the first pause looks again."""

    async def scenario() -> None:
        time = FakeTime(jump=False)
        gate = limiter(time)
        gate.learn(RATE_LIMITED, final=False)
        other = asyncio.create_task(gate.enter(0))
        await time.advance(5)
        gate.learn(RATE_LIMITED, final=False)
        await time.advance(2)
        assert not other.done()
        await time.advance(5)
        assert other.done()

    run(scenario())


def test_an_endpoint_that_is_closed_for_too_long_is_asked_no_more() -> None:
    """An hour of Retry-After is the answer to every call that would come."""

    async def scenario() -> None:
        time = FakeTime()
        gate = limiter(time)
        closed = Failure(kind="rate_limit", message="slow", retry=False, server_wait=3600, closed=True)
        gate.learn(closed, final=True)
        assert await gate.enter(0) is closed
        assert time.waits == []

    run(scenario())


def test_the_circuit_opens_for_those_who_already_wait() -> None:
    """A systemic failure turns away the queue, and frees no slot twice."""

    async def scenario() -> None:
        gate = limiter(FakeTime(), concurrency=1)
        await gate.enter(0)
        waiting = [asyncio.create_task(gate.enter(0)) for _ in range(5)]
        await settle()
        gate.learn(NO_KEY, final=True)
        gate.leave()
        assert await asyncio.gather(*waiting) == [NO_KEY] * 5
        assert await gate.enter(0) is NO_KEY

    run(scenario())


def test_an_item_failure_leaves_the_circuit_closed() -> None:
    """One context overflow says nothing about other calls."""
    gate = limiter(FakeTime())
    gate.learn(failure("context_length", "too long", status=413), final=True)
    assert gate.failure is None


def test_a_cancelled_waiter_gives_its_slot_back() -> None:
    """Cancelled in the queue or in a pause: the next caller still gets in."""

    async def scenario() -> None:
        time = FakeTime(jump=False)
        gate = limiter(time, concurrency=1)
        gate.learn(RATE_LIMITED, final=False)
        pausing = asyncio.create_task(gate.enter(0))
        queued = asyncio.create_task(gate.enter(0))
        await settle()
        queued.cancel()
        pausing.cancel()
        await asyncio.gather(pausing, queued, return_exceptions=True)
        time.now += 10
        assert await gate.enter(0) is None

    run(scenario())


def test_a_limiter_outlives_an_event_loop() -> None:
    """The same limiter queues callers in a second asyncio.run."""
    gate = limiter(FakeTime(), concurrency=1)

    async def scenario() -> None:
        async def visit() -> None:
            assert await gate.enter(0) is None
            await asyncio.sleep(0)
            gate.leave()

        await asyncio.gather(*(visit() for _ in range(4)))

    run(scenario())
    run(scenario())


def test_a_burst_of_429s_halves_the_room_once() -> None:
    """Calls that were under way already say nothing new; a later one halves it again, down to one."""
    time = FakeTime()
    gate = limiter(time, concurrency=8)
    for _ in range(8):
        gate.learn(RATE_LIMITED, final=False, began=time.now - 1)
    assert gate.room == 4
    time.now += 2
    gate.learn(RATE_LIMITED, final=False, began=999.0)
    assert gate.room == 4
    for room in (2, 1, 1):
        time.now += 2
        gate.learn(RATE_LIMITED, final=False, began=time.now)
        assert gate.room == room


def test_room_grows_again_while_all_goes_well() -> None:
    """About a tenth for each round of answers, up to what is configured."""
    time = FakeTime()
    gate = limiter(time, concurrency=64)
    for _ in range(3):
        time.now += 2
        gate.learn(RATE_LIMITED, final=False, began=time.now)
    assert gate.room == 8
    for _ in range(16):
        gate.answered(None)
    assert 10 <= gate.room <= 12
    for _ in range(1000):
        gate.answered(None)
    assert gate.room == 64


def test_fewer_are_let_in_after_a_429_and_more_again_later() -> None:
    """Those inside finish; the queue waits for the smaller room."""

    async def scenario() -> None:
        time = FakeTime()
        slots = Slots(4, time.clock)
        for _ in range(4):
            await slots.acquire()
        queue = [asyncio.create_task(slots.acquire()) for _ in range(4)]
        await settle()
        slots.too_many(time.now)
        slots.release()
        slots.release()
        await settle()
        assert sum(place.done() for place in queue) == 0
        slots.release()
        await settle()
        assert sum(place.done() for place in queue) == 1
        for _ in range(60):
            slots.went_well()
        await settle()
        assert sum(place.done() for place in queue) == 3
        slots.release()
        await asyncio.gather(*queue)

    run(scenario())


def test_a_failure_of_another_kind_leaves_the_room_as_it_is() -> None:
    """A broken server is not a crowded one."""
    gate = limiter(FakeTime())
    gate.learn(failure("server", "HTTP 500", status=500), final=False, began=2000.0)
    assert gate.room == 8


def test_an_endpoint_whose_allowance_is_spent_is_left_alone_until_it_is_filled() -> None:
    """Its headers say so before it has to say 429."""

    async def scenario() -> None:
        time = FakeTime(jump=False)
        gate = limiter(time)
        gate.answered(3.0)
        other = asyncio.create_task(gate.enter(0))
        await time.advance(2.9)
        assert not other.done()
        await time.advance(0.1)
        assert other.done()

    run(scenario())


def test_one_refusal_among_answers_holds_nobody_back() -> None:
    """Eight in a row do: then nobody is sent before the endpoint said so."""

    async def scenario() -> None:
        time = FakeTime(jump=False)
        gate = limiter(time, concurrency=16)
        gate.answered()
        for number in range(8):
            assert await asyncio.wait_for(gate.enter(0), 1) is None, number
            gate.leave()
            gate.learn(RATE_LIMITED, final=False)
        waiting = asyncio.create_task(gate.enter(0))
        await time.advance(6.9)
        assert not waiting.done()
        await time.advance(0.1)
        assert await waiting is None

    run(scenario())


def test_while_everybody_waits_each_answer_lets_one_in() -> None:
    """An endpoint that takes so many at once has room for one more; calls of before the pause do not end it."""

    async def scenario() -> None:
        time = FakeTime(jump=False)
        gate = limiter(time, concurrency=16)
        gate.learn(RATE_LIMITED, final=False, began=time.now)
        waiting = [asyncio.create_task(gate.enter(0)) for _ in range(4)]
        await settle()
        gate.answered(began=time.now - 1)
        await settle()
        assert [one.done() for one in waiting] == [True, False, False, False]
        await time.advance(1)
        gate.answered(began=time.now)
        await settle()
        assert all(one.done() for one in waiting)

    run(scenario())


def test_a_cut_reply_is_no_crowd() -> None:
    """Nobody waits for it, and there is as much room as before."""

    async def scenario() -> None:
        gate = limiter(FakeTime(), concurrency=8)
        for _ in range(20):
            gate.learn(failure("transport", "cut"), final=False)
        assert gate.room == 8
        assert await gate.enter(0) is None

    run(scenario())


def test_those_who_wait_for_a_dead_endpoint_hear_when_it_is_back() -> None:
    """The first answer after an outage ends all their waits; one among answers is no news."""

    async def scenario() -> None:
        time = FakeTime(jump=False)
        gate = limiter(time)
        for _ in range(4):
            gate.learn(failure("transport", "no connection"), final=False)
        waiting = [asyncio.create_task(gate.before_next_try(30)) for _ in range(3)]
        await settle()
        gate.answered()
        await settle()
        assert all(one.done() for one in waiting)
        gate.learn(failure("transport", "no connection"), final=False)
        alone = asyncio.create_task(gate.before_next_try(30))
        await settle()
        gate.answered()
        await time.advance(29)
        assert not alone.done()
        await time.advance(1)
        assert alone.done()

    run(scenario())


def test_an_endpoint_that_counts_calls_at_once_gets_no_more_than_it_takes() -> None:
    """Four are taken, the others refused: that is the room; after half a minute without a refusal one more is tried."""
    time = FakeTime()
    gate = limiter(time, concurrency=16)
    for level in range(1, 17):
        if level <= 4:
            gate.answered(level=level)
        else:
            gate.learn(RATE_LIMITED, final=False, began=time.now, level=level)
    assert gate.room == 4
    for _ in range(100):
        gate.answered(level=4)
    assert gate.room == 4
    time.now += 31
    for _ in range(20):
        gate.answered(level=4)
    assert gate.room == 5


def test_who_waits_can_be_sent_away() -> None:
    """A run that stops breaks a pause off; the place is free again."""

    async def scenario() -> None:
        async def stopping(_why: str, _seconds: float, _sleep: object) -> bool:
            return False

        gate = limiter(FakeTime(), concurrency=1)
        gate.learn(RATE_LIMITED, final=False)
        refused = await gate.enter(0, stopping)
        assert refused is not None
        assert "stopping" in refused.message
        gate.answered(began=2000.0)
        assert await gate.enter(0) is None

    run(scenario())


@pytest.mark.parametrize("roles", [1, 2, 3])
@pytest.mark.parametrize("calls", [1, 64, 512])
def test_as_many_calls_fit_as_files_are_said_to_be_needed_for(calls: int, roles: int) -> None:
    """What a shell is told to allow is what each of the roles then uses, a judge's too."""
    allowed = files_needed(calls, roles)
    assert calls_within(allowed, roles) == calls
    assert calls_within(allowed - 1, roles) == max(1, calls - 1)
    assert roles * calls_within(allowed, roles) < allowed


def test_a_judge_takes_its_share_of_the_files() -> None:
    """Three models never open more than the system allows."""
    found = []
    for judge in ((), ("model.judge=j",)):
        config = load_config(None, ("model.backend=openai", "model.target_backend=simulated", *judge), {})
        found.append(model_settings(config, "target").roles)
    assert found == [2, 3]
