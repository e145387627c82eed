"""Opening environments on real files, and a target that answers from a script."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from attrs import define, evolve, field

from skillopt_es.adapters.environments import alfworld, docvqa, livemath, officeqa, searchqa, spreadsheetbench, tasks
from skillopt_es.adapters.sandboxes.opening import problem_with_confinement
from skillopt_es.events.values import SkillTree
from skillopt_es.ports import (
    ChatReply,
    DataSettings,
    Environment,
    EnvironmentSettings,
    Episode,
    Item,
    Message,
    OpenEnvironment,
    Splits,
)
from support.pictures import page

OPEN: dict[str, OpenEnvironment] = {
    "alfworld": alfworld.open_environment,
    "docvqa": docvqa.open_environment,
    "livemathematicianbench": livemath.open_environment,
    "officeqa": officeqa.open_environment,
    "searchqa": searchqa.open_environment,
    "spreadsheetbench": spreadsheetbench.open_environment,
    "tasks": tasks.open_environment,
}
CONFINED = not asyncio.run(problem_with_confinement())
SKILL = SkillTree({"SKILL.md": "# Skill\n\nAnswer briefly.\n"})
BLANK = SkillTree({"SKILL.md": " \n"})


@define
class Target:
    """Answers each call with the next reply (the last one again and again), or with what a function says."""

    replies: Sequence[str | ChatReply] | Callable[[Sequence[Message]], str]
    asked: list[list[Message]] = field(factory=list)
    limits: list[int | None] = field(factory=list)

    async def __call__(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> ChatReply:
        self.asked.append(list(messages))
        self.limits.append(max_tokens)
        if callable(self.replies):
            return ChatReply(text=self.replies(messages), finish="stop")
        reply = self.replies[min(len(self.asked), len(self.replies)) - 1]
        return reply if isinstance(reply, ChatReply) else ChatReply(text=reply, finish="stop")


def data_settings(**changes: Any) -> DataSettings:
    """Settings of the data, those of a fresh config but for the changes."""
    plain = DataSettings(
        split_mode="ratio", split_ratio="1:1:1", split_seed=42, split_field="", split_dir="", data_path="", limit=0
    )
    return evolve(plain, **changes)


def write_lines(path: Path, rows: Sequence[object]) -> Path:
    """The path, now holding one row a line."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def open_on(folder: Path, name: str, data: DataSettings, **options: Any) -> Environment:
    """An environment as wiring opens it."""
    return OPEN[name](
        EnvironmentSettings(
            name=name, folder=str(folder), data=data, timeout_seconds=60, max_completion_tokens=512, options=options
        )
    )


def open_rows(folder: Path, name: str, rows: Sequence[dict[str, Any]], **options: Any) -> tuple[Environment, Splits]:
    """An environment and its items: these rows, with a plain one each for the splits that have none."""
    filled = [{"split": "train", **row} for row in rows]
    spare = {"input": "?", "expected": "spare", "grader": "exact", "question": "?", "answers": ["spare"],
             "choices": ["spare"], "correct_choice": "A", "answer": "spare"}  # fmt: skip
    missing = sorted({"train", "val", "test"} - {row["split"] for row in filled})
    filled += [{"id": f"spare-{split}", "split": split, **spare} for split in missing]
    if name == "docvqa":
        (folder / "page.png").write_bytes(page(["42"]))
        filled = [{"image_path": "page.png", **row} for row in filled]
    path = write_lines(folder / "items.jsonl", filled)
    data = data_settings(split_mode="field", data_path=str(path))
    environment = open_on(folder, name, data, **options)
    return environment, environment.load()


def attempt(
    environment: Environment, item: Item, target: Target, skill: SkillTree = SKILL, *, seed: int = 1
) -> Episode:
    """One episode."""
    return asyncio.run(environment.attempt(item, skill, target, seed=seed))


def grade_one(folder: Path, row: dict[str, Any], reply: str | ChatReply, **options: Any) -> Episode:
    """The episode of one `tasks` item whose target gives this reply."""
    environment, splits = open_rows(folder, "tasks", [{"id": "1", "input": "What?", **row}], **options)
    return attempt(environment, splits.train[0], Target([reply]))
