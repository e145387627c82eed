"""Rollouts as the original's `results.jsonl` and `conversation.json`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.values import Json, Measured
from skillopt_es.interchange.layout import ROWS, safe_name
from skillopt_es.training.evidence import Evidence
from skillopt_es.training.trajectories import Trajectory, unpacked

File = tuple[str, str]
"""A path in the result folder and its text."""


def dumped(value: Json) -> str:
    """A JSON file as the original writes it."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)


def rollout_files(folder: str, rows: Sequence[RolloutCompleted], evidence: Evidence) -> Iterator[File]:
    """The results of an evaluation, and each item's conversation; what was not measured is no result."""
    if not rows:
        return
    lines = []
    for row in rows:
        trajectory = unpacked(row, evidence) if row.trajectory else None
        if isinstance(row.outcome, Measured):
            task = trajectory.task if trajectory else ""
            lines.append(json.dumps(_row(row, row.outcome, task), ensure_ascii=False, allow_nan=False))
        if trajectory is not None:
            yield f"{folder}/predictions/{safe_name(row.item)}/conversation.json", dumped(_conversation(trajectory))
    yield f"{folder}/{ROWS}", "".join(f"{line}\n" for line in lines)


def fail_reason(row: RolloutCompleted) -> str:
    """Why an item failed, the kind before a colon as the original groups them."""
    return f"{row.failure}: {row.detail}" if row.detail else row.failure


def _row(row: RolloutCompleted, outcome: Measured, task: str) -> dict[str, Json]:
    result: dict[str, Json] = {"id": row.item, "hard": outcome.hard, "soft": outcome.soft}
    others: dict[str, Json] = {
        "task_type": row.task_type,
        "task_description": task,
        "fail_reason": fail_reason(row),
        "predicted_answer": row.prediction,
    }
    if row.turns is not None:
        result["n_turns"] = row.turns
    return {**result, **{key: value for key, value in others.items() if value != ""}}


_ROLES = {"reply": "assistant"}


def _conversation(trajectory: Trajectory) -> list[Json]:
    return [{"role": _ROLES.get(kind, kind), "content": text} for kind, text in trajectory.records]
