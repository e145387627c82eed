"""Workers of a crew in this process: everything that travels is pickled, and they die when a test says so."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import TypeVar

from attrs import define, field

from skillopt_es.adapters.executors.bench import Answer, Bench, Lease, Pack, Place, Report, Unit, pack_of, place_of
from skillopt_es.adapters.executors.crew import Crew, WorkerLost, WorkerRefused
from skillopt_es.adapters.executors.local import LocalExecutor
from skillopt_es.events.values import SkillTree
from skillopt_es.ports import AsyncCall, ExecutorSettings, Hands, Workplace

T = TypeVar("T")


def sent(value: T) -> T:
    """A value as it arrives elsewhere."""
    arrived: T = pickle.loads(pickle.dumps(value))
    return arrived


Fate = Callable[[str, Lease], WorkerLost | None]
"""Whether a worker dies of a message (begin, answered: after the answer has reached it) under a lease."""


@define
class Pretend:
    """One worker."""

    bench: Bench
    fate: Fate
    dismissed: bool = False

    async def begin(self, unit: Unit, skill: SkillTree) -> Report:
        """Begins an attempt."""
        self._maybe_dies("begin", unit.lease)
        return sent(await self.bench.begin(sent(unit), sent(skill)))

    async def answer(self, lease: Lease, number: int, answer: Answer) -> Report:
        """Hands on an answer."""
        report = await self.bench.answer(sent(lease), number, sent(answer))
        self._maybe_dies("answered", lease)
        return sent(report)

    async def abandon(self) -> None:
        """Ends the attempt that it makes."""
        await self.bench.abandon()

    def dismiss(self) -> None:
        """Ends it."""
        self.dismissed = True

    def _maybe_dies(self, when: str, lease: Lease) -> None:
        lost = WorkerLost("dismissed", by_itself=False) if self.dismissed else self.fate(when, lease)
        if lost is not None:
            raise lost


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
        place = place_of(workplace.software, workplace.settings, workplace.digests)
        there, pack = self.change(place), self.pack or pack_of(workplace.settings.data)

        async def hire() -> Pretend:
            await asyncio.sleep(0)
            bench = Bench(sent(there), sent(pack))
            why = bench.open()
            if why:
                raise WorkerRefused(f"the one on node-1: {why}")
            self.hired.append(Pretend(bench, self.fate))
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
            await worker.bench.close()
