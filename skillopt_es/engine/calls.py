"""
Model calls through the journal: a recorded answer is used, any other call is made once and committed before use.

A slot names the place of a call in the algorithm, the request digest everything that reaches the wire. The same slot
with the same digest is answered from the journal; with another one it is a Divergence, unless asking again was allowed,
the recorded one came along from the run that this one was forked from, or another release has asked it in other words.

Each call has a seat while it is made. One that waits leaves its seat to another call.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Protocol, Self, cast

from attrs import field, frozen

from skillopt_es.engine.budget import Attempt, Bound, CutShort, Payment, Purse, Reached, bound_of
from skillopt_es.engine.call_records import (
    Asked,
    Exchange,
    Repeats,
    answered_call,
    failed_call,
    read_answer,
    recorded_answer,
    recorded_request,
    repeating_call,
    steps_of,
    steps_text,
    unanswered_call,
)
from skillopt_es.engine.in_flight import InFlight
from skillopt_es.errors import BackendError, Divergence
from skillopt_es.events.erasures import ErasedText
from skillopt_es.events.errors import TextErased
from skillopt_es.events.journal import CallRow, FinishedCall
from skillopt_es.events.values import CallRef, Role
from skillopt_es.logs import bound
from skillopt_es.ports import (
    AgentStep,
    CallFailed,
    ChatModel,
    ChatReply,
    ChatRequest,
    FinishReason,
    Fronting,
    NotStarted,
    ToolCall,
    Try,
    Unanswered,
    Usage,
    Wait,
)


@frozen
class Answer:
    """A reply and where it is recorded; `steps` are what an agent did on its way to it."""

    text: str
    finish: FinishReason
    ref: CallRef
    tool_calls: tuple[ToolCall, ...] = ()
    steps: tuple[AgentStep, ...] = ()
    usage: Usage = field(factory=Usage)


class Calls(Protocol):
    """Answers to model requests, live or recorded."""

    async def ask(self, role: Role, request: ChatRequest) -> Answer:
        """The answer; raises CallFailed for this unit's failure, BackendError when every later call would fail too."""
        ...


class Journal(Protocol):
    """The part of the journal that calls need."""

    def answers(self, slot: str) -> Sequence[CallRow]:
        """The successful calls of a slot."""
        ...

    def slots(self) -> Set[str]:
        """The slots that have a successful call."""
        ...

    def has_answer_of(self, model: str) -> bool:
        """Whether this very model has answered any call."""
        ...


class Recorder(Protocol):
    """The part of the writer that calls need."""

    async def record(self, call: FinishedCall, texts: Sequence[str], files: Sequence[bytes] = ()) -> CallRow:
        """Commits a finished call with the texts and images that it names; it is durable when this returns."""
        ...


@frozen(kw_only=True)
class Records:
    """
    Where calls are recorded and found again; the first `inherited` are those of the run that this one was forked from.

    `seen` gets each call that was recorded, `keep` its texts, and `leave` a question that waits for people to answer.
    A log that another release has written to may be `reworded`: a question has its answer there by its slot.
    """

    journal: Journal
    recorder: Recorder
    texts: Texts
    inherited: int = 0
    reworded: bool = False
    repeats: Repeats | None = None
    seen: Callable[[CallRow], None] = field(default=lambda row: None)
    keep: Callable[[CallRef, Exchange], None] = field(default=lambda ref, exchange: None)
    leave: Callable[[FinishedCall, ChatRequest], None] = field(default=lambda call, request: None)


@frozen(kw_only=True)
class Means:
    """What lets calls through: places for each role, the purse, and that none of `stops` says that the run ends."""

    at_once: Mapping[Role, int]
    purse: Purse = field(factory=lambda: Purse((), {}))
    in_flight: InFlight = field(factory=InFlight)
    stops: Sequence[Callable[[], bool]] = ()

    def reached(self) -> Reached | None:
        """Why nothing is left of what may be used; None while there is."""
        return self.purse.reached

    def stopping(self) -> bool:
        """Whether nothing more begins."""
        return self.purse.reached is not None or any(stop() for stop in self.stops)


class Seats:
    """
    Places for calls in flight, first come first served.

    A call that had one `before` gets the next one; a call that comes `last` waits until no other does.
    """

    def __init__(self, count: int) -> None:
        self._free = count
        self._before: deque[asyncio.Future[None]] = deque()
        self._queue: deque[asyncio.Future[None]] = deque()
        self._last: deque[asyncio.Future[None]] = deque()

    async def enter(self, *, before: bool = False, last: bool = False) -> None:
        """Wait for a seat, which `leave` gives back; raises NotStarted when those who come last are sent away."""
        if self._free:  # then no call waits
            self._free -= 1
            return
        seat: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        (self._before if before else self._last if last else self._queue).append(seat)
        try:
            await seat
        except asyncio.CancelledError:
            if seat.done() and not seat.cancelled() and seat.exception() is None:
                self.leave()  # who was sent away never had one
            raise

    def leave(self) -> None:
        """Give a seat to the next in line."""
        self._free += 1
        while self._free and (queue := self._before or self._queue or self._last):
            seat = queue.popleft()
            if not seat.done():
                self._free -= 1
                seat.set_result(None)

    def send_away(self) -> None:
        """Those who came last and still wait get no seat."""
        while self._last:
            seat = self._last.popleft()
            if not seat.done():
                seat.set_exception(NotStarted())


# How late a call that waits may notice that the run is to stop.
_LOOK_EVERY = 0.2


class Held:
    """
    One call's seat: given back while the call waits, so that another can be made.

    A call ahead of its time keeps its seat, because it would not get it back; so does a call that holds something
    that others wait for. `stopped` says that a wait was broken off because the run is stopping.
    """

    def __init__(self, seats: Seats, in_flight: InFlight, stopping: Callable[[], bool], *, last: bool = False) -> None:
        self.stopped = False
        self._seats = seats
        self._in_flight = in_flight
        self._stopping = stopping
        self._last = last
        self._inside = False

    async def __aenter__(self) -> Self:
        await self._seats.enter(last=self._last)
        self._came_in()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._inside:
            self._went_out()

    async def may_try_again(self, failed: Try) -> bool:
        """A seat limits no tries."""
        return True

    async def rest(self, wait: Wait, sleep: Callable[[], Awaitable[object]]) -> bool:
        """Sleeps while others have the seat; false when the run stops meanwhile."""
        keeps = self._last or wait.holds
        self._in_flight.waits(wait)
        self._in_flight.waiting += 1
        if not keeps:
            self._went_out()
        try:
            self.stopped = not await self._slept(sleep)
        finally:
            self._in_flight.waiting -= 1
        if self.stopped:
            return False
        if not keeps:
            await self._seats.enter(before=True)
            self._came_in()
        return True

    async def _slept(self, sleep: Callable[[], Awaitable[object]]) -> bool:
        """Whether it could sleep to its end: a wait of minutes must not keep a run from stopping."""
        if self._stopping():
            return False
        sleeping = asyncio.ensure_future(sleep())
        try:
            while not sleeping.done():
                await asyncio.wait((sleeping,), timeout=_LOOK_EVERY)
                if not sleeping.done() and self._stopping():
                    return False
            await sleeping
            return True
        finally:
            sleeping.cancel()
            await asyncio.gather(sleeping, return_exceptions=True)

    def _came_in(self) -> None:
        self._inside = True
        self._in_flight.count += 1

    def _went_out(self) -> None:
        self._inside = False
        self._in_flight.count -= 1
        self._seats.leave()


class LiveCalls:
    """Calls against real models, each recorded before its answer can be seen."""

    def __init__(
        self, models: Mapping[Role, ChatModel], records: Records, means: Means, *, ask_again: bool = False
    ) -> None:
        self._models = models
        self._records = records
        self._means = means
        self._ask_again = ask_again
        self._slots = records.journal.slots()
        self._seats = {role: Seats(count) for role, count in means.at_once.items()}
        self._early: dict[str, _Early] = {}
        self._may_ask_ahead = False
        self._answering: set[str] = set()
        self._under_way: Counter[str] = Counter()
        self._ended = asyncio.Event()

    async def ask(self, role: Role, request: ChatRequest) -> Answer:
        """The answer, from the journal if it is there."""
        asked = Asked(role, request, self._models[role].identity, recorded_request(request))
        known = self._known(asked)
        if known is None:
            known = await self._repeated(asked) or await self._early_answer(asked)
        if known is None:
            with bound(place=request.slot):
                return await self._made(asked)
        if self._records.repeats is not None:
            self._records.repeats.asked_for(request.slot, asked.digest)
        return known

    def agent_asks(self, slot: str) -> None:
        """The agent whose attempt is made here makes a call of its own: that is what counts, and not the attempt."""
        self._means.purse.attempt_asks(slot)

    async def _early_answer(self, asked: Asked) -> Answer | None:
        """The answer that the same question has had, or is about to have, ahead of its time."""
        early = self._early.pop(asked.request.slot, None)
        if early is None or early.asked != asked:
            return None
        # Not awaited itself: if this one is cancelled, that call goes on and is recorded.
        await asyncio.wait((early.answer,))
        # A call that failed ahead of its time is made again, as if it were the first.
        failed = early.answer.cancelled() or early.answer.exception() is not None
        return None if failed else early.answer.result()

    async def ask_ahead(self, role: Role, request: ChatRequest) -> Answer:
        """The answer to a question that may never be asked, when no other call wants the place."""
        asked = Asked(role, request, self._models[role].identity, recorded_request(request))
        known = self._known(asked)
        if known is not None:
            return known
        earlier = self._repeatable(asked)
        if earlier is not None:  # whoever asks will have it, too
            return answer_of(earlier, self._records.texts)
        if not self._may_ask_ahead:
            raise NotStarted
        answer = asyncio.ensure_future(self._made(asked, ahead=True))
        self._early[request.slot] = _Early(asked, answer)
        # Shielded: once begun it is paid for, so it is let finish and recorded whoever stops waiting.
        return await asyncio.shield(answer)

    def begin_ahead(self) -> None:
        """Questions may be put ahead from now on; earlier answers that were never asked for are waste."""
        self._early.clear()
        self._may_ask_ahead = True

    def no_more_ahead(self) -> None:
        """Questions that were put ahead and still wait for a place are dropped."""
        self._may_ask_ahead = False
        for seats in self._seats.values():
            seats.send_away()

    async def _repeated(self, asked: Asked) -> Answer | None:
        """The answer that the same request has had elsewhere in the run, if it may serve again."""
        earlier = self._repeatable(asked)
        if earlier is None:
            return None
        row = await self._record(repeating_call(asked, earlier), [], [])
        return answer_of(row, self._records.texts)

    def _repeatable(self, asked: Asked) -> CallRow | None:
        if self._records.repeats is None:
            return None
        earlier = self._records.repeats.find(asked.request, asked.digest)
        if earlier is None or isinstance(self._records.texts.text(earlier.call.response or ""), ErasedText):
            return None
        return earlier

    async def _made(self, asked: Asked, *, ahead: bool = False) -> Answer:
        role, request = asked.role, asked.request
        model = self._models[role]
        texts = [message.content for message in request.messages]
        images = [image.data for message in request.messages for image in message.images]
        try:
            reply = await self._complete(asked, model, ahead=ahead)
        except CutShort as cut:  # what it has used is recorded; whoever goes on asks again
            if cut.failure.tries:
                await self._record(failed_call(asked, cut.failure, ahead=ahead), texts, images)
            raise NotStarted from cut
        except Unanswered:
            self._records.leave(unanswered_call(asked), request)
            raise
        except CallFailed as failure:
            # A 400 may be about this one request: then the run must not stop for it.
            if failure.perhaps_request and await self._answers_others(model.identity):
                failure.kind = "bad_request"
            await self._record(failed_call(asked, failure, ahead=ahead), texts, images)
            raise _as_backend_error(failure, role, request.slot) if failure.systemic else failure from failure.__cause__
        did = [steps_text(reply.steps)] if reply.steps else []
        call = answered_call(asked, reply, ahead=ahead)
        row = await self._record(call, [*texts, recorded_answer(reply), *did], images)
        ref = row.ref
        self._records.keep(ref, Exchange(tuple(texts), reply.text, reply.steps))
        return Answer(reply.text, reply.finish, ref, reply.tool_calls, reply.steps, reply.usage)

    async def _complete(self, asked: Asked, model: ChatModel, *, ahead: bool) -> ChatReply:
        means = self._means
        self._under_way[model.identity] += 1
        try:
            held = Held(self._seats[asked.role], means.in_flight, means.stopping, last=ahead)
            async with held:  # it ends before the answer is durable: the next call need not wait for that
                if means.stopping():
                    raise NotStarted
                try:
                    reply = await self._paid(asked, model, held, ahead=ahead)
                except CallFailed as failure:
                    if held.stopped:
                        raise CutShort(failure) from failure
                    raise
            self._answering.add(model.identity)
            return reply
        finally:
            self._under_way[model.identity] -= 1
            self._ended.set()
            # Whoever waited has been woken; who comes later waits for the next end.
            self._ended = asyncio.Event()

    async def _paid(self, asked: Asked, model: ChatModel, held: Held, *, ahead: bool) -> ChatReply:
        """The answer, as far as the budget covers it; what is asked ahead is no reason to pause, nor to wait."""
        purse, role, request = self._means.purse, asked.role, asked.request
        if not purse.accounts:
            return await model.complete(request, held)
        ask = partial(model.complete, request)
        if isinstance(model, Fronting):  # it waits for calls of its own, which are paid one by one
            return await Attempt(purse, role, request.slot, held).pay(ask)
        return await Payment(purse, role, request.slot, held, self._bound(asked), ahead=ahead).pay(ask)

    def _bound(self, asked: Asked) -> Bound:
        """The most that one try of a question can use."""
        texts = sum(len(message.content.encode()) for message in asked.request.messages)
        return bound_of(asked.recorded, texts, self._means.purse.tariffs[asked.role].most_output)

    async def _answers_others(self, model: str) -> bool:
        """Whether a model takes other questions; the calls under way are waited for, so that no race decides it."""
        if self._records.journal.has_answer_of(model):
            return True
        while model not in self._answering and self._under_way[model]:
            await self._ended.wait()
        return model in self._answering

    async def _record(self, call: FinishedCall, texts: Sequence[str], images: Sequence[bytes]) -> CallRow:
        row = await self._records.recorder.record(call, texts, images)
        if self._records.repeats is not None:
            self._records.repeats.add(row)
        self._records.seen(row)
        return row

    def _known(self, asked: Asked) -> Answer | None:
        slot, digest = asked.request.slot, asked.digest
        # Most slots are new, and this saves a query for each of them.
        if slot not in self._slots:
            return None
        rows = self._records.journal.answers(slot)
        same = [row for row in rows if row.call.request_digest == digest]
        for row in reversed(same):  # the last one is what was used where a question was asked again
            if not (self._ask_again and row.call.finish == "length"):
                with suppress(TextErased):  # it is asked again
                    return answer_of(row, self._records.texts)
        # past a fork point another request is a new call, and what was asked ahead may have been the wrong question
        own = [row for row in rows if row.n > self._records.inherited and not row.call.ahead and row not in same]
        kept = [row for row in own if self._records.reworded and row.call.model == asked.model]
        if kept and not self._ask_again:
            # The release may have reworded a prompt: the answer was paid for, and its place is the question's.
            return answer_of(kept[-1], self._records.texts)
        if own and not self._ask_again:
            raise Divergence(
                f"at {slot} the journal holds the answer to another request ({own[-1].call.request_digest[:12]}, "
                f"model {own[-1].call.model}) than the one asked now ({digest[:12]})",
                hint="a prompt, a model or the data changed since; `--ask-again` asks again from here on",
            )
        return None


def _as_backend_error(failure: CallFailed, role: Role, slot: str) -> BackendError:
    return BackendError(
        f"the {role} model at {slot}: {failure.message}",
        kind=failure.kind,
        status=failure.status,
        request_id=failure.request_id,
        hint=failure.hint,
    )


class Texts(Protocol):
    """The texts of a log, by digest."""

    def text(self, digest: str) -> str:
        """The text with this digest."""
        ...


@frozen
class _Early:
    """A question that was put before anybody asked it."""

    asked: Asked
    answer: asyncio.Future[Answer]


def answer_of(row: CallRow, texts: Texts) -> Answer:
    """A recorded answer, read back."""
    assert row.call.response is not None
    recorded = texts.text(row.call.response)
    if isinstance(recorded, ErasedText):
        raise TextErased(f"the answer to {row.call.slot} was erased")
    text, calls = read_answer(recorded, row.call.finish)
    steps = () if row.call.trace is None else steps_of(texts.text(row.call.trace))
    call = row.call
    usage = Usage(
        input=call.input_tokens, output=call.output_tokens, cached=call.cached_tokens, reasoning=call.reasoning_tokens
    )
    return Answer(text, cast(FinishReason, call.finish), row.ref, calls, steps, usage)
