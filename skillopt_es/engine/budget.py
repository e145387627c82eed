"""
Budgets: the most that a call may cost is set aside before it starts, and replaced afterwards by its real cost.

What a provider did not report stays charged at the worst that it can have been. The sums are pure.

A call is paid from a purse, which is a chain of accounts: the run's own, then perhaps one that it shares with other
runs. Each sets the most aside that the next try can cost. A call that does not fit waits until others have settled, in
turn. Where no call is under way any more and it still does not fit, the budget is reached, and nothing starts any more.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Protocol

from attrs import evolve, field, frozen

from skillopt_es.config.sections import BudgetConfig
from skillopt_es.engine.in_flight import Left
from skillopt_es.events.places import Place
from skillopt_es.events.requests import UNTOLD, RecordedRequest, TryTokens, attempt_in, charged, requests_sent
from skillopt_es.events.values import Json, Role
from skillopt_es.ports import CallFailed, ChatReply, Course, NotStarted, Try, Unanswered, Usage, Wait
from skillopt_es.projections.prices import Price, input_cost

# A token is at least one byte of what is sent. What wire formats and chat templates add is far below these numbers;
# the largest count of tokens that any provider charges for one picture is below the last.
_TOKENS_A_REQUEST, _TOKENS_A_MESSAGE, _TOKENS_AN_IMAGE = 2048, 64, 50_000
_LENGTHS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_MILLION = Decimal(1_000_000)


@frozen(kw_only=True)
class Amount:
    """The cost of calls: money, tokens (input and output), and requests sent."""

    cost: Decimal = Decimal(0)
    tokens: int = 0
    calls: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(cost=self.cost + other.cost, tokens=self.tokens + other.tokens, calls=self.calls + other.calls)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(cost=self.cost - other.cost, tokens=self.tokens - other.tokens, calls=self.calls - other.calls)


NOTHING = Amount()
_ONE_CALL = Amount(calls=1)


@frozen(kw_only=True)
class Caps:
    """What must not be exceeded; None: no limit."""

    cost: Decimal | None = None
    tokens: int | None = None
    calls: int | None = None

    def exceeded_by(self, amount: Amount) -> str:
        """The first cap that is below the amount; empty when all hold."""
        for name in ("cost", "tokens", "calls"):
            cap = getattr(self, name)
            if cap is not None and getattr(amount, name) > cap:
                return name
        return ""


def caps_of(budget: BudgetConfig) -> Caps:
    """The caps of a config, except the minutes."""
    cost = None if budget.max_cost is None else Decimal(str(budget.max_cost))
    return Caps(cost=cost, tokens=budget.max_tokens, calls=budget.max_calls)


@frozen
class Reached:
    """That nothing more starts: the budget's `key` in a config, and why in words."""

    key: str
    message: str


_DONE = {
    "calls": (" request", "sent"),  # each try counts, and `used` counts a call once
    "tokens": (" token", "used"),
    "cost": ("", "spent"),
    "minutes": (" minute", "taken"),
}


def used_words(name: str, shown: str) -> str:
    """How much of a budget's limit was used, to go on with `so far`."""
    noun, done = _DONE[name]
    return f"{shown}{noun}{'s' if noun and shown != '1' else ''} {done}"


@frozen(kw_only=True)
class Bound:
    """The most tokens that one try of a call can use."""

    input: int
    output: int


NO_TOKENS = Bound(input=0, output=0)


def bound_of(recorded: RecordedRequest, texts: int, most_output: int = 0) -> Bound:
    """
    The bound of a request, whose messages have so many bytes of text.

    `most_output` is a limit of the answer that is sent besides the request's own.
    """
    besides = len(json.dumps(recorded.params, ensure_ascii=False).encode())  # tools, their use, and the schema
    wrapping = _TOKENS_A_REQUEST + _TOKENS_A_MESSAGE * len(recorded.messages)
    pictures = _TOKENS_AN_IMAGE * len(recorded.images)
    return Bound(input=texts + besides + wrapping + pictures, output=max(recorded.max_tokens, most_output))


def longest_answer(extra_body: Mapping[str, Json]) -> int:
    """The limit of an answer that a config adds to every request; 0 for none."""
    return max((value for name in _LENGTHS if type(value := extra_body.get(name)) is int), default=0)


@frozen(kw_only=True)
class Tariff:
    """How one role's calls are counted; without a price nothing is said of money."""

    price: Price | None = None
    most_output: int = 0

    def worst(self, bound: Bound) -> Amount:
        """The most that one try can cost."""
        return self._amount((None, None, None, None), bound) + Amount(calls=1)

    def charged(self, attempts: Iterable[TryTokens], sent: int, bound: Bound) -> Amount:
        """The cost of a call's tries: what was reported, and the bound for what was not."""
        return sum((self._amount(attempt, bound) for attempt in attempts), Amount(calls=sent))

    def _amount(self, attempt: TryTokens, bound: Bound) -> Amount:
        told, said, cached = attempt[:3]
        inputs = bound.input if told is None else told
        outputs = bound.output if said is None else said
        if self.price is None:
            return Amount(tokens=inputs + outputs)
        # Where not even the input was told, nothing is known of its cached part.
        read = input_cost(self.price, inputs, None if told is None else cached, unknown=max)
        return Amount(cost=(read + outputs * self.price.output) / _MILLION, tokens=inputs + outputs)


def silent(attempts: Sequence[TryTokens]) -> bool:
    """Whether some of what a call used was not reported."""
    return any(attempt[0] is None or attempt[1] is None for attempt in attempts)


@frozen(kw_only=True)
class Spent:
    """What a run has used before a session: `unreported` calls count as the most that they can have used."""

    amount: Amount = field(factory=Amount)
    unreported: int = 0
    minutes: float = 0.0


def _attempts_made(failed: tuple[Try, ...], usage: Usage | None, kind: str) -> list[TryTokens]:
    """The tokens of each attempt of a call that may have been charged: its failed tries, and its answer, if any."""
    answer = None if usage is None else (usage.input, usage.output, usage.cached, usage.reasoning)
    return charged(map(_attempt, failed), answer, kind)


def _attempt(failed: Try) -> TryTokens | None:
    """The tokens of a failed try; None for one that cost nothing."""
    usage = failed.usage
    told = (usage.input, usage.output, usage.cached, usage.reasoning)
    return attempt_in({"status": failed.status}) if told == UNTOLD else told


# --- paying for a call -----------------------------------------------------------------------------------------------


class Account(Protocol):
    """What calls may use: those of one run (`OwnAccount`), or those of all runs that share it."""

    @property
    def reached(self) -> Reached | None:
        """Why nothing starts any more, once that is so."""
        ...

    async def reserve(self, call: Payment, needed: Amount) -> bool:
        """Sets so much aside for a call in place of what is: at once, or when others have settled; False: never."""
        ...

    def settle(self, call: Payment, came_to: Amount | None) -> None:
        """Frees what is set aside, and spends the real cost; None: it was broken off, and may have been paid for."""
        ...

    def give_way(self, call: Payment) -> None:
        """Frees what is set aside for an attempt: its own call needs it, and is the next to be let through."""
        ...


Note = Callable[[str, Role, Bound, bool], None]
"""Notes that a try of a call (by slot and role) is about to start, and whether an earlier try of it has failed."""


class Purse:
    """What the calls of a session are paid from: each account has to cover a call, the first one before the next."""

    def __init__(
        self,
        accounts: Sequence[Account],
        tariffs: Mapping[Role, Tariff],
        note: Note | None = None,
    ) -> None:
        self.accounts = accounts
        self.tariffs = tariffs
        self.note = note
        self.attempts: dict[str, Attempt] = {}

    @property
    def reached(self) -> Reached | None:
        """Why nothing starts any more, once that is so."""
        for account in self.accounts:
            if account.reached is not None:
                return account.reached
        return None

    def attempt_asks(self, slot: str) -> None:
        """An attempt makes a call of its own, which is paid by itself."""
        attempt = self.attempts.get(slot)
        if attempt is not None:
            for account in self.accounts:
                account.give_way(attempt)


class CutShort(Exception):
    """A call gave no answer, and its next try was not covered."""

    def __init__(self, failure: CallFailed) -> None:
        super().__init__(str(failure))
        self.failure = failure


class Payment:
    """
    One call's way through the accounts of a purse, and the course on which its model makes the call.

    A call that is made `ahead` of its time is refused at once where it does not fit just now.
    """

    sends = True
    """Whether others may wait for it: it comes to its end by itself."""

    def __init__(
        self, purse: Purse, role: Role, slot: str, seat: Course, bound: Bound = NO_TOKENS, *, ahead: bool = False
    ) -> None:
        self.role: Role = role
        self.slot = slot
        self.bound = bound
        self.ahead = ahead
        self.silent = False  # whether some of what it used was not reported
        self._purse = purse
        self._seat = seat
        self._holds = self._refused = False
        self._tries = 0
        self._failed: list[TryTokens] = []

    @property
    def comes_first(self) -> bool:
        """Whether it goes before calls that have not begun: they may wait for what it or its attempt holds."""
        return self._tries > 0 or Place(self.slot).attempt is not None

    async def pay(self, ask: Callable[[Course], Awaitable[ChatReply]]) -> ChatReply:
        """The answer; raises NotStarted or CutShort where an account does not cover it, and what `ask` raises."""
        try:
            if not await self._begins(NOTHING):
                raise NotStarted
            reply = await ask(self)
        except CallFailed as failure:
            self._settle(self._cost(failure.tries, None, failure.kind))
            if self._refused:
                raise CutShort(failure) from failure
            raise
        except (NotStarted, Unanswered):
            self._settle(NOTHING)
            raise
        except BaseException:
            self._settle(None)
            raise
        self._settle(self._cost(reply.tries, reply.usage, ""))
        return reply

    async def may_try_again(self, failed: Try) -> bool:
        """Whether what is left covers another try after this one."""
        attempt = _attempt(failed)
        self._failed += [] if attempt is None else [attempt]
        self._tries += 1
        # What the failed tries came to stays set aside until the call is over.
        return await self._begins(self._purse.tariffs[self.role].charged(self._failed, self._tries, self.bound))

    async def rest(self, wait: Wait, sleep: Callable[[], Awaitable[object]]) -> bool:
        """Sleeps in its place in the run where something is set aside for it: other calls wait for that."""
        return await self._seat.rest(evolve(wait, holds=wait.holds or self._holds), sleep)

    async def _begins(self, came_to: Amount) -> bool:
        """Sets the worst of the next try aside, beside what the tries before it came to; whether it may start."""
        needed = came_to + self._worst()
        for account in self._purse.accounts:
            if not await account.reserve(self, needed):
                self._refused = True
                return False
            self._holds = True
        if self.sends and self._purse.note is not None:
            self._purse.note(self.slot, self.role, self.bound, self._tries > 0)
        return True

    def _worst(self) -> Amount:
        return self._purse.tariffs[self.role].worst(self.bound)

    def _cost(self, failed: tuple[Try, ...], usage: Usage | None, kind: str) -> Amount:
        """What the call came to: its failed tries, and its answer, if there is one."""
        attempts = _attempts_made(failed, usage, kind)
        self.silent = silent(attempts)
        sent = requests_sent(len(failed) + (usage is not None), kind)
        return self._purse.tariffs[self.role].charged(attempts, sent, self.bound)

    def _settle(self, came_to: Amount | None) -> None:
        for account in self._purse.accounts:
            account.settle(self, came_to)


class Attempt(Payment):
    """
    The payment of an attempt by an agent that asks through the run.

    A try is itself a call only where it makes none of its own: the first of these takes the place of that one.
    No other call waits for it to end, for it may wait itself until a call of its own is let through.
    """

    sends = False

    async def pay(self, ask: Callable[[Course], Awaitable[ChatReply]]) -> ChatReply:
        """The answer; raises as for any call."""
        self._purse.attempts[self.slot] = self
        try:
            return await super().pay(ask)
        finally:
            del self._purse.attempts[self.slot]

    async def may_try_again(self, failed: Try) -> bool:
        """Whether another call is left; this one is over."""
        self._settle(_ONE_CALL)
        self._tries += 1
        return await self._begins(NOTHING)

    def _worst(self) -> Amount:
        return _ONE_CALL

    def _cost(self, failed: tuple[Try, ...], usage: Usage | None, kind: str) -> Amount:
        """One call, where it holds one: its last try has made none of its own."""
        return _ONE_CALL


class Minutes:
    """How long a run may take, over all of its sessions; `most` may be changed meanwhile."""

    def __init__(
        self, most: float | None = None, before: float = 0.0, clock: Callable[[], float] = lambda: 0.0
    ) -> None:
        self.most = most
        self._before = before
        self._clock = clock
        self._began = clock()

    @property
    def taken(self) -> float:
        """By all sessions."""
        return self._before + (self._clock() - self._began) / 60

    def left(self) -> Iterator[Left]:
        """What is left of them, where they are limited."""
        if self.most is not None:
            yield Left(limit="minutes", left=f"{max(0.0, self.most - self.taken):.1f}", most=f"{self.most:g}")

    def reached(self) -> Reached | None:
        """Why there is no time left; None as long as there is."""
        if self.most is None:
            return None
        minutes = self.taken
        said = f"budget.max_minutes is {self.most:g}, and the run has taken {minutes:.2f}"
        return Reached("budget.max_minutes", said) if minutes >= self.most else None


@frozen
class _Waiting:
    """A try that waits to be let through."""

    call: Payment
    needed: Amount
    let: asyncio.Future[bool]


class OwnAccount:
    """A run's own budget in one session: what is spent, and what is set aside, together never exceed the caps."""

    def __init__(
        self,
        caps: Caps,
        before: Spent | None = None,
        minutes: Minutes | None = None,
        *,
        currency: str = "",
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        before = Spent() if before is None else before
        self.reached: Reached | None = None
        self.caps = caps
        self.minutes = Minutes() if minutes is None else minutes
        self.spent = before.amount
        self.reserved = NOTHING
        self._unreported = before.unreported
        self._currency = currency
        self._stopping = stopping
        self._held: dict[Payment, Amount] = {}
        self._under_way: set[Payment] = set()
        self._queue: deque[_Waiting] = deque()

    @property
    def in_flight(self) -> int:
        """How many calls are under way, so that others may wait for what they hold."""
        return len(self._under_way)

    async def reserve(self, call: Payment, needed: Amount) -> bool:
        """Sets so much aside for a call in place of what is, in turn."""
        self._under_way.discard(call)  # while it waits for another try, it gives nothing back
        waiting = _Waiting(call, needed, asyncio.get_running_loop().create_future())
        if call.comes_first:
            self._queue.appendleft(waiting)
        else:
            self._queue.append(waiting)
        self._serve()
        return await waiting.let

    def settle(self, call: Payment, came_to: Amount | None) -> None:
        """Of what was broken off nothing is spent here: the next session finds in a file that it was under way."""
        self._free(call, NOTHING if came_to is None else came_to)
        self._unreported += call.silent
        self._serve()

    def give_way(self, call: Payment) -> None:
        """No other call is let through before the attempt's own one."""
        self._free(call, NOTHING)

    def limit(self, caps: Caps, most_minutes: float | None) -> None:
        """Other limits from here on; a call that waits may fit now."""
        self.caps, self.minutes.most = caps, most_minutes
        self._serve()

    def left(self) -> tuple[Left, ...]:
        """What is left of each limit; what open calls may still come to is counted apart."""
        return (*self._left(), *self.minutes.left())

    def _left(self) -> Iterator[Left]:
        for name in ("cost", "tokens", "calls"):
            most = getattr(self.caps, name)
            if most is not None:
                held = getattr(self.reserved, name)
                left = self._shown(name, most - getattr(self.spent, name))
                aside = self._shown(name, held) if held else ""
                yield Left(limit=name, left=left, most=self._shown(name, most), aside=aside)

    def _free(self, call: Payment, came_to: Amount) -> None:
        self._under_way.discard(call)
        if call in self._held:
            self.reserved -= self._held.pop(call)
            self.spent += came_to

    def _serve(self) -> None:
        """Lets through the calls that wait, in turn, as far as the budget covers them."""
        while self._queue:
            first = self._queue[0]
            call, let = first.call, first.let
            if let.done():  # it was just answered, or cancelled while it waited
                self._queue.popleft()
                continue
            more = first.needed - self._held.get(call, NOTHING)
            lacking = self.caps.exceeded_by(self.spent + self.reserved + more)
            self.reached = self.reached or self.minutes.reached()
            if lacking and not (self.reached or self._under_way or call.ahead):
                self.reached = self._why(call.slot, lacking, getattr(more, lacking))
            if self.reached or self._stopping() or (lacking and call.ahead):
                let.set_result(False)
            elif lacking:
                return
            else:
                self.reserved += more
                self._held[call] = first.needed
                if call.sends:
                    self._under_way.add(call)
                let.set_result(True)

    def _why(self, slot: str, name: str, more: object) -> Reached:
        """What is used up, and what the next call might have cost."""
        cap, spent, held = (getattr(each, name) for each in (self.caps, self.spent, self.reserved))
        aside = f" and {self._shown(name, held)} set aside for calls that wait" if held else ""
        used = used_words(name, self._shown(name, spent))
        key = f"budget.max_{name}"
        head = f"{key} is {self._shown(name, cap)}, with {used} so far{aside}"
        if name == "calls":
            return Reached(key, f"{head}: the next call ({slot}) is not started")
        told = ""
        if self._unreported:
            told = f" (calls whose usage was not reported count at their worst: {self._unreported})"
        return Reached(key, f"{head}{told}: the next call ({slot}) may cost {self._shown(name, more)}")

    def _shown(self, name: str, number: object) -> str:
        return f"{self._currency} {number:.4f}".strip() if name == "cost" else f"{number:,}"
