"""
A small world for folders of skills: kinds of task with a hidden rule each, and agents that choose by description.

The target opens the skills whose descriptions name its task's kind, and obeys the rules that it has read; the teacher
creates a skill where none was open, and corrects what was open. Everything answers from the request text alone.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import skillopt_es as so
from skillopt_es.adapters.models.function import FunctionModel
from skillopt_es.config import RunConfig
from skillopt_es.config.layers import config_of
from skillopt_es.events.catalog import Event
from skillopt_es.events.values import Role
from skillopt_es.ports import ChatModel, ToolCall
from skillopt_es.sessions.opening import open_environment
from skillopt_es.sessions.wiring import Session, World
from skillopt_es.testing.algorithms import AlgorithmCase

KINDS = ("apple", "birch", "cedar", "daisy")
_LISTED = re.compile(r"^- ([a-z0-9-]+): (.*)$", re.MULTILINE)
_RULE = re.compile(r"RULE (\w+) (\w+)")
_ITEM = re.compile(r"item: (\S+)\n(?:type: \S+\n)?result: (PASS|FAIL).*?Task (\w+)", re.DOTALL)

Answer = Callable[[so.ChatRequest], str | so.ChatReply]


def listed(request: so.ChatRequest) -> dict[str, str]:
    """The skills that a target is shown, with their descriptions."""
    return dict(_LISTED.findall(request.messages[0].content)) if request.tools else {}


def opened(request: so.ChatRequest) -> dict[str, str]:
    """The skills that it has opened, with their texts."""
    told = [json.loads(each.content) for each in request.messages if each.role == "tool"]
    return {str(each["skill_id"]): str(each["content"]) for each in told if "content" in each}


def view(*skills: str) -> so.ChatReply:
    """A reply that opens these."""
    calls = [
        ToolCall(f"c{n}", "skills---skill_view", json.dumps({"skill_id": skill})) for n, skill in enumerate(skills)
    ]
    return so.ChatReply(text="", finish="tools", tool_calls=tuple(calls))


def target(request: so.ChatRequest) -> str | so.ChatReply:
    """Opens what names the kind, then follows the last rule about it; it cannot take in very much at once."""
    task = next(each.content for each in request.messages if each.role == "user")
    kind, word = task.split()[-2:]
    have = opened(request)
    fitting = [skill for skill, description in listed(request).items() if kind in description and skill not in have]
    if fitting and not have:
        return view(*fitting)
    read = " ".join(have.values()) + request.messages[0].content
    rules = dict(_RULE.findall(read if len(read.split()) < 400 else ""))
    return f"{word}-{rules.get(kind, 'none')}"


def failed_kinds(request: so.ChatRequest) -> list[str]:
    """The kinds of the failed tasks that a teacher is shown."""
    found = _ITEM.findall(request.messages[-1].content)
    return sorted({kind for _, result, kind in found if result == "FAIL"})


def create(kind: str, rule: str = "", description: str = "") -> dict[str, str]:
    """An edit that creates a skill for a kind."""
    return {
        "op": "create",
        "skill": f"{kind} tasks",
        "description": description or f"How tasks about {kind} are answered.",
        "content": f"RULE {kind} {rule or kind[::-1]}",
    }


def teacher(request: so.ChatRequest) -> str:
    """Creates a skill for each kind that failed without one; changes nothing at an epoch's end."""
    if request.stage == "meta_skill":
        return json.dumps({"reasoning": "fine", "changes": []})
    there = re.findall(r"^- ([a-z]+)-tasks:", request.messages[-1].content, re.MULTILINE)
    edits = [create(kind) for kind in failed_kinds(request) if kind not in there]
    return json.dumps({"reasoning": "seen", "edits": edits})


def managing(*answers: Mapping[str, object]) -> Answer:
    """A teacher who gives these answers at the ends of epochs, one after another, and proposes nothing else."""
    left = list(answers)

    def answer(request: so.ChatRequest) -> str:
        if request.stage == "meta_skill":
            return json.dumps({"changes": [left.pop(0)] if left else []})
        return '{"edits": []}'

    return answer


def grader(answer: str, item: Mapping[str, str]) -> bool:
    """By the word."""
    return answer == item["expected"]


def trained(
    folder: Path,
    *,
    agent: Answer = target,
    optimizer: Answer = teacher,
    skills: Mapping[str, str] | None = None,
    kinds: Sequence[str] = KINDS,
    algorithm: str = "skills",
    train: int = 16,
    **settings: object,
) -> so.Run:
    """A run in the world, from these skills on."""
    rows = []
    for split, many in (("train", train), ("val", 2 * len(kinds)), ("test", 2)):
        for number in range(many):
            kind = kinds[number % len(kinds)]
            task = {"id": f"{split}{number}", "split": split, "type": kind, "input": f"Task {kind} w{number}"}
            rows.append({**task, "expected": f"w{number}-{kind[::-1]}"})
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)))
    env = {"name": "tasks", "data_path": str(folder / "tasks.jsonl"), "split_mode": "field", "workers": 4}
    for name, text in (skills or {}).items():
        (folder / "skills" / name).mkdir(parents=True, exist_ok=True)
        (folder / "skills" / name / "SKILL.md").write_text(text)
        env["skill_init"] = str(folder / "skills")
    config = {
        "env": env,
        "train": {"algorithm": algorithm, "num_epochs": 2, "batch_size": 8},
        "evaluation": {"eval_test": False},
    }
    given = {"optimizer.learning_rate": 4, "skills.retire_after": 4, **settings}
    return so.train(
        config, name="r", runs=folder, settings=given, target=so.ChatFunction(agent), optimizer=optimizer, grader=grader
    )


def of_type(run: so.Run, kind: type[Event]) -> list[Event]:
    """The events of one type."""
    return [recorded.event for recorded in run.events([kind.__name__])]


def case(
    skills: Mapping[str, str], optimizer: Answer, *, kinds: Sequence[str] = KINDS, **settings: object
) -> AlgorithmCase:
    """The world as a case for the checks of any algorithm: one epoch of one batch, from these skills on."""

    def configured(folder: Path, more: Sequence[str]) -> RunConfig:
        folder.mkdir(parents=True, exist_ok=True)
        rows = [
            {
                "id": f"{split}{n}",
                "split": split,
                "input": f"Task {kinds[n % len(kinds)]} w{n}",
                "expected": f"w{n}-{kinds[n % len(kinds)][::-1]}",
            }
            for split, many in (("train", 8), ("val", 2 * len(kinds)), ("test", 1))
            for n in range(many)
        ]
        (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)))
        for name, text in skills.items():
            (folder / "skills" / name).mkdir(parents=True, exist_ok=True)
            (folder / "skills" / name / "SKILL.md").write_text(text)
        env = {"name": "tasks", "data_path": "tasks.jsonl", "split_mode": "field", "grader": "exact"}
        tree = {
            "model": {"target": "t", "optimizer": "o"},
            "env": {**env, "skill_init": "skills"},
            "train": {"algorithm": "skills", "num_epochs": 1, "batch_size": 8},
        }
        return config_of(tree, folder, [*(f"{key}={json.dumps(value)}" for key, value in settings.items()), *more])

    def session() -> Session:
        def model(config: RunConfig, role: Role) -> ChatModel:
            return FunctionModel(function=target if role == "target" else optimizer, name=role, timeout_seconds=30)

        day = datetime(2026, 1, 1, tzinfo=UTC)
        return Session(now=lambda: day, clock=time.monotonic, world=World(model=model, environment=open_environment))

    return AlgorithmCase(config=configured, session=session)
