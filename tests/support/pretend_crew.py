"""Workers of a crew in this process: everything that travels is pickled, and they die when a test says so."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TypeVar

from attrs import define, field

from skillopt_es.adapters.executors.bench import Bench
from skillopt_es.adapters.executors.crew import Crew, WorkerLost, WorkerRefused
from skillopt_es.adapters.executors.local import LocalExecutor
from skillopt_es.adapters.executors.travels import (
    Abandon,
    Answered,
    Errand,
    Lease,
    LineClosed,
    Pack,
    Place,
    Told,
    Unit,
    pack_of,
    place_of,
)
from skillopt_es.events.values import SkillTree
from skillopt_es.ports import AsyncCall, ExecutorSettings, Hands, Workplace

T = TypeVar("T")


def sent(value: T) -> T:
    """A value as it arrives elsewhere."""
    arrived: T = pickle.loads(pickle.dumps(value))
    return arrived


Fate = Callable[[str, Lease], WorkerLost | None]
"""Whether a worker dies of a message (begin; errand, answered: after it has reached it) under a lease."""
_WHEN = {Unit: "begin", Errand: "errand", Answered: "answered"}


@define
class PretendLine:
    """One end of a line; what is sent is heard at the other one."""

    other: PretendLine | None = None
    heard: asyncio.Queue[object] = field(factory=asyncio.Queue)

    def send(self, value: object) -> None:
        """Sends a value."""
        assert self.other is not None
        self.other.heard.put_nowait(sent(value))

    async def hear(self) -> object:
        """The next value."""
        value = await self.heard.get()
        if value is None:
            raise LineClosed
        return value

    def close(self) -> None:
        """Hangs up."""
        assert self.other is not None
        for end in (self, self.other):
            end.heard.put_nowait(None)


def line() -> tuple[PretendLine, PretendLine]:
    """Both ends of a line."""
    one, other = PretendLine(), PretendLine()
    one.other, other.other = other, one
    return one, other


@define
class Pretend:
    """One worker."""

    bench: Bench
    fate: Fate
    end: PretendLine
    serving: asyncio.Task[None]
    dismissed: bool = False
    lost: WorkerLost | None = None

    async def knows(self, skill: SkillTree) -> None:
        """Gives it a skill."""
        self.bench.learn(sent(skill))

    def tell(self, told: Told) -> None:
        """Tells it something."""
        if not isinstance(told, Abandon):
            self.lost = self.lost or self.fate(_WHEN[type(told)], told.lease)
        if self.lost is None or not isinstance(told, Unit):
            self.end.send(told)
        if self.lost is not None:
            self.end.close()

    async def hear(self) -> object:
        """What it says next."""
        try:
            return await self.end.hear()
        except LineClosed:
            raise self.lost or WorkerLost("dismissed", by_itself=False) from None

    def dismiss(self) -> None:
        """Ends it."""
        self.dismissed = True
        self.end.close()


@define
class PretendExecutor:
    """An executor whose workers are in this process, after all."""

    settings: ExecutorSettings
    fate: Fate = lambda when, lease: None
    most_deaths: int = 2
    change: Callable[[Place], Place] = lambda place: place
    pack: Pack | None = None
    crew: Crew | None = None
    hired: list[Pretend] = field(factory=list)

    def stream(self, jobs: Sequence[AsyncCall[T]], *, workers: int) -> AsyncGenerator[list[T], None]:
        """Results in the jobs' order."""
        return LocalExecutor(self.settings.stopping).stream(jobs, workers=workers)

    def hands(self, workplace: Workplace) -> Hands:
        """The crew."""
        place = place_of(workplace)
        elsewhere, pack = self.change(place), self.pack or pack_of(workplace.settings.data)

        async def hire() -> Pretend:
            await asyncio.sleep(0)
            bench = Bench(sent(elsewhere), sent(pack))
            why = bench.open()
            if why:
                raise WorkerRefused(f"the one on node-1: {why}")
            here, there = line()
            self.hired.append(Pretend(bench, self.fate, here, asyncio.create_task(bench.serve(there))))
            return self.hired[-1]

        self.crew = Crew(
            place,
            hire,
            size=self.settings.workers,
            stopping=self.settings.stopping,
            most_deaths=self.most_deaths,
        )
        return self.crew

    async def aclose(self) -> None:
        """Sends everybody home."""
        if self.crew is not None:
            await self.crew.close()
        for worker in self.hired:
            worker.dismiss()
            await worker.serving
            await worker.bench.close()
