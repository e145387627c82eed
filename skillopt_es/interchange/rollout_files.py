"""
Rollouts as the original's `results.jsonl`, and what was said: `conversation.json` with the two prompts beside it.

The first system and user message are files of their own; the evaluation is the entry that has the role `system`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence

from attrs import frozen

from skillopt_es.engine.evidence import Evidence
from skillopt_es.engine.trajectories import Trajectory, unpacked
from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.values import Json, Measured
from skillopt_es.interchange.layout import CONVERSATION, PROMPTS, ROWS, safe_name

File = tuple[str, str]
"""A path in the result folder and its text."""


def dumped(value: Json) -> str:
    """A JSON file as the original writes it."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)


@frozen
class Rollouts:
    """Evaluations as files: the texts of the log, and how a benchmark tells that an answer holds an accepted one."""

    evidence: Evidence
    holds: Callable[[str, Sequence[str]], bool] | None = None

    def files(self, folder: str, rows: Sequence[RolloutCompleted]) -> Iterator[File]:
        """The results of an evaluation, and each item's conversation; what was not measured is no result."""
        at = f"{folder}/" if folder else ""
        if not rows:
            return
        lines = []
        for row in rows:
            trajectory = unpacked(row, self.evidence) if row.trajectory else None
            if isinstance(row.outcome, Measured):
                found = self._row(row, row.outcome, trajectory)
                lines.append(json.dumps(found, ensure_ascii=False, allow_nan=False))
            if trajectory is not None:
                yield from _said(f"{at}predictions/{safe_name(row.item)}", trajectory)
        yield f"{at}{ROWS}", "".join(f"{line}\n" for line in lines)

    def task(self, row: RolloutCompleted) -> str:
        """What an item asks."""
        return unpacked(row, self.evidence).task if row.trajectory else row.item

    def _row(self, row: RolloutCompleted, outcome: Measured, trajectory: Trajectory | None) -> dict[str, Json]:
        task, answers = (trajectory.task, trajectory.answers) if trajectory else ("", ())
        replies = [text for kind, text in trajectory.records if kind == "reply"] if trajectory else []
        scores: dict[str, Json] = {}
        if self.holds is not None:
            held = outcome.passed or self.holds(row.prediction, answers)
            scores = {"em": outcome.hard, "f1": outcome.soft, "sub_em": float(held)}
        return {
            "id": row.item,
            **({"question": task} if task else {}),
            **scores,
            "hard": int(outcome.hard) if outcome.hard.is_integer() else outcome.hard,
            "soft": outcome.soft,
            "predicted_answer": row.prediction,
            **({"gold_answers": list(answers)} if answers else {}),
            **({"response": replies[-1]} if replies else {}),
            "fail_reason": fail_reason(row),
            "agent_ok": True,
            **({} if row.turns is None else {"n_turns": row.turns}),
            **({"task_type": row.task_type} if row.task_type else {}),
            **({"task_description": task} if task else {}),
        }


def fail_reason(row: RolloutCompleted) -> str:
    """Why an item failed, the kind before a colon as the original groups them."""
    return f"{row.failure}: {row.detail}" if row.detail else row.failure


def _said(folder: str, trajectory: Trajectory) -> Iterator[File]:
    records = list(trajectory.records)
    for kind, name in PROMPTS.items():
        if records and records[0][0] == kind:
            yield f"{folder}/{name}", records.pop(0)[1]
    entries: list[Json] = []
    turn = 0
    for kind, text in records:
        turn += kind == "reply"
        entries.append(_entry(kind, text, turn))
    yield f"{folder}/{CONVERSATION}", dumped(entries)


def _entry(kind: str, text: str, turn: int) -> Json:
    if kind == "reply":
        return {"type": "message", "turn": turn, "content": text}
    return {"role": "system" if kind == "feedback" else kind, "content": text}
