"""
Budgets: the most that a call may cost is set aside before it starts, and replaced afterwards by its real cost.

What a provider did not report stays charged at the worst that it can have been. The sums are pure.

A purse lets calls through while a budget covers the most that they can cost, and says why no more are. A call that does
not fit waits until others have settled, in turn. Where nothing is in flight any more and it still does not fit, the
budget is reached: whoever waits is told so, and nothing starts any more.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal

from attrs import evolve, field, frozen

from skillopt_es.config.sections import BudgetConfig
from skillopt_es.engine.in_flight import Left
from skillopt_es.events.places import Place
from skillopt_es.events.requests import RecordedRequest
from skillopt_es.events.values import Json, Role
from skillopt_es.ports import CallFailed, ChatReply, ChatRequest, NotStarted, Try, Usage
from skillopt_es.projections.prices import Price, input_cost
from skillopt_es.projections.usage import UNTOLD, TryTokens, attempt_in, charged, requests_sent

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


class Account:
    """What is spent, and what is set aside for calls under way; together they never exceed the caps."""

    def __init__(self, caps: Caps, spent: Amount = NOTHING) -> None:
        self.caps = caps
        self.spent = spent
        self.reserved = NOTHING

    def lacks(self, more: Amount) -> str:
        """The cap that keeps so much more from being set aside just now; empty when it fits."""
        return self.caps.exceeded_by(self.spent + self.reserved + more)

    def reserve(self, more: Amount) -> bool:
        """Sets so much more aside, if it fits; what is negative gives some back."""
        if self.lacks(more):
            return False
        self.reserved += more
        return True

    def settle(self, held: Amount, came_to: Amount) -> None:
        """Frees what was set aside for a call, and spends its real cost."""
        self.reserved -= held
        self.spent += came_to


@frozen(kw_only=True)
class Bound:
    """The most tokens that one try of a call can use."""

    input: int
    output: int


def bound_of(recorded: RecordedRequest, size: Callable[[str], int], most_output: int = 0) -> Bound:
    """
    The bound of a request; `size` is the bytes of a text by its digest.

    `most_output` is a limit of the answer that is sent besides the request's own.
    """
    texts = sum(size(digest) for _, digest in recorded.messages)
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


Note = Callable[[str, Role, Bound, bool], None]
"""Notes that a try of a call (by slot and role) is about to start, and whether an earlier try of it has failed."""


class CutShort(Exception):
    """A call gave no answer, and its next try was not covered."""

    def __init__(self, failure: CallFailed) -> None:
        super().__init__(str(failure))
        self.failure = failure


@frozen
class _Waiting:
    """A try that waits to be let through."""

    more: Amount
    slot: str
    ahead: bool
    let: asyncio.Future[bool]


class Purse:
    """One session's budget; `reached` says why nothing starts any more, once that is so."""

    def __init__(
        self,
        ledger: Account,
        tariffs: Mapping[Role, Tariff],
        *,
        currency: str = "",
        unreported: int = 0,
        late: Callable[[], Reached | None] = lambda: None,
        stopping: Callable[[], bool] = lambda: False,
        note: Note = lambda slot, role, bound, again: None,
    ) -> None:
        self.reached: Reached | None = None
        self.in_flight = 0
        self.ledger = ledger
        self.tariffs = tariffs
        self._currency = currency
        self._unreported = unreported
        self.late = late
        self._stopping = stopping
        self._note = note
        self._queue: deque[_Waiting] = deque()
        self._attempts: set[str] = set()

    async def pay(
        self,
        role: Role,
        request: ChatRequest,
        bound: Bound,
        ask: Callable[[ChatRequest], Awaitable[ChatReply]],
        *,
        ahead: bool = False,
    ) -> ChatReply:
        """
        The answer; raises NotStarted or CutShort where the budget does not cover it, and what `ask` raises.

        What is asked `ahead` of its time is refused at once where it does not fit just now, and that is all.
        """
        course = _Course(self, role, request.slot, bound, ahead=ahead)
        if not await course.begins():
            raise NotStarted
        try:
            reply = await ask(evolve(request, further=course.goes_on))
        except CallFailed as failure:
            self._ended(course, attempts_made(failure.tries, None, failure.kind), len(failure.tries), failure.kind)
            if course.refused:
                raise CutShort(failure) from failure
            raise
        except BaseException:
            self._ended(course, None)
            raise
        self._ended(course, attempts_made(reply.tries, reply.usage, ""), len(reply.tries) + 1)
        return reply

    async def pay_attempt(self, request: ChatRequest, ask: Callable[[ChatRequest], Awaitable[ChatReply]]) -> ChatReply:
        """
        The answer of an agent that asks through the run; raises as `pay` does.

        A try is itself a call only where it makes none of its own: the first of these takes the place of that one.
        """
        slot, refused = request.slot, False

        async def goes_on(_: Try) -> bool:
            nonlocal refused
            self._attempt_ends(slot)
            refused = not await self._attempt_begins(slot, again=True)
            return not refused

        if not await self._attempt_begins(slot, again=False):
            raise NotStarted
        try:
            return await ask(evolve(request, further=goes_on))
        except CallFailed as failure:
            if refused:
                raise CutShort(failure) from failure
            raise
        finally:
            self._attempt_ends(slot)

    async def _attempt_begins(self, slot: str, *, again: bool) -> bool:
        """Sets a call aside for a try of an agent's attempt; whether it may be made. Nobody waits for it to end."""
        if not await self.enter(_ONE_CALL, slot, again=again, ahead=False):
            return False
        self.leave()
        self._attempts.add(slot)
        return True

    def attempt_asks(self, slot: str) -> None:
        """An attempt makes a call of its own, which is paid by itself and is the next to be let through."""
        self._attempt_settles(slot, NOTHING)

    def _attempt_ends(self, slot: str) -> None:
        """A try of an attempt is over: it was a call if it has made none."""
        self._attempt_settles(slot, _ONE_CALL)
        self._serve()

    def _attempt_settles(self, slot: str, came_to: Amount) -> None:
        if slot in self._attempts:
            self._attempts.discard(slot)
            self.ledger.settle(_ONE_CALL, came_to)

    async def enter(self, more: Amount, slot: str, *, again: bool, ahead: bool) -> bool:
        """Whether so much more is set aside for a try: at once, or once others have settled; False: never."""
        let: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        waiting = _Waiting(more, slot, ahead, let)
        if again:  # it holds what others wait for
            self._queue.appendleft(waiting)
        else:
            self._queue.append(waiting)
        self._serve()
        try:
            return await let
        except asyncio.CancelledError:
            if let.done() and not let.cancelled() and let.result():
                self.leave()
                self.ledger.settle(more, NOTHING)
                self._serve()  # what was set aside is free again for who waits
            raise

    def limit(self, caps: Caps) -> None:
        """Other limits from here on; who waits may fit now."""
        self.ledger.caps = caps
        self._serve()

    def left(self) -> Iterator[Left]:
        """What is left of each limit; what open calls may still come to is told apart."""
        ledger = self.ledger
        for name in ("cost", "tokens", "calls"):
            most = getattr(ledger.caps, name)
            if most is not None:
                held = getattr(ledger.reserved, name)
                left = self._shown(name, most - getattr(ledger.spent, name))
                aside = self._shown(name, held) if held else ""
                yield Left(limit=name, left=left, most=self._shown(name, most), aside=aside)

    def leave(self) -> None:
        """A try is over."""
        self.in_flight -= 1

    def note(self, slot: str, role: Role, bound: Bound, again: bool) -> None:
        """A try is about to start."""
        self._note(slot, role, bound, again)

    def _ended(self, course: _Course, attempts: list[TryTokens] | None, tries: int = 0, kind: str = "") -> None:
        """A call is over; without attempts nothing of it was sent."""
        if course.on_its_way:
            self.leave()
        came_to = NOTHING
        if attempts is not None:
            came_to = self.tariffs[course.role].charged(attempts, requests_sent(tries, kind), course.bound)
            self._unreported += silent(attempts)
        self.ledger.settle(course.held, came_to)
        self._serve()

    def _serve(self) -> None:
        """Lets through who waits, in turn, as far as the budget covers them."""
        while self._queue:
            first = self._queue[0]
            if first.let.done():  # told just now, or cancelled while it waited
                self._queue.popleft()
                continue
            self.reached = self.reached or self.late()
            lacking = bool(self.ledger.lacks(first.more))
            if not self.reached and not self.in_flight and lacking and not first.ahead:
                self.reached = self._why(first)
            if self.reached or self._stopping() or (lacking and first.ahead):
                first.let.set_result(False)
            elif self.ledger.reserve(first.more):
                self.in_flight += 1
                first.let.set_result(True)
            else:
                return

    def _why(self, first: _Waiting) -> Reached:
        """What is used up, and what the next call might have cost."""
        name = self.ledger.lacks(first.more)
        cap, spent = getattr(self.ledger.caps, name), getattr(self.ledger.spent, name)
        more = getattr(first.more, name)
        held = getattr(self.ledger.reserved, name)
        aside = f" and {self._shown(name, held)} set aside for calls that wait" if held else ""
        used = used_words(name, self._shown(name, spent))
        key = f"budget.max_{name}"
        head = f"{key} is {self._shown(name, cap)}, with {used} so far{aside}"
        if name == "calls":
            return Reached(key, f"{head}: the next call ({first.slot}) is not started")
        told = ""
        if self._unreported:
            told = f" (calls whose usage was not reported count at their worst: {self._unreported})"
        return Reached(key, f"{head}{told}: the next call ({first.slot}) may cost {self._shown(name, more)}")

    def _shown(self, name: str, number: object) -> str:
        return f"{self._currency} {number:.4f}".strip() if name == "cost" else f"{number:,}"


class _Course:
    """One call's way through the purse: what is set aside for it, and what its failed tries have cost."""

    def __init__(self, purse: Purse, role: Role, slot: str, bound: Bound, *, ahead: bool) -> None:
        self.role: Role = role
        self.bound = bound
        self.held = NOTHING
        self.on_its_way = False
        self.refused = False
        self._purse = purse
        self._slot = slot
        self._ahead = ahead
        self._worst = purse.tariffs[role].worst(bound)
        self._failed: list[TryTokens] = []
        self._tries = 0

    async def begins(self) -> bool:
        """Whether the first try may start."""
        return await self._next(self._worst)

    async def goes_on(self, failed: Try) -> bool:
        """Whether another try may start after this one."""
        attempt = _attempt(failed)
        self._failed += [] if attempt is None else [attempt]
        self._tries += 1
        self._purse.leave()
        self.on_its_way = False
        came_to = self._purse.tariffs[self.role].charged(self._failed, self._tries, self.bound)
        # What the failed tries came to stays set aside until the call is over.
        return await self._next(came_to + self._worst)

    async def _next(self, needed: Amount) -> bool:
        """Sets aside what is needed instead of what is held."""
        more = needed - self.held
        # An agent's own call comes before attempts that wait to begin, as a further try does.
        first = self._tries > 0 or Place(self._slot).attempt is not None
        if not await self._purse.enter(more, self._slot, again=first, ahead=self._ahead):
            self.refused = True
            return False
        self.held, self.on_its_way = needed, True
        self._purse.note(self._slot, self.role, self.bound, self._tries > 0)
        return True


def attempts_made(failed: tuple[Try, ...], usage: Usage | None, kind: str) -> list[TryTokens]:
    """The tokens of each attempt of a call that may have been charged: its failed tries, and its answer, if any."""
    answer = None if usage is None else (usage.input, usage.output, usage.cached, usage.reasoning)
    return charged(map(_attempt, failed), answer, kind)


def _attempt(failed: Try) -> TryTokens | None:
    """The tokens of a failed try; None for one that cost nothing."""
    usage = failed.usage
    told = (usage.input, usage.output, usage.cached, usage.reasoning)
    return attempt_in({"status": failed.status}) if told == UNTOLD else told
