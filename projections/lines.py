"""The lines of a run's summary: one a step, one an epoch, one a whole evaluation."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from skillopt_es.events.values import Score


@frozen(kw_only=True)
class StepLine:
    """
    One finished step; `verdict` is the gate's action or why the step was skipped, `best` the value after it.

    `notes` are the reminder notes that it added to the appendix of its candidate or, after the verdict, of the skill.
    """

    step: int
    epoch: int
    train: Score | None
    proposed: int
    merged: int
    chosen: int
    applied: int
    notes: int
    candidate: float | None
    current: float | None
    verdict: str
    best: float | None


@frozen(kw_only=True)
class EpochLine:
    """One finished epoch and what was done at its end; empty where a stage is off."""

    epoch: int
    slow_update: str
    candidate: float | None
    current: float | None
    meta_skill: str
    best: float | None


@frozen(kw_only=True)
class EvaluationLine:
    """One whole evaluation outside the steps' training: the baseline, a gate, a comparison or a test."""

    place: str
    purpose: str
    skill: str
    score: Score
    value: float | None


def pooled(scores: Iterable[Score]) -> Score | None:
    """Several evaluations of one skill as one, weighted by what was measured; None when there are none."""
    rows = list(scores)
    measured = sum(row.measured for row in rows)
    if not measured:
        return None
    return Score(
        hard=sum(row.hard * row.measured for row in rows) / measured,
        soft=sum(row.soft * row.measured for row in rows) / measured,
        measured=measured,
        unmeasured=sum(row.unmeasured for row in rows),
    )
