"""A run's calls under shared limits: what each try sets aside, what comes of it, and what keeps it from being sent."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from skillopt_es.engine.budget import (
    NOTHING,
    Account,
    Amount,
    Attempt,
    Bound,
    Caps,
    CutShort,
    OwnAccount,
    Payment,
    Purse,
    Tariff,
)
from skillopt_es.ports import ALONE, Alone, CallFailed, ChatReply, Course, NotStarted, Try, Usage, Wait
from skillopt_es.sessions.commons import Commons, Granted, Limits
from skillopt_es.sessions.sharing import Here, SharedAccount

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


def account(commons: Commons) -> SharedAccount:
    """An account for two roles that share an endpoint."""
    return SharedAccount(Here(commons), {"target": HERE, "optimizer": HERE})


Ask = Callable[[Course], Awaitable[ChatReply]]


async def paying(*accounts: Account, ask: Ask, seat: Course = ALONE) -> ChatReply:
    """One call."""
    purse = Purse(accounts, {"target": Tariff(), "optimizer": Tariff()})
    return await Payment(purse, "target", "s", seat, BOUND).pay(ask)


def pay(*accounts: Account, ask: Ask, seat: Course = ALONE) -> ChatReply:
    """One call, and nothing else."""
    return asyncio.run(asyncio.wait_for(paying(*accounts, ask=ask, seat=seat), 10))


async def answers(course: Course) -> ChatReply:
    """At once."""
    return ANSWER


async def fails_twice(course: Course) -> ChatReply:
    """A model that tries three times, if it may."""
    tries: list[Try] = []
    for _ in range(2):
        tries.append(FAILED)
        if not await course.may_try_again(FAILED):
            raise CallFailed("server", "no", tries=tuple(tries))
    return ChatReply(text="4", finish="stop", usage=Usage(input=5, output=2), tries=tuple(tries))


def test_an_answer_costs_what_it_reports(commons: Commons) -> None:
    """Not what was set aside for it."""
    commons.set_limits({HERE: Limits(max_tokens=150)})
    found = account(commons)
    for _ in range(3):
        assert pay(found, ask=answers) == ANSWER
    assert commons.spent(HERE) == Amount(calls=3, tokens=21)


def test_every_try_counts(commons: Commons) -> None:
    """A try that failed has used what it reported."""
    assert pay(account(commons), ask=fails_twice).text == "4"
    assert commons.spent(HERE) == Amount(calls=3, tokens=27)


def test_a_try_that_is_not_covered_is_not_made(commons: Commons) -> None:
    """The call ends as if the one before had been its last; the run pauses with the limit's name."""
    commons.set_limits({HERE: Limits(max_calls=2)})
    found = account(commons)
    pay(found, ask=answers)
    with pytest.raises(CutShort):
        pay(found, ask=fails_twice)
    assert found.reached is not None
    assert found.reached.key == f"limits.{HERE}.max_calls"
    assert commons.spent(HERE).calls == 2
    with pytest.raises(NotStarted):
        pay(found, ask=answers)


def test_the_run_s_own_budget_is_asked_first(commons: Commons) -> None:
    """Where it says no, nothing of the shared one is taken; each settles what the call came to."""
    own = OwnAccount(Caps(calls=1))
    with pytest.raises(CutShort):
        pay(own, account(commons), ask=fails_twice)
    assert commons.spent(HERE) == own.spent == Amount(calls=1, tokens=10)


def test_what_the_shared_limits_refuse_costs_the_run_nothing(commons: Commons) -> None:
    """Its own budget has let the call through."""
    commons.set_limits({HERE: Limits(max_calls=0)})
    own = OwnAccount(Caps(calls=5))
    with pytest.raises(NotStarted):
        pay(own, account(commons), ask=answers)
    assert (own.spent, own.reserved, own.in_flight) == (NOTHING, NOTHING, 0)


class Stops(Alone):
    """A run that stops while a call waits; `kept` says for each wait whether it kept its place."""

    def __init__(self) -> None:
        self.kept: list[bool] = []

    async def rest(self, wait: Wait, sleep: Callable[[], Awaitable[object]]) -> bool:
        """Not to the end."""
        self.kept.append(wait.holds)
        return False


def test_what_was_never_sent_costs_nothing(commons: Commons) -> None:
    """The run is stopping while the call waits in its turn."""
    commons.set_limits({HERE: Limits(requests_per_minute=1)})
    found, seat = account(commons), Stops()
    pay(found, ask=answers)
    with pytest.raises(NotStarted):
        pay(found, ask=answers, seat=seat)
    assert commons.spent(HERE).calls == 1
    assert seat.kept == [True]


@pytest.mark.parametrize("own", [(), (OwnAccount(Caps()),)])
def test_who_waits_for_other_runs_keeps_a_place_only_with_something_of_its_own(
    commons: Commons, own: tuple[Account, ...]
) -> None:
    """Calls of the same run that wait for what the first account has set aside for it would have all places."""
    commons.set_limits({HERE: Limits(max_calls=1)})
    assert isinstance(commons.take(HERE, Amount(calls=1), 0), Granted)
    seat = Stops()
    with pytest.raises(NotStarted):
        pay(*own, account(commons), ask=answers, seat=seat)
    assert seat.kept == [bool(own)]


def test_what_an_agent_asks_itself_is_what_counts(commons: Commons) -> None:
    """Not its attempt, which makes no request to the endpoint."""
    purse = Purse([account(commons)], {"target": Tariff()})
    assert asyncio.run(Attempt(purse, "target", "s", ALONE).pay(answers)) == ANSWER
    assert commons.spent(HERE) == NOTHING


def test_a_call_waits_for_what_others_hold(commons: Commons, tmp_path: Path) -> None:
    """It is sent once they have settled."""
    commons.set_limits({HERE: Limits(max_calls=2)})
    found, began = account(commons), asyncio.Event()

    async def slow(course: Course) -> ChatReply:
        began.set()
        await asyncio.sleep(0.01)
        raise NotStarted

    async def both() -> ChatReply:
        await paying(found, ask=answers)
        first = asyncio.ensure_future(paying(found, ask=slow))
        await began.wait()
        reply = await paying(found, ask=answers)
        with pytest.raises(NotStarted):
            await first
        return reply

    assert asyncio.run(both()) == ANSWER
    assert found.reached is None
    assert commons.spent(HERE).calls == 2


def test_what_is_cancelled_stays_set_aside(commons: Commons, tmp_path: Path) -> None:
    """It may have been paid for: the next process of the run counts it at its worst."""

    async def cancelled(course: Course) -> ChatReply:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        pay(account(commons), ask=cancelled)
    again = Commons(tmp_path / "limits.db", tmp_path / "run")
    assert again.spent(HERE) == Amount(calls=1, tokens=100)
    again.close()
