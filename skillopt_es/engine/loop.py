"""
The loop: plan, perform, append, fold, until the plan is empty.

On an empty log it is a new run, on any other a resume; there is no other resume code and no checkpoint. What a task
needs was all in the state when it began, and its events come in the order of the plan. A question to the optimizer has
one parsed answer; a useless one may be asked for once more, with the reason.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Literal, Protocol, TypeVar

from attrs import evolve as replace
from attrs import frozen

from skillopt_es.config import RunConfig
from skillopt_es.engine.ahead import Ahead
from skillopt_es.engine.algorithm import Algorithm, Consulted
from skillopt_es.engine.algorithms import algorithm_of, fold
from skillopt_es.engine.attempts import RolloutPorts, jobs_at_once, run_rollouts
from skillopt_es.engine.budget import Reached
from skillopt_es.engine.calls import Answer, Calls
from skillopt_es.engine.evaluations import score
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.engine.observers import Observer
from skillopt_es.engine.steering import Orders, events_of, is_due
from skillopt_es.engine.work import AddUp, Decide, Derived, Emission, Questions, Rollouts, Work
from skillopt_es.errors import BackendError, ConfigError, Divergence, Interrupted
from skillopt_es.events.catalog import MILESTONES, Event, RolloutCompleted, RunPaused
from skillopt_es.events.places import Place
from skillopt_es.events.values import CallRef, Json
from skillopt_es.events.writer import RunWriter
from skillopt_es.ports import AsyncCall, CallFailed, ChatRequest, Executor, Message, Unanswered
from skillopt_es.projections.state import AnyState
from skillopt_es.replies.json_reader import Unusable

# How many batches the state may be ahead of the disk.
# One was not enough: with 64 workers a run took 1.14 times the ideal, with eight 1.11.
_MOST_AHEAD = 8


class Log(Protocol):
    """The part of the writer that the loop needs."""

    async def append(self, events: Sequence[Event], *, expected: int, texts: Sequence[str] = ()) -> int:
        """Commits the events after `expected`; the new head."""
        ...

    async def anchor(self) -> None:
        """Notes the head outside the log."""
        ...


@frozen(kw_only=True)
class Control:
    """
    Who watches a session, and who changes or ends it from outside.

    `limited` gives the session other limits, and raises ConfigError for what cannot be promised. `stopping` is the
    process's own: that a budget is `reached` is a pause, and no interruption.
    """

    observer: Observer
    orders: Orders
    limited: Callable[[Mapping[str, Json]], None]
    stopping: Callable[[], bool]
    reached: Callable[[], Reached | None]


class Trainer:
    """One run in one process."""

    def __init__(
        self,
        *,
        log: Log,
        head: int,
        state: AnyState,
        config: RunConfig,
        rollouts: RolloutPorts,
        evidence: RecordedTexts,
        control: Control,
        ahead: Ahead | None,
    ) -> None:
        self._control = control
        self._orders = control.orders
        self._ahead = ahead
        self._log = log
        self._head = head
        self.state = state
        self._config = config
        self._algorithm = algorithm_of(state.started)
        self._rollouts = rollouts
        self._ports = Ports(calls=rollouts.calls, evidence=evidence, executor=rollouts.executor)
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def train(self) -> AnyState:
        """Goes on until the run is complete or paused; an error that stops the run is recorded and raised."""
        try:
            while self.state.status == "running":
                work = await self._next()
                if work is None:
                    break
                await self._perform(work)
                reached = self._control.reached()
                if reached is not None and self.state.status == "running":
                    await self._pause("budget", reached.message, key=reached.key)
                elif self._control.stopping() and self.state.status == "running":
                    raise Interrupted("stopped as asked; everything that was answered is recorded")
        except Interrupted as interrupted:
            if not self._orders.pausing():
                await self._pause("interrupt", interrupted.message)
                raise
            await self._steered()  # nobody was interrupted: a pause was ordered, and calls were told so
        except Unanswered as waiting:
            await self._pause("handoff", waiting_for(waiting.questions))
        except (BackendError, Divergence) as error:
            await self._pause("error", error.message, error.hint)
            raise
        finally:
            # In this order: what was asked ahead is recorded, then all events, and the anchor names their end.
            if self._ahead is not None:
                await self._ahead.settled()
            await self.settled()
            await self._log.anchor()
        return self.state

    async def _next(self) -> Work | None:
        """What the algorithm wants next, once what people have ordered is followed; nothing where that was a pause."""
        await self._steered()
        return self._algorithm.next_work(self.state, self._config) if self.state.status == "running" else None

    async def _steered(self) -> None:
        """Follows what was ordered, each order once; one that is not due yet waits on."""
        for asked in self._orders.waiting():
            if self.state.status != "running":
                return
            if asked.name not in self.state.steering.orders:
                if not is_due(asked, self.state):
                    continue
                try:
                    events = events_of(asked, self.state, self._config)
                    if asked.settings:
                        self._control.limited(asked.settings)
                except ConfigError as refused:
                    self._orders.refused(asked.name, f"{refused}{f'; {refused.hint}' if refused.hint else ''}")
                    continue
                await self.append(events)
                await self.settled()
            self._orders.followed(asked.name)

    async def _perform(self, work: Work) -> None:
        self._control.observer.planned(work, self.state)
        if self._ahead is not None:
            self._ahead.planned(work)
        if isinstance(work, Questions) or (isinstance(work, Decide) and work.reads_back):
            await self.settled()  # they read back what the log has of the trajectories
        # What it needs was all in the state when it began.
        if isinstance(work, Rollouts):
            found = run_rollouts(work, self._config, self._rollouts)
        else:
            found = derive(self._algorithm, work, self.state, self._config, self._ports)
        async with aclosing(found) as emissions:
            async for emission in emissions:
                await self.append(emission.events, emission.texts)

    async def append(self, events: Sequence[Event], texts: Sequence[str] = ()) -> None:
        """
        Folds the events and hands them to the log.

        The state may be a few batches ahead of the disk, so that the next calls need not wait for a commit. Nothing can
        be recorded before what led to it: the log's writer commits in the order in which it is asked.
        """
        await self._settled_to(_MOST_AHEAD - 1)
        states: list[AnyState] = []
        # Attempts come by the dozen, and are folded in a row, as where a log is read.
        attempts = all(isinstance(event, RolloutCompleted) for event in events)
        for row in [events] if attempts else [[event] for event in events]:
            self.state = fold(row, self.state)
            states += [self.state] * len(row)
        await self._hand_over(events, states, texts)

    async def begin(self, opening: Sequence[tuple[Event, AnyState]]) -> None:
        """The events that led to the state which this trainer was made with, each with the state after it."""
        await self._hand_over([event for event, _ in opening], [state for _, state in opening], ())

    async def _hand_over(self, events: Sequence[Event], states: Sequence[AnyState], texts: Sequence[str]) -> None:
        expected, self._head = self._head, self._head + len(events)
        self._waiting.append(asyncio.ensure_future(self._commit(events, states, texts, expected)))
        await asyncio.sleep(0)  # lets the commit take its place in the writer's queue

    async def settled(self) -> None:
        """Waits until every batch is durable; the first thing that went wrong is raised here."""
        await self._settled_to(0)

    async def _settled_to(self, most: int) -> None:
        while self._waiting and (len(self._waiting) > most or self._waiting[0].done()):
            first = self._waiting[0]
            # Not awaited itself: whoever is cancelled here must not cancel a commit.
            await asyncio.wait((first,))
            if first.exception() is not None:  # what follows it cannot have been written either
                waiting, self._waiting = self._waiting, deque()
                await asyncio.gather(*waiting, return_exceptions=True)
                await first
            self._waiting.popleft()

    async def _commit(
        self, events: Sequence[Event], states: Sequence[AnyState], texts: Sequence[str], expected: int
    ) -> None:
        await self._log.append(events, expected=expected, texts=texts)
        for seq, (event, state) in enumerate(zip(events, states, strict=True), start=expected + 1):
            self._control.observer.happened(seq, event, state)
        if any(isinstance(event, MILESTONES) for event in events):
            await self._log.anchor()

    async def _pause(
        self, reason: Literal["interrupt", "error", "handoff", "budget"], message: str, hint: str = "", key: str = ""
    ) -> None:
        await self.append([RunPaused(reason=reason, message=message, hint=hint, key=key)])
        await self.settled()


@frozen(kw_only=True)
class Running:
    """A trainer that may go on, with what it works through."""

    trainer: Trainer
    rollouts: RolloutPorts
    writer: RunWriter
    reached: Callable[[], Reached | None]
    """Why the budget lets nothing start any more; empty as long as it does."""


def waiting_for(questions: int) -> str:
    """What a run says that pauses for answers from outside."""
    return "1 question waits for its answer" if questions == 1 else f"{questions} questions wait for their answers"


@frozen(kw_only=True)
class Ports:
    """What derived work needs: answers, live or recorded, the texts of the log, and who does jobs side by side."""

    calls: Calls
    evidence: RecordedTexts
    executor: Executor


async def derive(
    algorithm: Algorithm[Any], work: Derived, state: AnyState, config: RunConfig, ports: Ports
) -> AsyncGenerator[Emission, None]:
    """What follows from the state, the log's texts and the optimizer's answers."""
    match work:
        case Questions(jobs):
            asked = [_question(algorithm, job, state, config, ports) for job in jobs]
            workers = jobs_at_once(config.gradient.analyst_workers)
            async with aclosing(ports.executor.stream(asked, workers=workers)) as stream:
                async for events in stream:
                    yield Emission(events)
        case AddUp(evaluation):
            yield Emission([score(evaluation, state, config)])
        case Decide(name):
            yield Emission([algorithm.decisions[name](state, config, ports.evidence)])


def _question(
    algorithm: Algorithm[Any], job: object, state: AnyState, config: RunConfig, ports: Ports
) -> AsyncCall[Event]:
    """One question to the optimizer, ready to be asked."""

    async def ask() -> Event:
        # Built only now: its texts are large, and of many questions only as many as there are workers are open.
        asking = algorithm.questions[type(job)](job, state, config, ports.evidence)
        again = config.optimizer.ask_again
        found = await consult(ports.calls, asking.request, asking.read, again=again, silence_fails=asking.silence_fails)
        return asking.stated(found)

    return ask


V = TypeVar("V")
_ITS_OWN_FAULT = frozenset({"context_length", "empty", "invalid_reply", "bad_request"})  # asking later would not help
_SILENT = frozenset({"empty", "invalid_reply"})
_CUT = Unusable("the reply was cut off at the length limit; make it much shorter")
_REPEATED = 300  # characters of a reply that was cut off: all of it would take room, and be taken up again


async def consult(
    calls: Calls,
    request: ChatRequest,
    read: Callable[[str], V | Unusable],
    *,
    again: bool,
    silence_fails: bool = False,
) -> Consulted[V]:
    """The optimizer's answer, read; with `again`, a useless one is asked for a second time."""
    made: tuple[CallRef, ...] = ()
    asked = request
    why = ""
    for last_chance in (False, True) if again else (True,):
        try:
            answer = await calls.ask("optimizer", asked)
        except CallFailed as failure:
            outage = failure.kind not in _ITS_OWN_FAULT or (silence_fails and failure.kind in _SILENT)
            return Consulted(value=None, failed=outage, why=f"{failure.kind}: {failure.message}", calls=made)
        # Also a useless answer was paid for: its event names both calls.
        made = (*made, answer.ref)
        found = _CUT if answer.finish == "length" else read(answer.text)
        if not isinstance(found, Unusable):
            return Consulted(value=found, calls=made)
        why = found.why
        if not last_chance:
            asked = asked_again(request, answer, why)
    return Consulted(value=None, why=why, calls=made)


def asked_again(request: ChatRequest, answer: Answer, why: str) -> ChatRequest:
    """The same question with the useless reply and what was wrong with it."""
    reason = Message("user", f"This reply cannot be used: {why}. Answer the same question again.")
    return replace(
        request,
        slot=Place(request.slot).again,
        messages=(*request.messages, Message("assistant", _repeated(answer)), reason),
    )


def _repeated(answer: Answer) -> str:
    if answer.finish == "length" and len(answer.text) > _REPEATED:
        return f"{answer.text[:_REPEATED]} …"
    return answer.text or "(nothing)"
