"""Calibrating a run's gate: the attempts that its log and the evaluations of its skills hold, and fresh draws."""

from __future__ import annotations

from pathlib import Path

from attrs import evolve, frozen

from skillopt_es.algorithms.evaluation.scoring import Progress
from skillopt_es.config import RunConfig, with_overrides
from skillopt_es.events.catalog import RolloutCompleted, only
from skillopt_es.events.journal import Journal
from skillopt_es.events.schema import LOG_FILE
from skillopt_es.gate.calibration import Calibration, NotKnown, Null, attempts, calibrate, own_null, together
from skillopt_es.gate.flips import Flips, Tried
from skillopt_es.gate.verdicts import rule_of
from skillopt_es.runs.reading import whole_log
from skillopt_es.sessions.evaluation import (
    OWN_BUDGET,
    Evaluated,
    EvaluationRequest,
    ScorableRun,
    evaluate,
    evaluation_name,
    scorable_run,
)
from skillopt_es.sessions.wiring import Session


@frozen(kw_only=True)
class Subject(ScorableRun):
    """A run whose gate is looked at, and where evaluations of its skills are recorded."""

    evaluations: Path


def subject(folder: Path, evaluations: Path) -> Subject:
    """The run in a folder; raises RunNotFound or ConfigError for what has no gate."""
    of = scorable_run(folder, "calibrate")
    return Subject(folder=folder, config=of.config, state=of.state, evaluations=evaluations)


async def draw(of: Subject, which: str, repeats: int, session: Session, progress: Progress) -> Evaluated:
    """Tries the validation items so often under one skill: an evaluation, in which what was drawn before is free."""
    return await evaluate(evolve(_request(of, which), repeats=repeats), session, progress)


def calibrated(of: Subject, which: str) -> Calibration | NotKnown:
    """The gate's calibration from all that was recorded, under the text that is best, current or initial."""
    fresh = of.evaluations / evaluation_name(_request(of, which), of.state.started.splits.digests)
    drawn = _attempts(fresh) if (fresh / LOG_FILE).exists() else {}
    tried = together(_attempts(of.folder), drawn)
    return calibrate(tried, of.validation_items, rule_of(of.config), skill=of.skill(which).hash)


def measured_null(folder: Path) -> tuple[Null, Flips] | None:
    """What a run's own rule takes that is no better, where repeats in its log tell; None where none do."""
    of = subject(folder, Path())
    return own_null(_attempts(folder), of.validation_items, rule_of(of.config), skill=of.skill("best").hash)


def _request(of: Subject, which: str) -> EvaluationRequest:
    config: RunConfig = with_overrides(of.config, OWN_BUDGET)
    return EvaluationRequest(
        config=config,
        skill=of.skill(which),
        splits=("val",),
        limit=config.evaluation.sel_env_num,
        directory=of.evaluations,
        stem=of.folder.resolve().name,
    )


def _attempts(folder: Path) -> Tried:
    with whole_log(folder) as log:
        events = (event for _, event in only(RolloutCompleted, log.read(types=("RolloutCompleted",))))
        copied = frozenset(row.ref for row in Journal(log.reader).read() if row.call.repeats)
        return attempts(events, copied)
