"""The lines of a run's summary: one a step, one an epoch, one a whole evaluation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol, TypeVar, get_args

from attrs import evolve, frozen

from skillopt_es.events.values import TAKEN, GateAction, Score


@frozen(kw_only=True)
class StepLine:
    """
    One finished step; `verdict` is the gate's action or why the step was skipped, `best` the value after it.
    Where `bound`, the candidate was not run to its end: its value is the most that it could have been.

    `notes` are the reminder notes that it added to the appendix of its candidate or, after the verdict, of the skill.
    """

    step: int
    epoch: int
    train: Score | None
    proposed: int | None
    merged: int | None
    chosen: int | None
    applied: int | None
    notes: int
    candidate: float | None
    current: float | None
    verdict: str
    best: float | None
    bound: bool = False


@frozen(kw_only=True)
class EpochLine:
    """One finished epoch and what was done at its end; empty where a stage is off. `bound` as in a step's line."""

    epoch: int
    slow_update: str
    candidate: float | None
    current: float | None
    meta_skill: str
    best: float | None
    bound: bool = False


@frozen(kw_only=True)
class EvaluationLine:
    """One whole evaluation outside the steps' training: the baseline, a gate, a comparison or a test."""

    place: str
    purpose: str
    skill: str
    score: Score
    value: float | None
    by_type: Mapping[str, Score]
    repeat: int = 1
    exact: bool = True
    goes_on: bool = False


@frozen(kw_only=True)
class Part:
    """Over how many of the items that there are a score is, where it is not over all."""

    measured: int
    of: int


def part_of(score: Score | None, of: int) -> Part | None:
    """The part of so many items that a score is over; None where it is over all, or nobody knows."""
    measured = None if score is None else score.measured
    return Part(measured=measured, of=of) if measured is not None and measured < of else None


Outcome = Literal["accepted", "rejected", "indecisive", "skipped", "unknown"]

_OUTCOMES: dict[str, Outcome] = {
    **dict.fromkeys(sorted(TAKEN.intersection(get_args(GateAction))), "accepted"),
    "reject": "rejected",
    "indecisive": "indecisive",
    "unknown": "unknown",
}


def outcome_of(verdict: str) -> Outcome:
    """The outcome of a step line's verdict; every word that is no verdict is a reason to skip the step."""
    return _OUTCOMES.get(verdict, "skipped")


class GoesOn(Protocol):
    """An evaluation, which may take the place of those of its text before it."""

    @property
    def goes_on(self) -> bool:
        """Whether it does: it has all their items and more."""
        ...


E = TypeVar("E", bound=GoesOn)


def last_whole(evaluations: Sequence[E]) -> tuple[E, ...]:
    """Of one text's evaluations those that stand: from the last one on that has taken the place of earlier ones."""
    starts = [at for at, each in enumerate(evaluations) if each.goes_on]
    return tuple(evaluations[starts[-1] if starts else 0 :])


def stated_value(lines: Sequence[EvaluationLine]) -> float | None:
    """What one skill counts after these evaluations: by the one that decided nothing, else their mean."""
    fresh = [line.value for line in lines if line.repeat == 0]
    values = fresh[-1:] or [line.value for line in lines]
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def stated_score(lines: Sequence[EvaluationLine]) -> Score | None:
    """One skill's score after these evaluations, in the same way."""
    fresh = [line.score for line in lines if line.repeat == 0]
    scores = fresh[-1:] or [line.score for line in lines]
    if not scores:
        return None
    hard, soft = (sum(getattr(score, kind) for score in scores) / len(scores) for kind in ("hard", "soft"))
    return evolve(scores[0], hard=hard, soft=soft)


def pooled(scores: Iterable[Score]) -> Score | None:
    """Several evaluations of one skill as one, weighted by what was measured; None when that is not known."""
    rows = list(scores)
    if len(rows) == 1:
        return rows[0] if rows[0].measured != 0 else None
    weighted = [(row, row.measured) for row in rows if row.measured is not None]
    measured = sum(weight for _, weight in weighted)
    if not measured or len(weighted) < len(rows):
        return None
    lost = [row.unmeasured for row in rows if row.unmeasured is not None]
    return Score(
        hard=sum(row.hard * weight for row, weight in weighted) / measured,
        soft=sum(row.soft * weight for row, weight in weighted) / measured,
        measured=measured,
        unmeasured=sum(lost) if len(lost) == len(rows) else None,
    )
