"""Adding up an evaluation: its score, or a pause when too much of it was not measured."""

from __future__ import annotations

from collections.abc import Mapping

from skillopt_es.engine import tasks
from skillopt_es.engine.evaluations import begun_draw, rows_of
from skillopt_es.engine.run_data import RunData
from skillopt_es.events.catalog import Event, RolloutCompleted, RunPaused, SkillScored
from skillopt_es.events.values import Measured, Outcome, Score
from skillopt_es.projections.state import AnyState, is_silent


def score(evaluation: tasks.Evaluation, state: AnyState, run: RunData) -> Event:
    """The sum of an evaluation, or a pause when too much of it was not measured."""
    rows, begun = rows_of(state, evaluation), begun_draw(state, evaluation)
    not_run = tuple(item for item in evaluation.items if item not in rows) if evaluation.stopped else ()
    outcomes = [rows[item].outcome for item in evaluation.items if not not_run or item in rows]
    total = mean_score(outcomes) if not not_run else most_score(outcomes, len(not_run))
    rollout = run.config.rollout
    most = rollout.max_failed_share_train if evaluation.split == "train" else rollout.max_failed_share
    measured = sum(isinstance(outcome, Measured) for outcome in outcomes)
    nothing = measured == 0 and not not_run
    if nothing or len(outcomes) - measured > most * len(evaluation.items):
        return _unmeasured_pause(evaluation, rows, total)
    silent = [item for item in evaluation.items if item in rows and is_silent(rows[item])]
    if len(silent) > 1 and len(silent) > rollout.max_unanswered_share * measured:
        return _unanswered_pause(evaluation, rows[silent[0]], len(silent), measured)
    by_type: dict[str, list[Outcome]] = {}
    # Where not all items were run only the bound is known, and no type's own mean.
    for item in () if not_run else evaluation.items:
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
        # The first draw has the run's seed, which older events do not say either.
        seed=None if evaluation.draw == 1 else evaluation.seed,
        exact=not not_run,
        not_run=not_run,
        begun_at="" if begun is None else begun.place,
    )


def _unmeasured_pause(evaluation: tasks.Evaluation, rows: Mapping[str, RolloutCompleted], total: Score) -> RunPaused:
    kinds: dict[str, int] = {}
    example = ""
    for item in (item for item in evaluation.items if item in rows):
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


def _unanswered_pause(evaluation: tasks.Evaluation, first: RolloutCompleted, silent: int, tried: int) -> RunPaused:
    """One item without a word is the model's own 0; when nearly all are, nobody can tell it from a broken endpoint."""
    return RunPaused(
        reason="unanswered",
        message=f"{silent} of {tried} items at {evaluation.place} had no answer in them (first, {first.item}: "
        f"{first.detail or first.failure}): the endpoint does not work, or the skill silences the model. These items "
        "are tried again; with `--set rollout.max_unanswered_share=1` what is still empty then counts as the model's 0",
    )


def most_score(outcomes: list[Outcome], not_run: int) -> Score:
    """The most that the means can be where so many items were not run."""
    known = mean_score(outcomes)
    measured = sum(isinstance(outcome, Measured) for outcome in outcomes)
    hard, soft = ((measured * value + not_run) / (measured + not_run) for value in (known.hard, known.soft))
    return Score(hard=hard, soft=soft, measured=measured, unmeasured=known.unmeasured)


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
