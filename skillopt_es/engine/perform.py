"""Doing what a program asks for: each task becomes events, in the order of the plan."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from attrs import frozen

from skillopt_es.engine.calls import Calls
from skillopt_es.engine.consult import consult
from skillopt_es.engine.evaluations import score
from skillopt_es.engine.programs import Program
from skillopt_es.engine.rollout import Emission, RolloutPorts, jobs_at_once, run_rollouts
from skillopt_es.engine.run_data import RunData
from skillopt_es.engine.tasks import AddUp, Decide, Questions, Rollouts, Task
from skillopt_es.engine.trajectories import RecordedTexts
from skillopt_es.events.catalog import Event
from skillopt_es.ports import AsyncCall as Work
from skillopt_es.ports import Executor
from skillopt_es.projections.state import AnyState


@frozen(kw_only=True)
class Ports:
    """Everything of the world that a task may need; `rollouts` is absent where only decisions are derived again."""

    calls: Calls
    evidence: RecordedTexts
    executor: Executor
    rollouts: RolloutPorts | None


async def perform(
    program: Program[Any], task: Task, state: AnyState, run: RunData, ports: Ports
) -> AsyncGenerator[Emission, None]:
    """The events of a task; what it needs was all in the state when it began."""
    match task:
        case Rollouts():
            assert ports.rollouts is not None
            async with aclosing(run_rollouts(task, run, ports.rollouts)) as emissions:
                async for emission in emissions:
                    yield emission
        case Questions(jobs):
            work = [_question(program, job, state, run, ports) for job in jobs]
            workers = jobs_at_once(run.config.gradient.analyst_workers)
            async with aclosing(ports.executor.stream(work, workers=workers)) as stream:
                async for events in stream:
                    yield Emission(events, [])
        case AddUp(evaluation):
            yield Emission([score(evaluation, state, run)], [])
        case Decide(name):
            yield Emission([program.decisions[name](state, run, ports.evidence)], [])


def _question(program: Program[Any], job: object, state: AnyState, run: RunData, ports: Ports) -> Work[Event]:
    """One question to the optimizer, ready to be asked."""

    async def ask() -> Event:
        asking = program.questions[type(job)](job, state, run, ports.evidence)
        return asking.event(await consult(ports.calls, asking, again=run.config.optimizer.ask_again))

    return ask
