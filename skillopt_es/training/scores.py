"""Adding up an evaluation: its score, or a pause when too much of it was not measured."""

from __future__ import annotations

from collections.abc import Mapping

from skillopt_es.events.catalog import Event, RolloutCompleted, RunPaused, SkillScored
from skillopt_es.events.values import Measured, Outcome, Score
from skillopt_es.projections.state import TrainerState
from skillopt_es.training import tasks
from skillopt_es.training.run_data import RunData


def score(evaluation: tasks.Evaluation, state: TrainerState, run: RunData) -> Event:
    """The sum of an evaluation, or a pause when too much of it was not measured."""
    rows: Mapping[str, RolloutCompleted] = state.rollouts.get(evaluation.place, {})
    outcomes = [rows[item].outcome for item in evaluation.items]
    total = mean_score(outcomes)
    rollout = run.config.rollout
    most = rollout.max_failed_share_train if evaluation.split == "train" else rollout.max_failed_share
    measured = sum(isinstance(outcome, Measured) for outcome in outcomes)
    if measured == 0 or len(outcomes) - measured > most * len(outcomes):
        return _unmeasured_pause(evaluation, rows, total)
    by_type: dict[str, list[Outcome]] = {}
    for item in evaluation.items:
        by_type.setdefault(rows[item].task_type or "other", []).append(rows[item].outcome)
    return SkillScored(
        place=evaluation.place,
        purpose=evaluation.purpose,
        split=evaluation.split,
        skill=evaluation.skill.hash,
        score=total,
        value=run.gate_value(total, evaluation.skill) if evaluation.purpose == "selection" else None,
        by_type={name: mean_score(group) for name, group in sorted(by_type.items())},
        draw=evaluation.draw,
        seed=None if evaluation.draw == 1 else evaluation.seed,
    )


def _unmeasured_pause(evaluation: tasks.Evaluation, rows: Mapping[str, RolloutCompleted], total: Score) -> RunPaused:
    kinds: dict[str, int] = {}
    example = ""
    for item in evaluation.items:
        outcome = rows[item].outcome
        if not isinstance(outcome, Measured):
            kind = getattr(outcome, "kind", "not_run")
            kinds[kind] = kinds.get(kind, 0) + 1
            example = example or f"{item}: {getattr(outcome, 'message', '')}"
    what = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    return RunPaused(
        reason="unmeasured",
        message=f"{total.unmeasured} of {len(evaluation.items)} items at {evaluation.place} could not be measured "
        f"({what}); first, {example}",
    )


def mean_score(outcomes: list[Outcome]) -> Score:
    """The means over what was measured; all zero with `measured` 0 when nothing was."""
    measured = [outcome for outcome in outcomes if isinstance(outcome, Measured)]
    count = len(measured)
    return Score(
        hard=sum(outcome.hard for outcome in measured) / count if count else 0.0,
        soft=sum(outcome.soft for outcome in measured) / count if count else 0.0,
        measured=count,
        unmeasured=len(outcomes) - count,
    )
