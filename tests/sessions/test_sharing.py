"""A run's calls under shared limits: what each try sets aside, what comes of it, and what keeps it from being sent."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from skillopt_es.engine.budget import Amount, Bound, CutShort, Tariff
from skillopt_es.ports import CallFailed, ChatReply, ChatRequest, NotStarted, Try, Usage, Wait, may_try_again
from skillopt_es.sessions.commons import Commons, Limits
from skillopt_es.sessions.sharing import Here, SharedPurse

HERE = "host:80"
BOUND = Bound(input=60, output=40)
FAILED = Try(kind="server", status=500, message="", waited_ms=0, usage=Usage(input=7, output=3))
ANSWER = ChatReply(text="4", finish="stop", usage=Usage(input=5, output=2))


@pytest.fixture
def commons(tmp_path: Path) -> Iterator[Commons]:
    """The shared limits, as a run that somebody writes sees them."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "lock").write_text(json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "start": ""}))
    opened = Commons(tmp_path / "limits.db", folder)
    yield opened
    opened.close()


def purse(commons: Commons) -> SharedPurse:
    """A purse whose two roles share an endpoint."""
    return SharedPurse(Here(commons), {"target": HERE, "optimizer": HERE}, {"target": Tariff(), "optimizer": Tariff()})


def pay(
    found: SharedPurse, ask: Callable[[ChatRequest], Awaitable[ChatReply]], request: ChatRequest | None = None
) -> ChatReply:
    """One call."""
    asked = request or ChatRequest(slot="s", stage="rollout", messages=(), max_tokens=1)
    return asyncio.run(asyncio.wait_for(found.pay("target", asked, BOUND, ask), 10))


async def answers(request: ChatRequest) -> ChatReply:
    """At once."""
    return ANSWER


async def fails_twice(request: ChatRequest) -> ChatReply:
    """A model that tries three times, if it may."""
    tries: list[Try] = []
    for _ in range(2):
        tries.append(FAILED)
        if not await may_try_again(request, FAILED):
            raise CallFailed("server", "no", tries=tuple(tries))
    return ChatReply(text="4", finish="stop", usage=Usage(input=5, output=2), tries=tuple(tries))


def test_an_answer_costs_what_it_reports(commons: Commons) -> None:
    """Not what was set aside for it."""
    commons.set_limits({HERE: Limits(max_tokens=150)})
    found = purse(commons)
    for _ in range(3):
        assert pay(found, answers) == ANSWER
    assert commons.spent(HERE) == Amount(calls=3, tokens=21)


def test_every_try_counts(commons: Commons) -> None:
    """A try that failed has used what it reported."""
    assert pay(purse(commons), fails_twice).text == "4"
    assert commons.spent(HERE) == Amount(calls=3, tokens=27)


def test_a_try_that_is_not_covered_is_not_made(commons: Commons) -> None:
    """The call ends as if the one before had been its last; the run pauses with the limit's name."""
    commons.set_limits({HERE: Limits(max_calls=2)})
    found = purse(commons)
    pay(found, answers)
    with pytest.raises(CutShort):
        pay(found, fails_twice)
    assert found.reached is not None
    assert found.reached.key == f"limits.{HERE}.max_calls"
    assert commons.spent(HERE).calls == 2
    with pytest.raises(NotStarted):
        pay(found, answers)


def test_the_run_s_own_budget_is_asked_first(commons: Commons) -> None:
    """Where it says no, nothing of the shared one is taken."""

    async def no(failed: Try) -> bool:
        return False

    request = ChatRequest(slot="s", stage="rollout", messages=(), max_tokens=1, further=no)
    with pytest.raises(CutShort):
        pay(purse(commons), fails_twice, request)
    assert commons.spent(HERE) == Amount(calls=1, tokens=10)


def test_what_was_never_sent_costs_nothing(commons: Commons) -> None:
    """The run is stopping while the call waits for its place."""

    async def stops(wait: Wait, sleep: Callable[[], Awaitable[object]]) -> bool:
        return False

    commons.set_limits({HERE: Limits(requests_per_minute=1)})
    found = purse(commons)
    pay(found, answers)
    request = ChatRequest(slot="s", stage="rollout", messages=(), max_tokens=1, rest=stops)
    with pytest.raises(NotStarted):
        pay(found, answers, request)
    assert commons.spent(HERE).calls == 1


def test_a_call_waits_for_what_others_hold(commons: Commons, tmp_path: Path) -> None:
    """It is sent once they have settled."""
    commons.set_limits({HERE: Limits(max_calls=2)})
    found, began = purse(commons), asyncio.Event()

    async def slow(request: ChatRequest) -> ChatReply:
        began.set()
        await asyncio.sleep(0.01)
        raise NotStarted

    async def both() -> ChatReply:
        request = ChatRequest(slot="s", stage="rollout", messages=(), max_tokens=1)
        await found.pay("target", request, BOUND, answers)
        first = asyncio.ensure_future(found.pay("target", request, BOUND, slow))
        await began.wait()
        reply = await found.pay("target", request, BOUND, answers)
        with pytest.raises(NotStarted):
            await first
        return reply

    assert asyncio.run(both()) == ANSWER
    assert found.reached is None
    assert commons.spent(HERE).calls == 2


def test_what_is_cancelled_stays_set_aside(commons: Commons, tmp_path: Path) -> None:
    """It may have been paid for: the next process of the run counts it at its worst."""

    async def cancelled(request: ChatRequest) -> ChatReply:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        pay(purse(commons), cancelled)
    again = Commons(tmp_path / "limits.db", tmp_path / "run")
    assert again.spent(HERE) == Amount(calls=1, tokens=100)
    again.close()
