"""
Rollouts ahead of time: while a candidate is judged, the next step's tasks are tried under the skill that stands now.

A rejection makes them the next step's own; an acceptance makes them waste. The events of a run are the same either way,
for the calls go to the journal alone, under the slots that the next step will ask at.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing

from attrs import evolve, frozen

from skillopt_es.config import RunConfig
from skillopt_es.engine.attempts import Attempt, RolloutPorts, jobs_at_once
from skillopt_es.engine.calls import Answer, LiveCalls
from skillopt_es.engine.work import AddUp, Decide, Rollouts, Unit, Work
from skillopt_es.events.values import Role
from skillopt_es.ports import ChatRequest, NotStarted


@frozen
class _Ahead:
    """The target's calls, made when no other call wants the place."""

    calls: LiveCalls

    async def ask(self, role: Role, request: ChatRequest) -> Answer:
        """The answer; the same question has it later, too."""
        return await self.calls.ask_ahead(role, request)


class Ahead:
    """Begins with the gate of a step, and ends with its verdict; `gave_up` gets the error that ended it early."""

    def __init__(
        self, config: RunConfig, ports: RolloutPorts, calls: LiveCalls, gave_up: Callable[[Exception], None]
    ) -> None:
        self._config = config
        self._ports = evolve(ports, calls=_Ahead(calls))
        self._calls = calls
        self._gave_up = gave_up
        self._place = ""
        self._open: list[asyncio.Task[None]] = []

    def planned(self, work: Work) -> None:
        """To be called with all work before it is performed."""
        units = work.ahead if isinstance(work, Rollouts) else ()
        # It is called with all work of a gate, and begins at the first.
        if units and self._place != units[0].place:
            self._place = units[0].place
            self._calls.begin_ahead()
            self._open.append(asyncio.create_task(self._try(units)))
        # These do not ask the target, so they end nothing.
        elif not units and not isinstance(work, AddUp | Decide):
            self._calls.no_more_ahead()

    async def settled(self) -> None:
        """Nothing new is begun; what is in flight is paid for, so it is let finish and recorded."""
        self._calls.no_more_ahead()
        await asyncio.gather(*self._open)

    async def _try(self, units: Sequence[Unit]) -> None:
        jobs = [Attempt(unit, self._config, self._ports) for unit in units]
        workers = jobs_at_once(self._config.env.workers)
        try:
            async with aclosing(self._ports.executor.stream(jobs, workers=workers)) as stream:
                async for _ in stream:
                    pass
        except NotStarted:  # it is no longer wanted
            pass
        except Exception as error:  # noqa: BLE001 -- it is not needed yet; the step that needs it asks again, and meets the error
            self._gave_up(error)
