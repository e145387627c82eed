"""The episode of an OfficeQA attempt: the answer in the last reply, graded."""

from __future__ import annotations

from collections.abc import Sequence

from skillopt_es.adapters.environments.episodes import TASK_LIMIT
from skillopt_es.adapters.environments.officeqa.evaluator import Grade, Scoring, grade
from skillopt_es.adapters.environments.officeqa.items import OfficeItem
from skillopt_es.adapters.environments.officeqa.talk import Talk
from skillopt_es.adapters.environments.text import last_tagged, shorten
from skillopt_es.events.values import Failed, Measured
from skillopt_es.ports import Episode, TrajectoryRecord

_WRONG = Grade(False, 0.0)


def graded(item: OfficeItem, task: str, talk: Talk, records: Sequence[TrajectoryRecord], scoring: Scoring) -> Episode:
    """The episode of a conversation that came to its end; an answer counts inside answer tags only, the last one."""
    prediction = "" if talk.exhausted else (last_tagged(talk.reply.text, "answer") or "")
    result = grade(prediction, item.answer, scoring) if prediction else _WRONG
    failure, detail = ("", "") if result.right else _failure(item, talk, prediction, result)
    lines = [
        "[EVALUATION RESULT]",
        *([detail] if detail else []),
        f"Predicted answer: {prediction!r}",
        f"Expected answer: {item.answer!r}",
        f"Exact Match: {int(result.right)}",
        f"F1: {result.f1:.4f}",
    ]
    return Episode(
        outcome=Measured(float(result.right), result.f1),
        task=task,
        records=(*records, TrajectoryRecord("feedback", "\n".join(lines))),
        turns=talk.turns,
        failure=failure,
        detail=detail,
        prediction=prediction,
    )


def unmeasured(kind: str, why: str, task: str) -> Episode:
    """The episode of an attempt that the world, not the target, kept from its end."""
    return Episode(outcome=Failed(kind, why), task=task, records=(), turns=0, failure=kind, detail=why)


def _failure(item: OfficeItem, talk: Talk, prediction: str, result: Grade) -> tuple[str, str]:
    expected = f"expected {item.answer!r}"
    if talk.exhausted:
        return "budget_exhausted", f"{talk.exhausted}; {expected}"
    if prediction:
        code = "near_miss" if result.f1 > 0 else "wrong_answer"
        return code, f"predicted {shorten(prediction, TASK_LIMIT)!r}, {expected}"
    if not talk.reply.text.strip() or last_tagged(talk.reply.text, "answer") is not None:
        return "no_answer", f"the reply holds no answer, {expected}"
    return "format", f"the answer is not inside <answer> tags, {expected}"
