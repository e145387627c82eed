"""A purse lets calls through in turn while the budget covers them, and says why no more are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from decimal import Decimal

import pytest

from skillopt_es.engine.budget import NOTHING, Account, Amount, Bound, Caps, CutShort, Purse, Reached, Tariff
from skillopt_es.events.values import Role
from skillopt_es.ports import CallFailed, ChatReply, ChatRequest, NotStarted, Try, Usage, may_try_again
from skillopt_es.projections.prices import Price

WORST = Amount(tokens=100, calls=1)
TIME_IS_UP = Reached("budget.max_minutes", "budget.max_minutes is 1")
BOUND = Bound(input=60, output=40)  # comes to WORST
PRICE = Price(input=Decimal(1000), output=Decimal(1000))
FREE = Try(kind="rate_limit", status=429, message="", waited_ms=0)
UNTOLD = Try(kind="server", status=500, message="", waited_ms=0)
TOLD = Try(kind="server", status=500, message="", waited_ms=0, usage=Usage(input=7, output=3))
ROLES: tuple[Role, ...] = ("target", "optimizer")
USED = Usage(input=5, output=2)
Noted = tuple[str, Role, Bound, bool]


def purse(
    caps: Caps,
    *,
    spent: Amount = NOTHING,
    price: Price | None = None,
    unreported: int = 0,
    currency: str = "",
    late: Callable[[], Reached | None] = lambda: None,
    stopping: Callable[[], bool] = lambda: False,
    noted: list[Noted] | None = None,
) -> Purse:
    """A purse whose two roles cost the same."""
    notes: list[Noted] = [] if noted is None else noted
    return Purse(
        Account(caps, spent),
        dict.fromkeys(ROLES, Tariff(price=price)),
        currency=currency,
        unreported=unreported,
        late=late,
        stopping=stopping,
        note=lambda *note: notes.append(note),
    )


def words(purse: Purse) -> str:
    """Why nothing starts any more."""
    return "" if purse.reached is None else purse.reached.message


def scene(coroutine: Coroutine[None, None, None]) -> None:
    """Runs what waits for others, but not for ever."""
    asyncio.run(asyncio.wait_for(coroutine, 10))


async def waits(purse: Purse, slot: str, *, more: Amount = WORST, again: bool = False) -> asyncio.Task[bool]:
    """Somebody who has got as far as they can without others."""
    task = asyncio.create_task(purse.enter(more, slot, again=again, ahead=False))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return task


async def ends(purse: Purse, came_to: Amount = NOTHING) -> None:
    """A call of the worst kind comes to its end."""
    purse.leave()
    purse.ledger.settle(WORST, came_to)
    purse._serve()
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def ask(purse: Purse, *tries: Try, fails: str = "", usage: Usage = USED, slot: str = "s") -> ChatReply:
    """Pays for a call whose first tries fail so, if they are let through."""

    async def answer(request: ChatRequest) -> ChatReply:
        for number, failed in enumerate(tries, 1):
            if not (fails and number == len(tries)) and not await may_try_again(request, failed):
                raise CallFailed("server", "no more", tries=tries[:number])
        if fails:
            raise CallFailed(fails, "no", tries=tries)
        return ChatReply(text="ok", finish="stop", usage=usage, tries=tries)

    return await purse.pay("target", ChatRequest(slot=slot, stage="x", messages=(), max_tokens=1), BOUND, answer)


def test_who_waits_is_let_through_in_turn() -> None:
    """Also where a later call would fit: it would keep the first one from its turn for ever."""

    async def play() -> None:
        full = purse(Caps(tokens=150))
        first = await waits(full, "a")
        big, small = await waits(full, "b"), await waits(full, "c", more=Amount(tokens=10))
        assert (first.done(), big.done(), small.done()) == (True, False, False)
        assert full.in_flight == 1
        await ends(full)
        assert (await big, await small) == (True, True)
        assert (full.in_flight, full.ledger.reserved) == (2, Amount(tokens=110, calls=1))

    scene(play())


def test_another_try_goes_before_those_that_have_not_begun() -> None:
    """It holds what they wait for."""

    async def play() -> None:
        full = purse(Caps(tokens=100))
        await waits(full, "a")
        new, again = await waits(full, "b"), await waits(full, "a", again=True)
        await ends(full)
        assert (new.done(), again.done()) == (False, True)

    scene(play())


def test_a_call_that_fails_is_tried_again_before_those_that_have_not_begun() -> None:
    """Where what it may come to fits, and what they want does not."""

    async def play() -> None:
        full = purse(Caps(tokens=250))
        await waits(full, "a")
        went_on = asyncio.Event()

        async def answer(request: ChatRequest) -> ChatReply:
            new = await waits(full, "c")
            assert await may_try_again(request, TOLD)
            assert not new.done()
            went_on.set()
            return ChatReply(text="ok", finish="stop", usage=Usage(input=1, output=1), tries=(TOLD,))

        await full.pay("target", ChatRequest(slot="b", stage="x", messages=(), max_tokens=1), BOUND, answer)
        assert went_on.is_set()

    scene(play())


def test_a_purse_that_is_told_nothing_else_minds_its_caps() -> None:
    """No clock, no stop, no currency, and nothing that was not reported."""

    async def play() -> None:
        plain = Purse(Account(Caps(cost=Decimal("0.15"))), dict.fromkeys(ROLES, Tariff(price=PRICE)))
        await ask(plain, usage=Usage(input=60, output=40))
        with pytest.raises(NotStarted):
            await ask(plain)
        assert plain.reached == Reached(
            "budget.max_cost",
            "budget.max_cost is 0.1500, with 0.1000 spent so far: the next call (s) may cost 0.1000",
        )

    scene(play())


def test_nobody_waits_where_nothing_is_in_flight() -> None:
    """The budget is reached: who waits is refused, and whoever comes later, even if it would fit."""

    async def play() -> None:
        full = purse(Caps(tokens=150))
        await waits(full, "a")
        second, third = await waits(full, "b"), await waits(full, "c", more=Amount(tokens=1))
        assert full.reached is None
        await ends(full, WORST)
        assert (await second, await third) == (False, False)
        assert words(full).startswith("budget.max_tokens is 150, with 100 tokens used so far")
        assert await full.enter(Amount(tokens=1), "d", again=False, ahead=False) is False
        assert (full.in_flight, full.ledger.reserved) == (0, NOTHING)

    scene(play())


def test_what_is_asked_ahead_is_refused_at_once_and_reaches_nothing() -> None:
    """Whether or not something is in flight; where it fits it is let through."""

    async def play() -> None:
        full = purse(Caps(tokens=150))
        assert await full.enter(Amount(tokens=151), "a", again=False, ahead=True) is False
        assert full.reached is None
        assert await full.enter(WORST, "b", again=False, ahead=True) is True
        assert await full.enter(WORST, "c", again=False, ahead=True) is False
        assert (full.reached, full.in_flight) == (None, 1)

    scene(play())


def test_who_is_cancelled_while_waiting_keeps_nobody_from_their_turn() -> None:
    """Nothing was set aside for it, so nothing is given back."""

    async def play() -> None:
        full = purse(Caps(tokens=100))
        await waits(full, "a")
        gone, next_ = await waits(full, "b"), await waits(full, "c")
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        assert (full.in_flight, full.ledger.reserved) == (1, WORST)
        await ends(full)
        assert await next_
        assert (full.in_flight, full.ledger.reserved) == (1, WORST)

    scene(play())


def test_who_is_let_through_and_cancelled_lets_the_next_one_through() -> None:
    """What was set aside for it is free again, and nothing of it is in flight."""

    async def play() -> None:
        full = purse(Caps(tokens=150))
        await waits(full, "a")
        second, third = await waits(full, "b"), await waits(full, "c")
        full.leave()
        full.ledger.settle(WORST, NOTHING)
        full._serve()  # b is let through, and cancelled before it hears of that
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        assert second.cancelled()
        assert await third
        assert (full.in_flight, full.ledger.reserved, full.ledger.spent) == (1, WORST, NOTHING)

    scene(play())


def test_who_is_refused_and_cancelled_gives_nothing_back() -> None:
    """Nothing was set aside for it."""

    async def play() -> None:
        full = purse(Caps(tokens=150))
        await waits(full, "a")
        second = await waits(full, "b")
        full.leave()
        full.ledger.settle(WORST, WORST)
        full._serve()  # b is refused, and cancelled before it hears of that
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        assert (full.in_flight, full.ledger.reserved, full.ledger.spent) == (0, NOTHING, WORST)

    scene(play())


def test_nothing_starts_once_time_is_up_or_the_run_is_to_stop() -> None:
    """Time that is up is a budget that is reached; a stop is none."""

    async def play() -> None:
        up = purse(Caps(), late=lambda: TIME_IS_UP)
        assert await up.enter(WORST, "a", again=False, ahead=False) is False
        assert up.reached == TIME_IS_UP
        stopped = purse(Caps(), stopping=lambda: True)
        assert await stopped.enter(WORST, "a", again=False, ahead=False) is False
        assert (stopped.reached, stopped.in_flight) == (None, 0)
        for closed in (up, stopped):
            with pytest.raises(NotStarted):
                await ask(closed)

    scene(play())


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (
            purse(Caps(calls=1200), spent=Amount(calls=1200), unreported=2),
            "budget.max_calls is 1,200, with 1,200 requests sent so far: the next call (s) is not started",
        ),
        (
            purse(Caps(tokens=9999), spent=Amount(tokens=9950)),
            "budget.max_tokens is 9,999, with 9,950 tokens used so far: the next call (s) may cost 100",
        ),
        (
            purse(Caps(tokens=99), unreported=2),
            (
                "budget.max_tokens is 99, with 0 tokens used so far (calls whose usage was not reported "
                "count at their worst: 2): the next call (s) may cost 100"
            ),
        ),
        (
            purse(Caps(cost=Decimal("0.05")), price=PRICE, currency="USD"),
            "budget.max_cost is USD 0.0500, with USD 0.0000 spent so far: the next call (s) may cost USD 0.1000",
        ),
        (
            purse(Caps(cost=Decimal("0.05")), price=PRICE),
            "budget.max_cost is 0.0500, with 0.0000 spent so far: the next call (s) may cost 0.1000",
        ),
    ],
    ids=["calls", "tokens", "unreported", "cost", "no currency"],
)
def test_what_is_reached_is_said_with_its_numbers(made: Purse, message: str) -> None:
    """The cap, what of it is used, and what the next call might have cost."""

    async def play() -> None:
        with pytest.raises(NotStarted):
            await ask(made)
        assert made.reached == Reached(message.split(maxsplit=1)[0], message)

    scene(play())


@pytest.mark.parametrize(
    ("tries", "came_to"),
    [
        ((), Amount(tokens=7, calls=1)),
        ((FREE,), Amount(tokens=7, calls=2)),
        ((UNTOLD,), Amount(tokens=107, calls=2)),
        ((TOLD, UNTOLD), Amount(tokens=117, calls=3)),
    ],
    ids=["first try", "after one that cost nothing", "after one that may have cost", "after one that said its cost"],
)
def test_an_answer_costs_what_its_tries_came_to(tries: tuple[Try, ...], came_to: Amount) -> None:
    """What was not reported counts at its worst; nothing stays set aside."""

    async def play() -> None:
        open_ = purse(Caps())
        assert (await ask(open_, *tries)).text == "ok"
        assert (open_.ledger.spent, open_.ledger.reserved, open_.in_flight) == (came_to, NOTHING, 0)

    scene(play())


@pytest.mark.parametrize(
    ("kind", "tries", "came_to"),
    [
        ("auth", (), NOTHING),
        ("timeout", (), WORST),
        ("server", (UNTOLD,), WORST),
        ("server", (TOLD, FREE), Amount(tokens=10, calls=2)),
    ],
)
def test_a_call_that_fails_costs_what_its_tries_came_to(kind: str, tries: tuple[Try, ...], came_to: Amount) -> None:
    """One that could not be sent costs nothing."""

    async def play() -> None:
        open_ = purse(Caps())
        with pytest.raises(CallFailed, match="no"):
            await ask(open_, *tries, fails=kind)
        assert (open_.ledger.spent, open_.ledger.reserved, open_.in_flight) == (came_to, NOTHING, 0)

    scene(play())


def test_a_call_that_is_cancelled_costs_nothing_here() -> None:
    """What was set aside is free again; that it was under way is known from elsewhere."""

    async def play() -> None:
        open_ = purse(Caps(), spent=WORST)

        async def never(request: ChatRequest) -> ChatReply:
            await asyncio.Event().wait()
            raise AssertionError

        request = ChatRequest(slot="s", stage="x", messages=(), max_tokens=1)
        task = asyncio.create_task(open_.pay("target", request, BOUND, never))
        await asyncio.sleep(0.001)
        assert (open_.in_flight, open_.ledger.reserved) == (1, WORST)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert (open_.ledger.spent, open_.ledger.reserved, open_.in_flight) == (WORST, NOTHING, 0)

    scene(play())


def test_while_a_call_is_tried_again_what_it_may_come_to_is_set_aside() -> None:
    """What its failed tries have come to, and the worst of the next one."""
    held: list[tuple[Amount, int]] = []

    async def play() -> None:
        open_ = purse(Caps())

        async def answer(request: ChatRequest) -> ChatReply:
            held.append((open_.ledger.reserved, open_.in_flight))
            assert await may_try_again(request, TOLD)
            held.append((open_.ledger.reserved, open_.in_flight))
            assert await may_try_again(request, FREE)
            held.append((open_.ledger.reserved, open_.in_flight))
            return ChatReply(text="ok", finish="stop", usage=Usage(input=1, output=1), tries=(TOLD, FREE))

        await open_.pay("target", ChatRequest(slot="s", stage="x", messages=(), max_tokens=1), BOUND, answer)

    scene(play())
    assert held == [(WORST, 1), (Amount(tokens=110, calls=2), 1), (Amount(tokens=110, calls=3), 1)]


def test_a_call_whose_next_try_is_not_covered_is_cut_short() -> None:
    """What its first try came to is spent, the failure is kept, and the budget is reached."""

    async def play() -> None:
        small = purse(Caps(tokens=150))
        with pytest.raises(CutShort, match="no more") as caught:
            await ask(small, UNTOLD)
        assert caught.value.failure.tries == (UNTOLD,)
        assert (small.ledger.spent, small.ledger.reserved, small.in_flight) == (WORST, NOTHING, 0)
        assert "(calls whose usage was not reported" not in words(small)
        assert words(small)

    scene(play())


def test_calls_that_report_nothing_are_counted() -> None:
    """So that the message says why more is used than was reported."""

    async def play() -> None:
        small = purse(Caps(tokens=242))
        await ask(small, usage=Usage())
        await ask(small, usage=Usage(input=1))
        await ask(small, usage=Usage(input=1, output=1))
        with pytest.raises(NotStarted):
            await ask(small)
        assert "count at their worst: 2)" in words(small)

    scene(play())


def test_every_try_that_starts_is_noted() -> None:
    """With its slot, role and bound, and whether an earlier try has failed; one that is refused is not."""
    noted: list[Noted] = []

    async def play() -> None:
        small = purse(Caps(calls=2), noted=noted)
        await ask(small, FREE, slot="a")
        with pytest.raises(NotStarted):
            await ask(small, slot="b")

    scene(play())
    assert noted == [("a", "target", BOUND, False), ("a", "target", BOUND, True)]


def test_a_call_waits_for_what_others_hold() -> None:
    """Its question is asked once they are done, and not before; whoever waits longest is the first."""

    async def play() -> None:
        full = purse(Caps(tokens=150))
        go, asked = asyncio.Event(), []

        async def answer(request: ChatRequest) -> ChatReply:
            asked.append(request.slot)
            await go.wait()
            return ChatReply(text="ok", finish="stop", usage=Usage(input=5, output=2))

        requests = [ChatRequest(slot=slot, stage="x", messages=(), max_tokens=1) for slot in "abc"]
        tasks = [asyncio.create_task(full.pay("target", request, BOUND, answer)) for request in requests]
        await asyncio.sleep(0.001)
        assert asked == ["a"]
        go.set()
        await asyncio.gather(*tasks)
        assert asked == ["a", "b", "c"]
        assert full.ledger.spent == Amount(tokens=21, calls=3)

    scene(play())
