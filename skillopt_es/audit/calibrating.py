"""Calibrating a run's gate: the attempts that its log and the evaluations of its skills hold, and fresh draws."""

from __future__ import annotations

from pathlib import Path

from attrs import evolve, frozen

from skillopt_es.config import RunConfig, with_overrides
from skillopt_es.engine.run_data import RunData, recorded_run
from skillopt_es.errors import ConfigError
from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.errors import RunNotFound
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.schema import LOG_FILE
from skillopt_es.events.values import SkillTree
from skillopt_es.gate.calibration import Calibration, NotKnown, Null, attempts, calibrate, own_null, together
from skillopt_es.gate.draws import rule_of
from skillopt_es.gate.flips import Flips, Tried
from skillopt_es.projections.state import AnyState
from skillopt_es.sessions.evaluation import OWN_BUDGET, Evaluated, EvaluationRequest, evaluate, evaluation_name
from skillopt_es.sessions.opening import Session
from skillopt_es.sessions.scoring import Progress
from skillopt_es.sessions.session import read_state


@frozen(kw_only=True)
class Subject:
    """A run whose gate is looked at: its folder, data and config, its state, and where evaluations are recorded."""

    folder: Path
    run: RunData
    state: AnyState
    evaluations: Path

    def skill(self, which: str) -> SkillTree:
        """The skill that is best, current or initial."""
        assert self.state.best is not None
        assert self.state.current is not None
        named = {"best": self.state.best.skill, "current": self.state.current.skill}
        return named.get(which, self.run.started.skill)


def subject(folder: Path, evaluations: Path) -> Subject:
    """The run in a folder; raises RunNotFound or ConfigError for what has no gate."""
    state = read_state(folder)
    if state.started is None or state.current is None or state.best is None:
        raise RunNotFound(f"{folder.name} stopped before it began, so it has no skill to draw")
    if not state.started.total_steps:
        raise ConfigError(f"{folder.name} is an evaluation, not a training run: it has no gate")
    if state.imported is not None:
        raise ConfigError(
            f"{folder.name} was imported: which items are for validation is not in its log",
            hint="`skillopt-es eval` scores its skill on your own data",
        )
    run = recorded_run(state.started, folder, state.overrides)
    return Subject(folder=folder, run=run, state=state, evaluations=evaluations)


async def draw(of: Subject, which: str, draws: int, session: Session, progress: Progress) -> Evaluated:
    """Tries the validation items so often under one skill: an evaluation, in which what was drawn before is free."""
    return await evaluate(evolve(_request(of, which), draws=draws), session, progress)


def calibrated(of: Subject, which: str) -> Calibration | NotKnown:
    """The gate's calibration from all that was recorded, under the text that is best, current or initial."""
    fresh = of.evaluations / evaluation_name(_request(of, which), of.run.started.splits.digests)
    drawn = _attempts(fresh) if (fresh / LOG_FILE).exists() else {}
    tried = together(_attempts(of.folder), drawn)
    return calibrate(tried, of.run.selection_items, rule_of(of.run.config), skill=of.skill(which).hash)


def measured_null(folder: Path) -> tuple[Null, Flips] | None:
    """What a run's own rule takes that is no better, where repeats in its log tell; None where none do."""
    of = subject(folder, Path())
    return own_null(_attempts(folder), of.run.selection_items, rule_of(of.run.config), skill=of.skill("best").hash)


def _request(of: Subject, which: str) -> EvaluationRequest:
    config: RunConfig = with_overrides(of.run.config, OWN_BUDGET)
    return EvaluationRequest(
        config=config,
        skill=of.skill(which),
        splits=("val",),
        limit=config.evaluation.sel_env_num,
        directory=of.evaluations,
        stem=of.folder.resolve().name,
    )


def _attempts(folder: Path) -> Tried:
    with EventLog.open(folder) as log:
        events = (recorded.event for recorded in log.read(types=("RolloutCompleted",)))
        copied = frozenset(row.ref for row in Journal(log.reader).read() if row.call.repeats)
        return attempts((event for event in events if isinstance(event, RolloutCompleted)), copied)
