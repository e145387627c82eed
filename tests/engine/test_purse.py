"""A purse lets calls through in turn while its accounts cover them, and says why no more are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from decimal import Decimal

import pytest
from attrs import define, field, frozen

from skillopt_es.engine.budget import (
    NOTHING,
    Amount,
    Attempt,
    Bound,
    Caps,
    CutShort,
    Minutes,
    OwnAccount,
    Payment,
    Purse,
    Reached,
    Spent,
    Tariff,
)
from skillopt_es.events.places import Place
from skillopt_es.events.values import Role
from skillopt_es.ports import ALONE, Alone, CallFailed, ChatReply, Course, NotStarted, Try, Unanswered, Usage, Wait
from skillopt_es.projections.prices import Price

WORST = Amount(tokens=100, calls=1)
TIME_IS_UP = Reached("budget.max_minutes", "budget.max_minutes is 1, and the run has taken 1.00")
BOUND = Bound(input=60, output=40)  # comes to WORST
PRICE = Price(input=Decimal(1000), output=Decimal(1000))
FREE = Try(kind="rate_limit", status=429, message="", waited_ms=0)
UNTOLD = Try(kind="server", status=500, message="", waited_ms=0)
TOLD = Try(kind="server", status=500, message="", waited_ms=0, usage=Usage(input=7, output=3))
ROLES: tuple[Role, ...] = ("target", "optimizer")
USED = Usage(input=5, output=2)
NO_USE = Usage(input=0, output=0)
Noted = tuple[str, Role, Bound, bool]


@frozen
class Paid:
    """A purse whose two roles cost the same, and the account in it."""

    account: OwnAccount
    purse: Purse
    callers: list[Caller] = field(factory=list)
    """All of them: what refers to a task must be kept, or it may be collected while it waits."""

    @property
    def words(self) -> str:
        """Why nothing starts any more."""
        return "" if self.purse.reached is None else self.purse.reached.message

    @property
    def sums(self) -> tuple[Amount, Amount, int]:
        """What is spent, what is set aside, and how many calls are under way."""
        return self.account.spent, self.account.reserved, self.account.in_flight

    def payment(self, slot: str = "s", bound: Bound = BOUND, *, ahead: bool = False) -> Payment:
        """The payment of one call."""
        return Payment(self.purse, "target", slot, ALONE, bound, ahead=ahead)


def paid(
    caps: Caps,
    *,
    spent: Amount = NOTHING,
    price: Price | None = None,
    unreported: int = 0,
    currency: str = "",
    minutes: Minutes | None = None,
    stopping: Callable[[], bool] = lambda: False,
    noted: list[Noted] | None = None,
) -> Paid:
    """A purse with one account, a run's own."""
    notes: list[Noted] = [] if noted is None else noted
    before = Spent(amount=spent, unreported=unreported)
    account = OwnAccount(caps, before, minutes, currency=currency, stopping=stopping)
    tariffs = dict.fromkeys(ROLES, Tariff(price=price))
    return Paid(account, Purse([account], tariffs, lambda *note: notes.append(note)))


def scene(coroutine: Coroutine[None, None, None]) -> None:
    """Runs what waits for others, but not for ever."""
    asyncio.run(asyncio.wait_for(coroutine, 10))


async def settle_down() -> None:
    """Every task gets as far as it can without others."""
    for _ in range(5):
        await asyncio.sleep(0)


@define
class Caller:
    """A call that has got as far as it can without others; it answers when it is let go."""

    payment: Payment
    usage: Usage = NO_USE
    asked: bool = False
    go: asyncio.Event = field(factory=asyncio.Event)
    task: asyncio.Task[ChatReply] = field(init=False)

    @classmethod
    async def of(
        cls, paid: Paid, slot: str, bound: Bound = BOUND, *, ahead: bool = False, attempt: bool = False
    ) -> Caller:
        """A call of this purse."""
        payment = Attempt(paid.purse, "target", slot, ALONE) if attempt else paid.payment(slot, bound, ahead=ahead)
        caller = cls(payment)
        paid.callers.append(caller)
        caller.task = asyncio.create_task(payment.pay(caller.answer))
        await settle_down()
        return caller

    async def answer(self, course: Course) -> ChatReply:
        """As the model does."""
        self.asked = True
        await self.go.wait()
        return ChatReply(text="ok", finish="stop", usage=self.usage)

    async def ends(self, usage: Usage = NO_USE) -> None:
        """It comes to its end with this usage."""
        self.usage = usage
        self.go.set()
        await settle_down()

    @property
    def refused(self) -> bool:
        """Whether it was not started."""
        return self.task.done() and isinstance(self.task.exception(), NotStarted)


async def ask(paid: Paid, *tries: Try, fails: str = "", usage: Usage = USED, slot: str = "s") -> ChatReply:
    """Pays for a call whose first tries fail so, if they are let through."""

    async def answer(course: Course) -> ChatReply:
        for number, failed in enumerate(tries, 1):
            if not (fails and number == len(tries)) and not await course.may_try_again(failed):
                raise CallFailed("server", "no more", tries=tries[:number])
        if fails:
            raise CallFailed(fails, "no", tries=tries)
        return ChatReply(text="ok", finish="stop", usage=usage, tries=tries)

    return await paid.payment(slot).pay(answer)


def test_who_waits_is_let_through_in_turn() -> None:
    """Also where a later call would fit: it would keep the first one from its turn for ever."""

    async def play() -> None:
        full = paid(Caps(tokens=150))
        first = await Caller.of(full, "a")
        big, small = await Caller.of(full, "b"), await Caller.of(full, "c", Bound(input=10, output=0))
        assert (first.asked, big.asked, small.asked) == (True, False, False)
        assert full.account.in_flight == 1
        await first.ends()
        assert (big.asked, small.asked) == (True, True)
        assert full.sums == (Amount(calls=1), Amount(tokens=110, calls=2), 2)

    scene(play())


def test_another_try_goes_before_calls_that_have_not_begun() -> None:
    """It holds what they wait for."""

    async def play() -> None:
        full = paid(Caps(tokens=250))
        first = await Caller.of(full, "a")

        async def answer(course: Course) -> ChatReply:
            new = await Caller.of(full, "c")
            assert await course.may_try_again(TOLD)
            assert not new.asked
            return ChatReply(text="ok", finish="stop", usage=Usage(input=1, output=1), tries=(TOLD,))

        assert (await full.payment("b").pay(answer)).tries == (TOLD,)
        assert not first.task.done()

    scene(play())


def test_a_purse_that_is_told_nothing_else_minds_its_caps() -> None:
    """No clock, no stop, no currency, and nothing that was not reported."""

    async def play() -> None:
        account = OwnAccount(Caps(cost=Decimal("0.15")))
        plain = Paid(account, Purse([account], dict.fromkeys(ROLES, Tariff(price=PRICE))))
        await ask(plain, usage=Usage(input=60, output=40))
        with pytest.raises(NotStarted):
            await ask(plain)
        assert plain.purse.reached == Reached(
            "budget.max_cost",
            "budget.max_cost is 0.1500, with 0.1000 spent so far: the next call (s) may cost 0.1000",
        )

    scene(play())


def test_no_call_waits_where_nothing_is_in_flight() -> None:
    """The budget is reached: a call that waits is refused, and so is a later one, even if it would fit."""

    async def play() -> None:
        full = paid(Caps(tokens=150))
        first = await Caller.of(full, "a")
        second, third = await Caller.of(full, "b"), await Caller.of(full, "c", Bound(input=1, output=0))
        assert full.purse.reached is None
        await first.ends(Usage(input=60, output=40))
        assert (second.refused, third.refused) == (True, True)
        assert full.words.startswith("budget.max_tokens is 150, with 100 tokens used so far")
        assert (await Caller.of(full, "d", Bound(input=1, output=0))).refused
        assert full.sums == (WORST, NOTHING, 0)

    scene(play())


def test_what_is_asked_ahead_is_refused_at_once_and_reaches_nothing() -> None:
    """Whether or not something is in flight; where it fits it is let through."""

    async def play() -> None:
        full = paid(Caps(tokens=150))
        assert (await Caller.of(full, "a", Bound(input=151, output=0), ahead=True)).refused
        assert full.purse.reached is None
        assert (await Caller.of(full, "b", ahead=True)).asked
        assert (await Caller.of(full, "c", ahead=True)).refused
        assert (full.purse.reached, full.account.in_flight) == (None, 1)

    scene(play())


def test_a_cancelled_call_that_waited_keeps_no_other_from_its_turn() -> None:
    """Nothing was set aside for it, so nothing is given back."""

    async def play() -> None:
        full = paid(Caps(tokens=100))
        first = await Caller.of(full, "a")
        gone, next_ = await Caller.of(full, "b"), await Caller.of(full, "c")
        gone.task.cancel()
        await asyncio.gather(gone.task, return_exceptions=True)
        assert full.sums == (NOTHING, WORST, 1)
        await first.ends()
        assert next_.asked
        assert full.sums == (Amount(calls=1), WORST, 1)

    scene(play())


@pytest.mark.parametrize(("came_to", "third"), [(NOTHING, "asked"), (WORST, "refused")])
def test_who_is_cancelled_as_it_is_let_through_or_refused_lets_the_next_one_come(came_to: Amount, third: str) -> None:
    """What was set aside for it is free again, and nothing of it is in flight."""

    async def play() -> None:
        full = paid(Caps(tokens=150))
        first = await Caller.of(full, "a")
        second, last = await Caller.of(full, "b"), await Caller.of(full, "c")
        full.account.settle(first.payment, came_to)  # b is answered, and cancelled before it hears of that
        second.task.cancel()
        await asyncio.gather(second.task, return_exceptions=True)
        await settle_down()
        assert second.task.cancelled()
        assert not second.asked
        assert getattr(last, third)
        assert full.sums == (came_to, NOTHING if third == "refused" else WORST, int(third == "asked"))

    scene(play())


def test_nothing_starts_once_time_is_up_or_the_run_is_to_stop() -> None:
    """Time that is up is a budget that is reached; a stop is none."""

    async def play() -> None:
        up = paid(Caps(), minutes=Minutes(1.0, before=1.0))
        with pytest.raises(NotStarted):
            await ask(up)
        assert up.purse.reached == TIME_IS_UP
        stopped = paid(Caps(), stopping=lambda: True)
        with pytest.raises(NotStarted):
            await ask(stopped)
        assert (stopped.purse.reached, stopped.account.in_flight) == (None, 0)

    scene(play())


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (
            paid(Caps(calls=1200), spent=Amount(calls=1200), unreported=2),
            "budget.max_calls is 1,200, with 1,200 requests sent so far: the next call (s) is not started",
        ),
        (
            paid(Caps(tokens=9999), spent=Amount(tokens=9950)),
            "budget.max_tokens is 9,999, with 9,950 tokens used so far: the next call (s) may cost 100",
        ),
        (
            paid(Caps(tokens=99), unreported=2),
            (
                "budget.max_tokens is 99, with 0 tokens used so far (calls whose usage was not reported "
                "count at their worst: 2): the next call (s) may cost 100"
            ),
        ),
        (
            paid(Caps(cost=Decimal("0.05")), price=PRICE, currency="USD"),
            "budget.max_cost is USD 0.0500, with USD 0.0000 spent so far: the next call (s) may cost USD 0.1000",
        ),
        (
            paid(Caps(cost=Decimal("0.05")), price=PRICE),
            "budget.max_cost is 0.0500, with 0.0000 spent so far: the next call (s) may cost 0.1000",
        ),
    ],
    ids=["calls", "tokens", "unreported", "cost", "no currency"],
)
def test_what_is_reached_is_said_with_its_numbers(made: Paid, message: str) -> None:
    """The cap, what of it is used, and what the next call might have cost."""

    async def play() -> None:
        with pytest.raises(NotStarted):
            await ask(made)
        assert made.purse.reached == Reached(message.split(maxsplit=1)[0], message)

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
        open_ = paid(Caps())
        assert (await ask(open_, *tries)).text == "ok"
        assert open_.sums == (came_to, NOTHING, 0)

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
        open_ = paid(Caps())
        with pytest.raises(CallFailed, match="no"):
            await ask(open_, *tries, fails=kind)
        assert open_.sums == (came_to, NOTHING, 0)

    scene(play())


def test_a_call_that_is_cancelled_costs_nothing_here() -> None:
    """What was set aside is free again; that it was under way is known from elsewhere."""

    async def play() -> None:
        open_ = paid(Caps(), spent=WORST)

        caller = await Caller.of(open_, "s")
        assert open_.sums == (WORST, WORST, 1)
        caller.task.cancel()
        await asyncio.gather(caller.task, return_exceptions=True)
        assert open_.sums == (WORST, NOTHING, 0)

    scene(play())


def test_while_a_call_is_tried_again_what_it_may_come_to_is_set_aside() -> None:
    """What its failed tries have come to, and the worst of the next one."""
    held: list[tuple[Amount, int]] = []

    async def play() -> None:
        open_ = paid(Caps())

        async def answer(course: Course) -> ChatReply:
            held.append(open_.sums[1:])
            assert await course.may_try_again(TOLD)
            held.append(open_.sums[1:])
            assert await course.may_try_again(FREE)
            held.append(open_.sums[1:])
            return ChatReply(text="ok", finish="stop", usage=Usage(input=1, output=1), tries=(TOLD, FREE))

        await open_.payment().pay(answer)

    scene(play())
    assert held == [(WORST, 1), (Amount(tokens=110, calls=2), 1), (Amount(tokens=110, calls=3), 1)]


def test_a_call_whose_next_try_is_not_covered_is_cut_short() -> None:
    """What its first try came to is spent, the failure is kept, and the budget is reached."""

    async def play() -> None:
        small = paid(Caps(tokens=150))
        with pytest.raises(CutShort, match="no more") as caught:
            await ask(small, UNTOLD)
        assert caught.value.failure.tries == (UNTOLD,)
        assert small.sums == (WORST, NOTHING, 0)
        assert "(calls whose usage was not reported" not in small.words
        assert small.words

    scene(play())


def test_calls_that_report_nothing_are_counted() -> None:
    """So that the message says why more is used than was reported."""

    async def play() -> None:
        small = paid(Caps(tokens=242))
        await ask(small, usage=Usage())
        await ask(small, usage=Usage(input=1))
        await ask(small, usage=Usage(input=1, output=1))
        with pytest.raises(NotStarted):
            await ask(small)
        assert "count at their worst: 2)" in small.words

    scene(play())


def test_every_try_that_starts_is_noted() -> None:
    """With its slot, role and bound, and whether an earlier try has failed; one that is refused is not."""
    noted: list[Noted] = []

    async def play() -> None:
        small = paid(Caps(calls=2), noted=noted)
        await ask(small, FREE, slot="a")
        with pytest.raises(NotStarted):
            await ask(small, slot="b")

    scene(play())
    assert noted == [("a", "target", BOUND, False), ("a", "target", BOUND, True)]


def test_a_call_waits_for_what_others_hold() -> None:
    """Its question is asked once they are done, and not before; the one that waits longest is the first."""

    async def play() -> None:
        full = paid(Caps(tokens=150))
        callers = [await Caller.of(full, slot) for slot in "abc"]
        assert [each.asked for each in callers] == [True, False, False]
        await callers[0].ends(USED)
        assert [each.asked for each in callers] == [True, True, False]
        for each in callers[1:]:
            await each.ends(USED)
        assert full.account.spent == Amount(tokens=21, calls=3)

    scene(play())


@pytest.mark.parametrize("raised", [NotStarted(), Unanswered()])
def test_what_was_never_sent_costs_nothing(raised: BaseException) -> None:
    """The run is stopping, or the answer comes from outside."""

    async def never(course: Course) -> ChatReply:
        raise raised

    async def play() -> None:
        open_ = paid(Caps())
        with pytest.raises(type(raised)):
            await open_.payment().pay(never)
        assert open_.sums == (NOTHING, NOTHING, 0)

    scene(play())


class Rests(Alone):
    """A place in the run that notes how it was kept."""

    def __init__(self) -> None:
        self.kept: list[bool] = []

    async def rest(self, wait: Wait, sleep: object) -> bool:
        """At once."""
        self.kept.append(wait.holds)
        return True


def test_who_has_something_set_aside_keeps_its_place_while_it_waits() -> None:
    """Others wait for what it holds, and would sit in all places until it has one again."""
    seat = Rests()

    async def answer(course: Course) -> ChatReply:
        assert await course.rest(Wait(kind="server", seconds=1), lambda: asyncio.sleep(0))
        return ChatReply(text="ok", finish="stop", usage=USED)

    async def play() -> None:
        await Payment(paid(Caps()).purse, "target", "s", seat, BOUND).pay(answer)

    scene(play())
    assert seat.kept == [True]


def test_what_is_left_is_said_of_each_limit() -> None:
    """What open calls may still come to is counted apart; minutes are those of all sessions."""
    moments = iter([600.0, 660.0])
    minutes = Minutes(5.0, before=1.0, clock=lambda: next(moments))

    async def play() -> None:
        made = paid(Caps(tokens=1500, calls=3), spent=Amount(tokens=200, calls=1), minutes=Minutes())
        await Caller.of(made, "a")
        said = [(each.limit, each.left, each.most, each.aside) for each in made.account.left()]
        assert said == [("tokens", "1,300", "1,500", "100"), ("calls", "2", "3", "1")]

    scene(play())
    [left] = minutes.left()
    assert (left.limit, left.left, left.most) == ("minutes", "3.0", "5")
    assert [*Minutes().left()] == []


# --- attempts of agents that ask through the run ---------------------------------------------------------------------


def test_an_attempt_is_a_call_where_it_makes_none() -> None:
    """Each of its tries; what is set aside for the next one is one call more."""

    async def answer(course: Course) -> ChatReply:
        assert await course.may_try_again(UNTOLD)
        return ChatReply(text="ok", finish="stop", tries=(UNTOLD,))

    async def play() -> None:
        open_ = paid(Caps(calls=2))
        await Attempt(open_.purse, "target", "baseline/item/a", ALONE).pay(answer)
        assert open_.sums == (Amount(calls=2), NOTHING, 0)
        assert open_.purse.attempts == {}

    scene(play())


def test_the_first_call_of_an_attempt_takes_its_place_before_all_who_wait() -> None:
    """With a single call left, it is the attempt's own."""

    async def play() -> None:
        full = paid(Caps(calls=2))
        attempt = await Caller.of(full, "baseline/item/a", attempt=True)
        other = await Caller.of(full, "baseline/item/b")
        waiting = await Caller.of(full, "baseline/item/c")
        assert (attempt.asked, other.asked, waiting.asked) == (True, True, False)
        full.purse.attempt_asks("baseline/item/a")
        own = await Caller.of(full, Place("baseline/item/a").own_call("0" * 16, 1))
        assert (own.asked, waiting.asked) == (True, False)
        await own.ends(USED)
        await attempt.ends()
        assert full.account.spent.calls == 1
        await other.ends()
        assert waiting.refused
        assert full.sums[1:] == (NOTHING, 0)

    scene(play())


def test_no_call_waits_for_an_attempt() -> None:
    """It may wait itself: where only attempts are under way, the budget is reached."""

    async def play() -> None:
        full = paid(Caps(calls=1))
        attempt = await Caller.of(full, "baseline/item/a", attempt=True)
        assert (await Caller.of(full, "baseline/item/b")).refused
        assert full.words == (
            "budget.max_calls is 1, with 0 requests sent so far and 1 set aside for calls that wait: "
            "the next call (baseline/item/b) is not started"
        )
        await attempt.ends()
        assert full.sums == (Amount(calls=1), NOTHING, 0)

    scene(play())


def test_an_attempt_whose_next_try_is_not_covered_is_cut_short() -> None:
    """Its first try was a call."""

    async def answer(course: Course) -> ChatReply:
        assert not await course.may_try_again(UNTOLD)
        raise CallFailed("crash", "no", tries=(UNTOLD,))

    async def play() -> None:
        small = paid(Caps(calls=1))
        with pytest.raises(CutShort):
            await Attempt(small.purse, "target", "baseline/item/a", ALONE).pay(answer)
        assert small.sums == (Amount(calls=1), NOTHING, 0)
        assert small.words.startswith("budget.max_calls is 1, with 1 request sent so far: the next call")

    scene(play())
