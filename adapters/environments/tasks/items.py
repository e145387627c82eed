"""The items of the `tasks` environment, each made ready once for all its attempts."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from attrs import field, frozen

from skillopt_es.adapters.environments.data import RawItem
from skillopt_es.adapters.environments.episodes import TASK_LIMIT
from skillopt_es.adapters.environments.tasks.verdicts import Grader
from skillopt_es.adapters.environments.text import shorten
from skillopt_es.events.values import Json
from skillopt_es.ports import Message, MessageRole

_ROLES: dict[str, MessageRole] = {"system": "system", "user": "user", "assistant": "assistant"}
_OTHER_NAMES = ("question", "prompt", "text", "instruction", "problem")


@frozen(kw_only=True)
class TaskItem:
    """A task: its own system text, its messages, the fields told to agents, and the grader of its answers."""

    id: str
    task_type: str
    task: str
    system: str
    messages: tuple[Message, ...]
    fields: Mapping[str, Json]
    expected: Json
    grader: str
    grade: Grader = field(repr=False, eq=False)

    @property
    def expected_answer(self) -> str:
        """What a target that knows it would say; empty where that cannot be told, as of a pattern."""
        first = self.expected[0] if isinstance(self.expected, list) and "json" not in self.grader else self.expected
        if first is None or "regex" in self.grader:
            return ""
        return first if isinstance(first, str) else json.dumps(first, ensure_ascii=False)

    @property
    def answers(self) -> tuple[str, ...]:
        """The accepted answers, where the item says them as texts; a pattern is none."""
        if self.grader == "regex":
            return ()
        if self.grader == "json" and not isinstance(self.expected, str):
            return (json.dumps(self.expected, ensure_ascii=False),)
        listed = self.expected if isinstance(self.expected, list) else [self.expected]
        return tuple(each for each in listed if isinstance(each, str))


def kind_of(raw: RawItem) -> str:
    """The type of a task; empty where it has none."""
    kind = raw.fields.get("type", "")
    if not isinstance(kind, str):
        raise raw.refusal("`type` must be text", 'write "type": "…"')
    return kind


def task_item(raw: RawItem, *, told: Collection[str], grader: str, grade: Grader) -> TaskItem:
    """The task in a row of the data, with the fields told to agents; raises DataError for what cannot be asked."""
    kind = kind_of(raw)
    messages = _messages(raw)
    system = messages[0].content if messages[0].role == "system" else ""
    asked = messages[1:] if messages[0].role == "system" else messages
    if not asked or asked[-1].role != "user":
        raise raw.refusal("the last of its `messages` must have the role user", "end with what the target is to answer")
    return TaskItem(
        id=raw.id,
        task_type=kind,
        task=shorten(asked[-1].content, TASK_LIMIT),
        system=system.strip(),
        messages=asked,
        fields={name: value for name, value in raw.fields.items() if name in told},
        expected=raw.fields.get("expected"),
        grader=grader,
        grade=grade,
    )


def _messages(raw: RawItem) -> tuple[Message, ...]:
    given = raw.fields.get("input")
    if "messages" in raw.fields:
        if given is not None:
            raise raw.refusal("it has both `input` and `messages`", "keep one of them")
        return _own_messages(raw)
    if isinstance(given, str) and given.strip():
        return (Message("user", given),)
    other = next((name for name in _OTHER_NAMES if name in raw.fields), None)
    fix = 'add "input": "…" or "messages": […]'
    if other and given is None:
        fix = f"set env.input_field: {other}, or rename `{other}` to `input`"
    raise raw.refusal("`input` is missing" if given is None else "`input` must be text that is not blank", fix)


def _own_messages(raw: RawItem) -> tuple[Message, ...]:
    given = raw.fields["messages"]
    if not isinstance(given, list) or not given:
        raise raw.refusal("`messages` must be a list of messages", 'write [{"role": "user", "content": "…"}]')
    return tuple(_message(raw, each) for each in given)


def _message(raw: RawItem, value: Json) -> Message:
    if isinstance(value, dict):
        role, content = value.get("role"), value.get("content")
        if isinstance(role, str) and role in _ROLES and isinstance(content, str):
            return Message(_ROLES[role], content)
    raise raw.refusal(
        "a message must have a `role` (system, user or assistant) and text as `content`",
        'write {"role": "user", "content": "…"}',
    )
