"""Many jobs at once in one event loop, results in the order of the plan."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Generic, TypeVar, cast

from attrs import frozen

from skillopt_es.events.values import SkillTree
from skillopt_es.ports import (
    Asking,
    AsyncCall,
    Environment,
    Episode,
    ExecutorSettings,
    Item,
    NotStarted,
    Unanswered,
    Workplace,
)

T = TypeVar("T")
_WAITING = object()


def open_executor(settings: ExecutorSettings) -> LocalExecutor:
    """The executor of this process."""
    return LocalExecutor(settings.stopping)


@frozen
class Here:
    """Attempts that are made in this process."""

    environment: Environment

    async def attempt(self, item: Item, skill: SkillTree, asking: Asking, *, seed: int, slot: str) -> Episode:
        """The environment's own."""
        return await self.environment.attempt(item, skill, asking(None), seed=seed)


class LocalExecutor:
    """Runs jobs on the current event loop; once `stopping` answers true no further job starts."""

    def __init__(self, stopping: Callable[[], bool] = lambda: False) -> None:
        self._stopping = stopping

    async def stream(self, jobs: Sequence[AsyncCall[T]], *, workers: int) -> AsyncGenerator[list[T], None]:
        """Results in plan order; when stopping or after a failure, the started jobs finish and no other begins."""
        pool: _Pool[T] = _Pool(jobs, self._stopping)
        tasks: list[asyncio.Task[None]] = []
        try:
            for _ in range(min(workers, len(jobs))):
                tasks.append(asyncio.create_task(pool.work()))
                await asyncio.sleep(0)  # one after the other: the first request leaves while the next is prepared
            while True:
                await pool.changed.wait()
                pool.changed.clear()
                ready = pool.take()
                if ready:
                    yield ready
                if not all(task.done() for task in tasks):
                    continue  # also after a failure: what was started is paid for, so it is let finish
                if pool.failure is not None:
                    raise pool.failure
                if not pool.has_ready():
                    if pool.unanswered and not self._stopping():
                        raise Unanswered(pool.unanswered)
                    return
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def hands(self, workplace: Workplace) -> Here:
        """This process."""
        return Here(workplace.environment)

    async def aclose(self) -> None:
        """Nothing to give back."""


class _Pool(Generic[T]):
    """The shared state of one stream's workers."""

    def __init__(self, jobs: Sequence[AsyncCall[T]], stopping: Callable[[], bool]) -> None:
        self._jobs = jobs
        self._stopping = stopping
        self._next = iter(range(len(jobs)))
        self._results: list[object] = [_WAITING] * len(jobs)
        self._taken = 0
        self.changed = asyncio.Event()
        self.failure: BaseException | None = None
        self.unanswered = 0
        if not jobs:
            self.changed.set()

    async def work(self) -> None:
        """Takes jobs until there are none left."""
        try:
            for index in self._next:
                if self._stopping() or self.failure is not None:
                    return
                try:
                    self._results[index] = await self._jobs[index]()
                except Unanswered as waiting:  # the others can be asked all the same
                    self.unanswered += waiting.questions
                    continue
                if index == self._taken:
                    self.changed.set()
        except NotStarted:
            return
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001  # handed to the consumer of the stream, which raises it
            self.failure = self.failure or error
        finally:
            asyncio.get_running_loop().call_soon(self.changed.set)

    def has_ready(self) -> bool:
        """Whether the next result in order is there."""
        return self._taken < len(self._results) and self._results[self._taken] is not _WAITING

    def take(self) -> list[T]:
        """The results that are next in order."""
        start = self._taken
        while self.has_ready():
            self._taken += 1
        ready = self._results[start : self._taken]
        self._results[start : self._taken] = [None] * len(ready)  # let go of what was handed on
        return cast(list[T], ready)
