"""
Candidate tasks before a model: each asked about once, journaled, priced and within a budget, like the calls of a run.

The calls lie in a log beside the harvest's file. What was answered is not asked again, also after a kill.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

from attrs import frozen

from skillopt_es.algorithms.harvesting import HARVEST
from skillopt_es.config import RunConfig
from skillopt_es.config.places import recorded_place
from skillopt_es.engine.budget import Purse
from skillopt_es.engine.calls import Calls, LiveCalls, Means, Records
from skillopt_es.engine.loop import consult
from skillopt_es.errors import BudgetReached, Interrupted
from skillopt_es.events.catalog import Event, RunResumed, RunStarted
from skillopt_es.events.errors import SkillOptError
from skillopt_es.events.places import harvested
from skillopt_es.events.values import Json, LostCall, SkillTree, SplitIds
from skillopt_es.events.writer import RunWriter
from skillopt_es.harvest.mining import Candidate
from skillopt_es.harvest.proposing import SCHEMA, proposed, question
from skillopt_es.harvest.review import Proposal
from skillopt_es.ports import AsyncCall, ChatRequest
from skillopt_es.replies.json_reader import Unusable, read_object
from skillopt_es.sessions.accounts import (
    StartedCalls,
    check_bounded,
    has_budget,
    lost_calls,
    open_account,
    spent_before,
    tariffs_of,
)
from skillopt_es.sessions.opening import local_executor
from skillopt_es.sessions.session import closing, open_or_create
from skillopt_es.sessions.tasksets import unmet
from skillopt_es.sessions.wiring import Session
from skillopt_es.version import software_version

_MOST_TOKENS = 4096  # a task and eight checks take under a thousand; the rest is for models that think


@frozen
class Answered:
    """What became of one candidate: what was proposed, or why nobody could say, which may be tried again."""

    candidate: str
    proposal: Proposal | None
    why: str = ""


Told = Callable[[Answered], None]


async def propose(config: RunConfig, folder: Path, waiting: Sequence[Candidate], session: Session, told: Told) -> None:
    """Asks the optimizer's model about each candidate; `told` hears of each result, in their order."""
    async with _open_calls(config, folder, session) as calls:
        executor = local_executor(calls.means.stopping)
        jobs = [_job(each, config, calls.live, session) for each in waiting]
        answered = 0
        async with aclosing(executor.stream(jobs, workers=config.gradient.analyst_workers)) as stream:
            async for done in stream:
                for each in done:
                    told(each)
                answered += len(done)
        if answered < len(waiting):
            reached = calls.means.reached()
            if reached is not None:
                raise BudgetReached(reached.message, key=reached.key)
            raise Interrupted("stopped as asked; everything that was answered is recorded")


def _job(candidate: Candidate, config: RunConfig, calls: Calls, session: Session) -> AsyncCall[Answered]:
    role = config.optimizer_model
    request = ChatRequest(
        slot=harvested(candidate.id),
        stage="harvest",
        messages=question(candidate),
        max_tokens=_MOST_TOKENS,
        temperature=role.temperature,
        effort=role.reasoning_effort,
        schema=SCHEMA,
    )

    async def ask() -> Answered:
        found = await consult(calls, request, _read, again=config.optimizer.ask_again)
        if found.value is None:
            return Answered(candidate.id, None, found.why)
        made = await proposed(found.value, candidate, unmet)
        at = session.now().isoformat(timespec="seconds")
        return Answered(
            candidate.id,
            Proposal(id=candidate.id, by=role.model, at=at, proposed=made.task, why=made.why, dropped=made.dropped),
        )

    return ask


def _read(text: str) -> dict[str, Json] | Unusable:
    found = read_object(text)
    if isinstance(found, Unusable):
        return found
    return found if isinstance(found.get("usable"), bool) else Unusable("`usable` must be true or false")


@frozen(kw_only=True)
class _Open:
    """The calls of one command, and what ends them."""

    live: LiveCalls
    means: Means


@asynccontextmanager
async def _open_calls(config: RunConfig, folder: Path, session: Session) -> AsyncIterator[_Open]:
    """A model whose answers are journaled in this folder, and within a budget where there is one."""
    model = session.world.model(config, "optimizer")
    try:
        check_bounded(config, {"optimizer": model})
        async with closing(open_or_create(folder, session)) as writer:
            started = StartedCalls(folder)
            lost = lost_calls(folder, writer.log, writer.journal)
            accounts = []
            if has_budget(config):
                before = spent_before(config, writer.log, writer.journal, lost)
                accounts = [open_account(config, before, clock=session.clock, stopping=session.stopping)]
            means = Means(
                at_once={"optimizer": config.gradient.analyst_workers},
                purse=Purse(accounts, tariffs_of(config), started.note),
                in_flight=session.in_flight,
                stops=(session.stopping,),
            )
            await writer.append([_opening(config, folder, writer, lost)], expected=writer.log.head().seq)
            if accounts:
                started.open(writer.log, writer.journal)
            live = LiveCalls(
                {"optimizer": model},
                Records(journal=writer.journal, recorder=writer, texts=writer.log),
                means,
                ask_again=True,
            )
            try:
                yield _Open(live=live, means=means)
            except SkillOptError:  # also then every call has come to its end
                started.close()
                raise
            started.close()
    finally:
        await model.aclose()


def _opening(config: RunConfig, folder: Path, writer: RunWriter, lost: tuple[LostCall, ...]) -> Event:
    """What a session begins with: the first one says with which settings."""
    if writer.log.head().seq:
        return RunResumed(software=software_version(), lost=lost, accepted_loss=writer.lost)
    return RunStarted(
        software=software_version(),
        config=config.resolved,
        folder=recorded_place(config.folder, folder),
        skill=SkillTree({"SKILL.md": ""}),
        splits=SplitIds(train=(), val=(), test=(), digests={}),
        steps_per_epoch=0,
        total_steps=0,
        notes=("the calls of a harvest, no training run",),
        algorithm=HARVEST.name,
    )
