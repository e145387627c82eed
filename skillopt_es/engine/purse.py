"""
A purse: lets calls through while a budget covers the most that they can cost, and says why no more are.

A call that does not fit waits until others have settled, in turn. Where nothing is in flight any more and it still does
not fit, the budget is reached: whoever waits is told so, and nothing starts any more.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping

from attrs import evolve, frozen

from skillopt_es.engine.budget import NOTHING, Account, Amount, Bound, Caps, Reached, Tariff, silent, used_words
from skillopt_es.events.values import Role
from skillopt_es.ports import CallFailed, ChatReply, ChatRequest, NotStarted, Try, Usage
from skillopt_es.projections.usage import UNTOLD, TryTokens, attempt_in, charged, requests_sent

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
        if not await self._purse.enter(more, self._slot, again=self._tries > 0, ahead=self._ahead):
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
