"""What all chat environments do alike: putting the skill before the target, and replies that cannot be graded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from typing import Any

import yaml

from skillopt_es.events.values import Failed, Json, Measured, SkillTree
from skillopt_es.ports import ChatReply, Episode, Message, RecordKind, Tool, TrajectoryRecord

TASK_LIMIT = 500  # characters: analysts read the task in each trajectory of a minibatch
REFERENCE = "[HIDDEN REFERENCE]"  # how an item can be solved: for analysts of training items, where the config says so
_REMEMBERED = 8  # a run tries two or three skills at once, and making a prompt again is cheap


def prompt_text(package: str, name: str) -> str:
    """A text for the target or for analysts, from the folder `prompts` of a benchmark."""
    return resources.files(package).joinpath("prompts", f"{name}.md").read_text(encoding="utf-8").strip()


def tools_in(package: str, **numbers: int) -> tuple[Tool, ...]:
    """The tools of a benchmark, from `prompts/tools.yaml`; what they say of their limits are these numbers."""
    text = resources.files(package).joinpath("prompts", "tools.yaml").read_text(encoding="utf-8")
    return tuple(_tool(name, said, numbers) for name, said in yaml.safe_load(text).items())


def _tool(name: str, said: Mapping[str, Any], numbers: Mapping[str, int]) -> Tool:
    parameters: dict[str, Json] = {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in said["takes"].items()},
        "required": said["required"],
        "additionalProperties": False,
    }
    return Tool(name, said["description"].format(**numbers), parameters)


def skill_body(skill: SkillTree) -> str:
    """All text of the skill, further files under headings of their own; nothing when it is blank."""
    parts = [skill.text.strip()]
    parts += [
        f"### {path}\n{text.strip()}"
        for path, text in sorted(skill.files.items())
        if path != skill.main and text.strip()
    ]
    return "\n\n".join(part for part in parts if part)


def skill_section(skill: SkillTree) -> str:
    """The skill under its heading; nothing when it is blank."""
    body = skill_body(skill)
    return f"## Skill\n{body}" if body else ""


class SystemPrompts:
    """System prompts by skill: `make` builds one from a skill section, once for each of the last few skills."""

    def __init__(self, make: Callable[[str], str]) -> None:
        self._make = make
        self._made: dict[str, str] = {}

    def under(self, skill: SkillTree) -> str:
        """The system prompt that puts this skill before the target."""
        made = self._made.get(skill.hash)
        if made is None:
            if len(self._made) >= _REMEMBERED:
                self._made.pop(next(iter(self._made)))
            made = self._made[skill.hash] = self._make(skill_section(skill))
        return made


def records_of(messages: Sequence[Message]) -> list[TrajectoryRecord]:
    """The messages of a conversation as trajectory records."""
    kinds: dict[str, RecordKind] = {"system": "system", "user": "user", "assistant": "reply"}
    return [TrajectoryRecord(kinds[message.role], message.content) for message in messages]


def records_with_tools(messages: Sequence[Message]) -> list[TrajectoryRecord]:
    """A conversation in which the target asks for tools: what was said, each request, and what came back."""
    records: list[TrajectoryRecord] = []
    for message in messages:
        if message.role == "system" or message.role == "user":
            records.append(TrajectoryRecord(message.role, message.content))
        elif message.role == "tool":
            records.append(TrajectoryRecord("tool", message.content))
        else:
            silent = message.tool_calls and not message.content
            records += [] if silent else [TrajectoryRecord("reply", message.content)]
            records += [TrajectoryRecord("tool", f"[{call.name}] {call.arguments}") for call in message.tool_calls]
    return records


def without_answer(
    reply: ChatReply, task: str, records: Sequence[TrajectoryRecord], *, turns: int = 1
) -> Episode | None:
    """The episode of a reply that holds no answer to grade: refused (measures 0) or cut short (failed); else None."""
    outcome: Measured | Failed
    if reply.finish in ("refused", "filtered"):
        detail = "the target refused" if reply.finish == "refused" else "the provider's filter stopped the reply"
        outcome, failure = Measured(0.0, 0.0), "refused"
    elif reply.finish == "length":
        detail = "the reply was cut at the token limit"
        outcome, failure = Failed("truncated", detail), "truncated"
    else:
        return None
    return Episode(
        outcome=outcome,
        task=task,
        records=(*records, TrajectoryRecord("feedback", f"[EVALUATION RESULT]\n{detail}")),
        turns=turns,
        failure=failure,
        detail=detail,
    )
