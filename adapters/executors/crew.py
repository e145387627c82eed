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
from typing import Protocol

from attrs import define, field

from skillopt_es.adapters.executors.travels import (
    Abandon,
    Answer,
    Answered,
    Broke,
    End,
    Escaped,
    FailedCall,
    Finished,
    Lease,
    LetGo,
    Place,
    Question,
    Report,
    Thrown,
    Told,
    Unit,
    place_digest,
    unit_digest,
)
from skillopt_es.errors import BackendError, SkillOptError
from skillopt_es.events.values import Failed, SkillTree
from skillopt_es.ports import Ask, Asking, AsksJudge, CallFailed, Episode, Item, NotStarted

_LOOK_EVERY = 0.2
_MOST_DEATHS = 2
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
                episode = await _Conversation(worker, unit, asking(), self.tally).through(skill)
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
    """One attempt under one lease, between a worker and the target."""

    worker: Worker
    unit: Unit
    ask: Ask
    tally: Tally
    raised: dict[int, BaseException] = field(factory=dict)
    open: set[asyncio.Task[None]] = field(factory=set)

    async def through(self, skill: SkillTree) -> Episode:
        """To its end. Calls that have begun when a worker dies are let finish: they are paid for, and recorded."""
        try:
            await self.worker.knows(skill)
            self.worker.tell(self.unit)
            while True:
                report = await self.worker.hear()
                if not isinstance(report, Report) or report.lease != self.unit.lease:
                    self.tally.late += 1
                elif isinstance(report.said, Question):
                    self._begin(self._answered(report.said))
                else:
                    return self._came_to(report.said)
        except asyncio.CancelledError:
            for task in self.open:
                task.cancel()
            raise
        finally:
            await self._settled()

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self.open.add(task)
        task.add_done_callback(self.open.discard)

    async def _answered(self, question: Question) -> None:
        answer = await self._answer(question)
        self.worker.tell(Answered(self.unit.lease, question.number, answer))

    async def _answer(self, question: Question) -> Answer:
        try:
            if question.schema is None:
                return await self.ask(question.messages, **question.options)
            assert isinstance(self.ask, AsksJudge)
            most = question.options["max_tokens"]
            assert most is not None
            return await self.ask.judge(question.messages, max_tokens=most, schema=question.schema)
        except CallFailed as error:
            self.raised[question.number] = error
            return FailedCall.of(error)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 -- raised again once the attempt has ended by it
            self.raised[question.number] = error
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
                raise SkillOptError(ended.message, hint=ended.hint) if ended.ours else RuntimeError(ended.message)

    async def _settled(self) -> None:
        """Nothing of it goes on: its calls end by themselves, for whoever gives up now has paid for them."""
        while self.open:
            await asyncio.wait(self.open)


def _not_measured(deaths: int) -> Episode:
    said = f"{deaths} workers died while they tried it"
    return Episode(outcome=Failed("worker", said), task="", records=(), turns=0, failure="worker", detail=said)


def _unusable(message: str) -> BackendError:
    return BackendError(
        message,
        kind="config",
        hint="see that every node has this version of skillopt-es, the environment and its data (docs/scale.md)",
    )
