"""
A crew: workers elsewhere that make attempts for the writer, each with one environment open.

Nothing is tried again but here, where it is known what a try has cost. A worker that dies gives its lease back: calls
that have begun are let finish and recorded, the attempt is made anew by another worker, and what was answered is not
asked again. An item whose workers die twice on their own is not measured. A report that comes late, from a worker that
was given up, belongs to no lease any more and is dropped.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Protocol

from attrs import define, evolve, field

from skillopt_es.adapters.executors.travels import (
    Abandon,
    Answer,
    Answered,
    Broke,
    End,
    Errand,
    Escaped,
    FailedCall,
    Finished,
    Lease,
    LetGo,
    OwnQuestion,
    Place,
    Question,
    Ran,
    Report,
    Thrown,
    Told,
    Unit,
    place_digest,
    unit_digest,
)
from skillopt_es.errors import BackendError, SkillOptError
from skillopt_es.events.values import Failed, SkillTree
from skillopt_es.ports import (
    Ask,
    Asking,
    AsksJudge,
    AsyncCall,
    AttemptLost,
    CallFailed,
    ChatReply,
    ChatRequest,
    Episode,
    Item,
    NotStarted,
    OwnCall,
)

_LOOK_EVERY = 0.2  # seconds: a run that stops while no worker is free ends this much later at most
_MOST_DEATHS = 2  # one death may be the machine's; an item on which two workers died would take the third one, too
_MOST_FALSE_STARTS = 10  # in a row, with no worker that came to an attempt's end between them


class WorkerLost(Exception):
    """A worker is gone; `by_itself` says that only its process ended, and not the machine that it was on."""

    def __init__(self, message: str, *, by_itself: bool) -> None:
        super().__init__(message)
        self.by_itself = by_itself


class WorkerRefused(Exception):
    """A worker that must not be used: it has other software, another environment or other data than the run."""


class Worker(Protocol):
    """One process elsewhere."""

    async def knows(self, skill: SkillTree) -> None:
        """Sees to it that the worker has this skill; raises WorkerLost, or BackendError when all of them are gone."""
        ...

    def tell(self, told: Told) -> None:
        """Tells it something; what no longer reaches it is lost, and `hear` says so."""
        ...

    async def hear(self) -> object:
        """What it says next; raises WorkerLost when it is gone, BackendError when all of them are."""
        ...

    def dismiss(self) -> None:
        """Ends the process; waits for nothing."""
        ...


Hire = Callable[[], Awaitable[Worker]]
"""Starts a worker and waits until its environment is open; raises WorkerLost, WorkerRefused or BackendError."""


@define
class Tally:
    """What became of leases, for those who want to know."""

    attempts: int = 0
    deaths: int = 0
    late: int = 0
    poisoned: int = 0


class Crew:
    """So many workers, hired when the first attempt is made and replaced when they are lost."""

    def __init__(
        self,
        place: Place,
        hire: Hire,
        *,
        size: int,
        stopping: Callable[[], bool],
        most_deaths: int = _MOST_DEATHS,
    ) -> None:
        self.tally = Tally()
        self._place, self._hire, self._size, self._stopping = place_digest(place), hire, size, stopping
        self._most_deaths = most_deaths
        self._agent = place.agent is not None
        self._free: deque[Worker] = deque()
        self._waiting: deque[asyncio.Future[Worker]] = deque()
        self._all: list[Worker] = []
        self._hiring: set[asyncio.Task[None]] = set()
        self._looking: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self._false_starts = 0

    @property
    def size(self) -> int:
        """How many workers there are now."""
        return len(self._all)

    async def attempt(self, item: Item, skill: SkillTree, asking: Asking, *, seed: int, slot: str) -> Episode:
        """One attempt, made by whoever is free; raises what the target raised, or what the environment did."""
        digest = unit_digest(item.id, skill.hash, seed, self._place)
        deaths = tries = 0
        while True:
            worker = await self._worker()
            tries += 1
            self.tally.attempts += 1
            unit = Unit(Lease(slot, digest, tries), item.id, seed, skill.hash)
            try:
                talk = _Conversation(worker, unit, self.tally)
                episode = await talk.through(skill, asking(talk if self._agent else None))
            except WorkerLost as lost:
                self.tally.deaths += 1
                self._replace(worker)
                deaths += lost.by_itself
                if deaths >= self._most_deaths:
                    self.tally.poisoned += 1
                    return _not_measured(deaths)
            except asyncio.CancelledError:
                self._replace(worker)
                raise
            except BaseException:
                await self._freed(worker)
                raise
            else:
                self._false_starts = 0
                self._give_back(worker)
                return episode

    async def close(self) -> None:
        """Sends everybody home."""
        tasks = [*self._hiring, *([] if self._looking is None else [self._looking])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for worker in self._all:
            worker.dismiss()
        self._all.clear()
        self._free.clear()

    async def _worker(self) -> Worker:
        """One that is free; waits for it, unless the run stops or nobody can be had."""
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
            for _ in range(self._size):
                self._seek()
        if self._failure is not None:
            raise self._failure
        if self._stopping():
            raise NotStarted
        if self._free:
            return self._free.popleft()
        # Each is woken for a worker of its own: to wake all who wait each time would cost the square of their number.
        waiting: asyncio.Future[Worker] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        try:
            return await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled() and waiting.exception() is None:
                self._give_back(waiting.result())
            raise

    async def _look(self) -> None:
        """Sends those away who wait for a worker when the run stops."""
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            if self._waiting and self._stopping():
                self._send_away(NotStarted())

    def _send_away(self, why: BaseException) -> None:
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_exception(why)

    def _seek(self) -> None:
        task = asyncio.create_task(self._hired())
        self._hiring.add(task)
        task.add_done_callback(self._hiring.discard)

    async def _hired(self) -> None:
        """Hires one worker; what keeps it from working would keep every other one from it, too."""
        while self._failure is None:
            try:
                worker = await self._hire()
            except WorkerLost as lost:
                self._false_starts += lost.by_itself
                if self._false_starts >= _MOST_FALSE_STARTS:
                    self._fails(_unusable(f"no worker stays: {lost}"))
            except WorkerRefused as refused:
                self._fails(_unusable(f"a worker cannot be used: {refused}"))
            except BackendError as error:
                self._fails(error)
            else:
                self._all.append(worker)
                self._give_back(worker)
                return

    def _fails(self, failure: Exception) -> None:
        self._failure = self._failure or failure
        self._send_away(self._failure)

    def _give_back(self, worker: Worker) -> None:
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(worker)
                return
        self._free.append(worker)

    async def _freed(self, worker: Worker) -> None:
        """A worker whose attempt came to nothing for a reason of ours is free once it has let go of it."""
        worker.tell(Abandon())
        try:
            while not isinstance(await worker.hear(), LetGo):
                self.tally.late += 1
        except (WorkerLost, BackendError):
            self._replace(worker)
        else:
            self._give_back(worker)

    def _replace(self, worker: Worker) -> None:
        if worker in self._all:
            self._all.remove(worker)
        worker.dismiss()
        self._seek()


@define
class _Conversation:
    """One attempt under one lease, between a worker and the target, whose agent may work there."""

    worker: Worker
    unit: Unit
    tally: Tally
    raised: dict[int, BaseException] = field(factory=dict)
    open: set[asyncio.Task[None]] = field(factory=set)
    errands: dict[int, _Errand] = field(factory=dict)
    count: int = 0

    async def through(self, skill: SkillTree, ask: Ask) -> Episode:
        """To its end. Calls that have begun when a worker dies are let finish: they are paid for, and recorded."""
        try:
            await self.worker.knows(skill)
            self.worker.tell(self.unit)
            while True:
                report = await self.worker.hear()
                if not isinstance(report, Report) or report.lease != self.unit.lease:
                    self.tally.late += 1
                    continue
                match report.said:
                    case Question() as asked:
                        self._begin(self._answered(asked.number, partial(_asked, ask, asked)))
                    case OwnQuestion(errand, number, request) if errand in self.errands:
                        self._begin(self._answered(number, partial(self.errands[errand].asked, request)))
                    case Ran(errand, result) if errand in self.errands:
                        self._ran(self.errands[errand].answer, result)
                    case OwnQuestion() | Ran():
                        self.tally.late += 1
                    case ended:
                        return self._came_to(ended)
        except asyncio.CancelledError:
            for task in self.open:
                task.cancel()
            raise
        finally:
            for each in self.errands.values():
                each.lost()
            await self._settled()

    async def answer(self, request: ChatRequest, own: OwnCall | None) -> ChatReply:
        """What the target's agent answers on the worker; raises AttemptLost when that is gone before it has."""
        if request.skill is not None:
            await self._has(request.skill)
        self.count += 1
        number = self.count
        errand = self.errands[number] = _Errand(request.slot, own)
        skill = "" if request.skill is None else request.skill.hash
        plain = evolve(request, skill=None, elsewhere=None)
        self.worker.tell(Errand(self.unit.lease, number, plain, skill))
        try:
            return await errand.answer
        finally:
            del self.errands[number]

    async def _has(self, skill: SkillTree) -> None:
        try:
            await self.worker.knows(skill)
        except WorkerLost as lost:
            raise AttemptLost("transport", _GONE) from lost

    def _ran(self, waiting: asyncio.Future[ChatReply], result: ChatReply | FailedCall | Escaped | Broke) -> None:
        match result:
            case ChatReply():
                waiting.set_result(result)
            case FailedCall():
                waiting.set_exception(result.error())
            case Escaped(question):
                waiting.set_exception(self.raised[question])
            case Broke():
                waiting.set_exception(_broke(result))

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self.open.add(task)
        task.add_done_callback(self.open.discard)

    async def _answered(self, number: int, asked: AsyncCall[ChatReply]) -> None:
        self.worker.tell(Answered(self.unit.lease, number, await self._answer(number, asked)))

    async def _answer(self, number: int, asked: AsyncCall[ChatReply]) -> Answer:
        try:
            return await asked()
        except CallFailed as error:
            self.raised[number] = error
            return FailedCall.of(error)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 -- raised again once the attempt has ended by it
            self.raised[number] = error
            return Thrown(stops=not isinstance(error, Exception))

    def _came_to(self, ended: End) -> Episode:
        match ended:
            case Finished(episode):
                return episode
            case Escaped(number):
                raise self.raised[number]
            case FailedCall():
                raise ended.error()
            case Broke():
                raise _broke(ended)

    async def _settled(self) -> None:
        """Nothing of it goes on: its calls end by themselves, for whoever gives up now has paid for them."""
        while self.open:
            await asyncio.wait(self.open)


@define
class _Errand:
    """What the target's agent does on a worker: its answer, once it is there, and who makes the calls of its own."""

    slot: str
    own: OwnCall | None
    answer: asyncio.Future[ChatReply] = field(init=False)

    @answer.default
    def _(self) -> asyncio.Future[ChatReply]:
        return asyncio.get_running_loop().create_future()

    async def asked(self, request: ChatRequest) -> ChatReply:
        """A call of its own, at this place of the run and no other."""
        assert self.own is not None
        return await self.own(evolve(request, slot=self.slot))

    def lost(self) -> None:
        """Nobody does it any more."""
        if not self.answer.done():
            self.answer.set_exception(AttemptLost("transport", _GONE))


_GONE = "the agent is gone with the worker on which it was at work"


async def _asked(ask: Ask, question: Question) -> ChatReply:
    """The answer of the target, or of the judge."""
    if question.schema is None:
        return await ask(question.messages, **question.options)
    assert isinstance(ask, AsksJudge)
    most = question.options["max_tokens"]
    assert most is not None
    return await ask.judge(question.messages, max_tokens=most, schema=question.schema)


def _broke(ended: Broke) -> Exception:
    return SkillOptError(ended.message, hint=ended.hint) if ended.ours else RuntimeError(ended.message)


def _not_measured(deaths: int) -> Episode:
    said = f"{deaths} workers died while they tried it"
    return Episode(outcome=Failed("worker", said), task="", records=(), turns=0, failure="worker", detail=said)


def _unusable(message: str) -> BackendError:
    return BackendError(
        message,
        kind="config",
        hint="see that every node has this version of skillopt-es, the environment and its data (docs/scale.md)",
    )
