"""
`rescore`: the recorded answers of a run before another grader, and what the gate would have made of those grades.

Each rollout is done once more by the environment with the other settings, and asks the journal in the place of a model.
What was recorded answers only the very messages that it answered then, so nothing is made up: a rollout that would ask
something else, or whose answer was erased, cannot be told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import cast

from attrs import frozen

from skillopt_es.audit.regate import ConfigAt, regate
from skillopt_es.audit.regated import Regated, Regraded
from skillopt_es.audit.regating import changed_settings
from skillopt_es.config import RunConfig
from skillopt_es.config.whereabouts import asked_from_here
from skillopt_es.engine.algorithms import check_allowed
from skillopt_es.engine.algorithms import evolve as after
from skillopt_es.engine.attempts import Attempt, RolloutPorts, jobs_at_once
from skillopt_es.engine.call_records import recorded_request
from skillopt_es.engine.calls import Answer, answer_of
from skillopt_es.engine.draws import comparison_seed
from skillopt_es.engine.run_config import config_of_run
from skillopt_es.engine.work import Unit
from skillopt_es.errors import ConfigError, NotInRun
from skillopt_es.events.catalog import (
    EpochPlanned,
    EvidenceRetracted,
    Recorded,
    RolloutCompleted,
    RunForked,
    RunResumed,
    RunStarted,
    skills_in,
)
from skillopt_es.events.errors import SkillOptError, TextErased
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.places import SLOW, Place
from skillopt_es.events.requests import RecordedRequest
from skillopt_es.events.values import Failed, Measured, Outcome, Role, SkillTree
from skillopt_es.ports import CallFailed, ChatRequest, Environment, Executor, FailureKind, Hands, Item, can_regrade
from skillopt_es.projections.state import AnyState
from skillopt_es.runs.lookup import Events
from skillopt_es.sessions.hiding import check_walls
from skillopt_es.sessions.opening import OpenData, local_executor, open_hands
from skillopt_es.sessions.wiring import REAL_WORLD, World, environment_of

_KEYS_OF_GRADING = (
    "that is what an environment's own keys say, such as env.grader; `skillopt-es regate` asks about the gate's rule"
)


@frozen(kw_only=True)
class Grade:
    """One recorded result beside that of the other grader; None, and why, where nobody can tell."""

    seq: int
    place: str
    item: str
    recorded: Outcome
    derived: Outcome | None
    why: str = ""

    @property
    def changed(self) -> bool:
        """Whether the grades differ."""
        return self.derived != self.recorded


@frozen(kw_only=True)
class Rescoring:
    """Every answer's grades in order, and the evaluations and verdicts that follow from them."""

    grades: tuple[Grade, ...]
    regated: Regated


async def rescored(
    events: Events, log: EventLog, folder: Path, overrides: Sequence[str] = (), *, world: World = REAL_WORLD
) -> Rescoring:
    """How a run's answers are graded with these `--set env.…` texts; raises ConfigError where they cannot be graded."""
    changed = changed_settings(
        overrides, lambda key: key.startswith("env.") and key != "env.name", "how answers are graded", _KEYS_OF_GRADING
    )
    tried = _tried(events, folder)
    started, overridden = tried.state.started, tried.state.overrides
    home = Path(tried.last.folder)
    config = config_of_run(started, folder, {**overridden, **asked_from_here(changed, home)})
    executor = local_executor()
    async with environment_of(config, world) as environment:
        _check_environment(environment)
        check_walls(environment, config, folder)
        data = OpenData(config=config, environment=environment, splits=environment.load())
        hands = open_hands(config, data, executor, {})
        work = [_Again(each, data.items, hands, log, executor) for each in tried.rollouts]
        async with aclosing(executor.stream(work, workers=jobs_at_once(config.env.workers))) as stream:
            grades = tuple([grade async for done in stream for grade in done])
    if grades and all(each.derived is None for each in grades):
        raise ConfigError(
            f"no answer of {folder.name} can be graded with these settings; of the first: {grades[0].why}",
            hint="settings that change what the target is asked need a run of their own",
        )
    as_it_was: ConfigAt = lambda state: config_of_run(state.started, folder, state.overrides)  # noqa: E731
    untold = (each.seq for each in grades if each.derived is None)
    graded = Regraded(
        outcomes={each.seq: each.derived for each in grades if each.derived is not None},
        unknown=frozenset(untold if changed else ()),  # the recorded grader's grade is the recorded one
    )
    return Rescoring(grades=grades, regated=regate(events.read(), as_it_was, graded))


def _check_environment(environment: Environment) -> None:
    if not can_regrade(environment):
        raise ConfigError(
            f"the answers of {environment.name} cannot be graded again from the log alone: what they do in its world"
            " (a game, a program that is run, the web) is part of the grade",
            hint="`skillopt-es eval` tries a skill again; an environment whose grade depends on the answer alone says "
            "so with `regrades = True`",
        )


# --- what was tried ------------------------------------------------------------------------------------------------


@frozen
class _Try:
    """A recorded rollout as it was planned."""

    seq: int
    event: RolloutCompleted
    unit: Unit
    config: RunConfig


@frozen
class _Tried:
    rollouts: tuple[_Try, ...]
    state: AnyState
    last: RunConfig


def _tried(log: Events, folder: Path) -> _Tried:
    """All rollouts of a run that asked somebody, each with the skill, the seed and the settings of its time."""
    records = log.read()
    first = next(records, None)
    if first is None or not isinstance(first.event, RunStarted):
        raise NotInRun(f"{folder.name} stopped before it began: it has no answers")
    check_allowed("rescore", first.event, folder.name)
    state, rollouts = after(None, first.event), list[_Try]()
    config = config_of_run(state.started, folder)
    texts: dict[str, SkillTree] = {skill.hash: skill for skill in skills_in(first.event)}
    seeds: dict[str, int] = {}
    for recorded in records:
        event = recorded.event
        texts.update({skill.hash: skill for skill in skills_in(event)})
        state = after(state, event)
        if isinstance(event, RunResumed | RunForked | EvidenceRetracted):
            config = config_of_run(state.started, folder, state.overrides)
        if isinstance(event, EpochPlanned):
            seeds.update(_seeds(event, state))
        if isinstance(event, RolloutCompleted) and event.calls:
            rollouts.append(_planned(recorded, event, texts[event.skill], seeds, config))
    return _Tried(tuple(rollouts), state, config)


def _seeds(event: EpochPlanned, state: AnyState) -> Iterator[tuple[str, int]]:
    """The seed of each place of an epoch's training."""
    per_epoch = state.started.steps_per_epoch
    share = len(event.batches) // per_epoch
    for index, batch in enumerate(event.batches):
        step = (event.epoch - 1) * per_epoch + index // share + 1
        yield Place.of_step(event.epoch, step).in_batch(index % share), batch.seed


def _planned(
    recorded: Recorded, event: RolloutCompleted, skill: SkillTree, seeds: Mapping[str, int], config: RunConfig
) -> _Try:
    seed = seeds.get(event.place, config.train.seed)
    place = Place(event.place)
    if place.epoch is not None and place.stage in (SLOW.previous, SLOW.current):
        seed = comparison_seed(config.train.seed, place.epoch)
    asked = [number for call in event.calls if (number := Place(call.slot).question) is not None]
    unit = Unit(
        place=place, purpose=event.purpose, item=event.item, skill=skill, seed=seed, judged=min(asked, default=1) - 1
    )
    return _Try(recorded.seq, event, unit, config)


# --- graded again --------------------------------------------------------------------------------------------------


class _NotRecordedError(SkillOptError):
    """The rollout would ask what was never asked."""


@frozen
class _Again:
    """One rollout, done once more over its recorded answers."""

    tried: _Try
    items: Mapping[str, Item]
    hands: Hands
    log: EventLog
    executor: Executor

    async def __call__(self) -> Grade:
        event, item = self.tried.event, self.items.get(self.tried.event.item)
        if item is None:
            return self._grade(None, "the data of these settings have no such item")
        calls = _Answers(event, Journal(self.log.reader), self.log)
        ports = RolloutPorts(hands=self.hands, items=self.items, executor=self.executor, calls=calls)
        try:
            again, _ = await Attempt(self.tried.unit, self.tried.config, ports)()
        except (_NotRecordedError, TextErased) as error:
            return self._grade(None, error.message)
        if isinstance(again.outcome, Failed) and isinstance(event.outcome, Measured):
            return self._grade(None, f"not graded ({again.outcome.kind}): {again.outcome.message}")
        return self._grade(again.outcome, "")

    def _grade(self, derived: Outcome | None, why: str) -> Grade:
        event = self.tried.event
        return Grade(
            seq=self.tried.seq, place=event.place, item=event.item, recorded=event.outcome, derived=derived, why=why
        )


@frozen
class _Answers:
    """The calls of one rollout, answered by what was recorded of it."""

    event: RolloutCompleted
    journal: Journal
    log: EventLog

    async def ask(self, role: Role, request: ChatRequest) -> Answer:
        """The recorded answer or failure of this call, if it was asked the same."""
        asked = _asked(recorded_request(request))
        rows = [row for row in self.journal.attempts(request.slot) if _asked(row.call.request) == asked]
        used = [row for row in rows if row.ref in self.event.calls]
        if used:
            return answer_of(used[-1], self.log)
        failed = [row for row in rows if row.call.outcome == "failed"]
        if failed:
            raise CallFailed(cast("FailureKind", failed[-1].call.error_kind), failed[-1].call.error_message)
        raise _NotRecordedError(f"with these settings the {role} would have been asked something else")


def _asked(request: RecordedRequest) -> tuple[object, object]:
    """What a request says, without the limits that a resumed run may have changed."""
    return request.messages, request.images
