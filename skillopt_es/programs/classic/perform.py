"""Doing what the planner asks for: each task becomes events, in the order of the plan."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from attrs import frozen

from skillopt_es.engine import scores
from skillopt_es.engine.calls import Calls
from skillopt_es.engine.evidence import Evidence
from skillopt_es.engine.rollout import Emission, RolloutPorts, jobs_at_once, run_rollouts
from skillopt_es.engine.run_data import RunData
from skillopt_es.engine.tasks import (
    AnalyseJob,
    ChooseFirst,
    ConsolidateJob,
    Decide,
    Job,
    LearningRateJob,
    MergeJob,
    MetaSkillJob,
    Questions,
    RankJob,
    RewriteJob,
    Rollouts,
    Score,
    SkipStep,
    SlowUpdateJob,
    Task,
)
from skillopt_es.events.catalog import Event
from skillopt_es.ports import Executor
from skillopt_es.ports import Job as Work
from skillopt_es.programs.classic import decisions
from skillopt_es.programs.classic.advice import propose_slow_update, write_meta_skill
from skillopt_es.programs.classic.aggregate import merge
from skillopt_es.programs.classic.consolidate import consolidate
from skillopt_es.programs.classic.leaks import guard_of_step
from skillopt_es.programs.classic.learning_rate import choose_learning_rate
from skillopt_es.programs.classic.reflect import analyse
from skillopt_es.programs.classic.rewrite import rewrite
from skillopt_es.programs.classic.select import rank
from skillopt_es.projections.state import TrainerState


@frozen(kw_only=True)
class Ports:
    """Everything of the world that a task may need; `rollouts` is absent where only decisions are derived again."""

    calls: Calls
    evidence: Evidence
    executor: Executor
    rollouts: RolloutPorts | None


async def perform(task: Task, state: TrainerState, run: RunData, ports: Ports) -> AsyncGenerator[Emission, None]:
    """The events of a task; what it needs was all in the state when it began."""
    match task:
        case Rollouts():
            assert ports.rollouts is not None
            async with aclosing(run_rollouts(task, run, ports.rollouts)) as emissions:
                async for emission in emissions:
                    yield emission
        case Questions(jobs):
            work = [_question(job, state, run, ports) for job in jobs]
            workers = jobs_at_once(run.config.gradient.analyst_workers)
            async with aclosing(ports.executor.stream(work, workers=workers)) as stream:
                async for events in stream:
                    yield Emission(events, [])
        case _:
            yield Emission([decided(task, state, run, ports.evidence)], [])


def decided(
    task: Score | ChooseFirst | SkipStep | Decide, state: TrainerState, run: RunData, evidence: Evidence
) -> Event:
    """The event of a task that needs no model: a decision, or a sum."""
    match task:
        case Score(evaluation):
            return scores.score(evaluation, state, run)
        case ChooseFirst():
            return decisions.choose_first(task, state)
        case SkipStep():
            return decisions.skip_step(task, state, run)
        case Decide():
            return decisions.decide(task, state, run, lambda: guard_of_step(state, run, evidence))


def _question(job: Job, state: TrainerState, run: RunData, ports: Ports) -> Work[Event]:
    """One question to the optimizer, ready to be asked."""

    async def ask() -> Event:
        match job:
            case AnalyseJob() | SlowUpdateJob() | MetaSkillJob():
                return await _about_trajectories(job, state, run, ports)
            case _:
                return await _about_proposals(job, state, run, ports.calls)

    return ask


async def _about_trajectories(
    job: AnalyseJob | SlowUpdateJob | MetaSkillJob, state: TrainerState, run: RunData, ports: Ports
) -> Event:
    match job:
        case AnalyseJob():
            return await analyse(job, state, run, ports.calls, ports.evidence)
        case SlowUpdateJob():
            return await propose_slow_update(job, state, run, ports.calls, ports.evidence)
        case MetaSkillJob():
            return await write_meta_skill(job, state, run, ports.calls, ports.evidence)


async def _about_proposals(
    job: ConsolidateJob | MergeJob | LearningRateJob | RankJob | RewriteJob,
    state: TrainerState,
    run: RunData,
    calls: Calls,
) -> Event:
    match job:
        case ConsolidateJob():
            return await consolidate(job, state, run, calls)
        case MergeJob():
            return await merge(job, state, run, calls)
        case LearningRateJob():
            return await choose_learning_rate(job, state, run, calls)
        case RankJob():
            return await rank(job, state, run, calls)
        case RewriteJob():
            return await rewrite(job, state, run, calls)
