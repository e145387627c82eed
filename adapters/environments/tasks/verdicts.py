"""What graders say, and how the answer of a user's own grader is read."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from typing import Protocol

from attrs import evolve, field, frozen

from skillopt_es.events.values import Json
from skillopt_es.ports import Ask

_KEYS = ("hard", "soft", "note")
_ROUNDING = 1e-9  # of a weighted mean


@frozen
class Verdict:
    """A grade: `hard` says solved or not, `soft` how far; `code` names a failure when the grader knows better."""

    hard: float
    soft: float
    note: str = ""
    code: str = ""


class GraderError(Exception):
    """The grader gave no grade: this says nothing about the answer. `code` names the failure."""

    def __init__(self, message: str, *, code: str = "grader") -> None:
        super().__init__(message)
        self.code = code


@frozen
class Attempt:
    """
    What is graded: the answer, and how the target got there, as rows of JSON.

    `ask` is where a judge is asked, and the `reported` score is what an agent says of its own answer. A `truncated`
    answer ends where the user has limited it.
    """

    answer: str
    ask: Ask
    trajectory: tuple[Mapping[str, Json], ...] = ()
    reported: Json = None
    truncated: bool = False


class Grader(Protocol):
    """Grades the answers to one item."""

    async def __call__(self, attempt: Attempt) -> Verdict:
        """The verdict on an attempt; raises GraderError."""
        ...


@frozen
class Inline:
    """A grader that looks at the answer alone, and is too cheap to leave the loop for."""

    check: Callable[[str], Verdict]

    async def __call__(self, attempt: Attempt) -> Verdict:
        """The check's verdict."""
        return self.check(attempt.answer)


@frozen
class Tolerance:
    """How far a number may be off: by an absolute amount or by a share of the expected value."""

    absolute: float = 0.0
    relative: float = 0.0


@frozen(kw_only=True)
class Key:
    """What a built-in grader compares an answer with; `choices` maps labels to texts."""

    expected: Json
    choices: Mapping[str, str] = field(factory=dict)
    tolerance: Tolerance = Tolerance()
    timeout: float = 30.0


def row_of(fields: Mapping[str, Json], attempt: Attempt) -> dict[str, Json]:
    """What every grader of the user's gets: the item with all its fields, the answer, and the trajectory."""
    asked = fields["input"] if "input" in fields else fields.get("messages")
    always = {"id": str(fields.get("id", "")), "input": asked, "expected": fields.get("expected")}
    return {
        **copy.deepcopy(dict(fields)),
        **always,
        "answer": attempt.answer,
        "trajectory": [dict(each) for each in attempt.trajectory],
        "truncated": attempt.truncated,
    }


def solved(right: bool, note: str = "") -> Verdict:
    """The verdict of a grader that only knows right and wrong."""
    return Verdict(1.0, 1.0, note) if right else Verdict(0.0, 0.0, note)


def passing(verdict: Verdict, score: float) -> Verdict:
    """The verdict where an answer counts as solved from a soft score on."""
    return evolve(verdict, hard=float(verdict.soft >= score - _ROUNDING))


def verdict_of(value: object) -> Verdict:
    """The verdict in what a user's grader returned: a number from 0 to 1, a bool, or a dict of hard, soft and note."""
    if not isinstance(value, Mapping):
        soft = _share(value, "the grade")
        return Verdict(float(soft >= 1), soft)
    unknown = [repr(key) for key in value if key not in _KEYS]
    if unknown or not {"hard", "soft"} & set(value):
        what = f"unknown {', '.join(unknown)}" if unknown else "neither `hard` nor `soft`"
        raise GraderError(f"the grade has {what}; it may hold hard, soft and note")
    soft = _share(value["soft"] if "soft" in value else value["hard"], "soft")
    hard = _share(value["hard"], "hard") if "hard" in value else float(soft >= 1)
    return Verdict(hard, soft, str(value.get("note") or ""))


def _share(value: object, name: str) -> float:
    try:
        number = float("nan") if isinstance(value, str | bytes) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if math.isnan(number) or not 0 <= number <= 1:
        raise GraderError(f"{name} must be a number from 0 to 1, not {shown(value)}")
    return number


def shown(value: object) -> str:
    """A value in an error message, in at most 200 characters."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # too deep, or a number with too many digits
        text = f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= 200 else f"{text[:199]}…"


def alternatives(expected: Json) -> list[str]:
    """The accepted texts of a text grader; raises ValueError when `expected` is not text or a list of texts."""
    values = expected if isinstance(expected, list) else [expected]
    texts = [str(value) for value in values if isinstance(value, str | int | float) and not isinstance(value, bool)]
    if not texts or len(texts) < len(values):
        raise ValueError("must be text or a list of texts")
    if not all(text.strip() for text in texts):
        raise ValueError("must not be blank")
    return texts
