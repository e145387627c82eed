"""Reading one evaluation's `results.jsonl`, with the conversations beside it."""

from __future__ import annotations

from skillopt_es.events.values import Json
from skillopt_es.interchange.fields import Fields, Source
from skillopt_es.interchange.layout import CONVERSATION, PROMPTS, ROWS, safe_name
from skillopt_es.interchange.original import Result

_KINDS = {"assistant": "reply", "system": "feedback"}
"""What an entry's role stands for; the evaluation is the original's system."""


def read_results(source: Source, folder: str) -> tuple[Result, ...] | None:
    """The rows of an evaluation, each item's last one; None when they are not there."""
    path = f"{folder}/{ROWS}"
    lines = source.lines(path)
    if lines is None:
        return None
    rows: dict[str, Result] = {}
    for line in lines:
        item, hard, soft = line.shown("id"), line.number("hard"), line.number("soft")
        if not item or hard is None or soft is None:
            source.say(path, "a line without id, hard or soft cannot be used")
            continue
        rows[item] = _result(line, item, (hard, soft), _conversation(source, folder, item))
    return tuple(rows.values())


def _result(
    line: Fields, item: str, measured: tuple[float, float], conversation: tuple[tuple[str, str], ...] | None
) -> Result:
    return Result(
        item=item,
        hard=measured[0],
        soft=measured[1],
        task_type=line.shown("task_type") or line.shown("instruction_type"),
        turns=line.whole("n_turns"),
        reason=line.shown("fail_reason"),
        prediction=line.shown("predicted_answer") or line.shown("answer"),
        task=line.shown("question") or line.shown("task_description") or line.shown("instruction"),
        answers=line.texts("gold_answers"),
        conversation=conversation,
    )


def _conversation(source: Source, folder: str, item: str) -> tuple[tuple[str, str], ...] | None:
    for name in dict.fromkeys((item, safe_name(item))):
        if "/" in name or name in (".", "..") or "\0" in name or len(name) > 200:  # an id is not a path
            continue
        at = f"{folder}/predictions/{name}"
        value = source.json(f"{at}/{CONVERSATION}")
        if isinstance(value, list):
            prompts = ((kind, source.text(f"{at}/{file}")) for kind, file in PROMPTS.items())
            return (
                *((kind, text) for kind, text in prompts if text is not None),
                *(_entry(number, entry) for number, entry in enumerate(value)),
            )
    return None


def _entry(number: int, entry: Json) -> tuple[str, str]:
    """One message: who said it, and all of it as text."""
    if not isinstance(entry, dict):
        return "reply", str(entry)
    fields = Fields("", entry, [])
    role = fields.shown("role")
    if role and "content" in entry:
        first = number == 0 and role == "system"  # no evaluation comes before an answer
        return "system" if first else _KINDS.get(role, role), fields.shown("content")
    if entry.get("type") == "message":
        return "reply", fields.shown("content")
    parts = [f"{key}: {fields.shown(key)}" for key in entry if key not in ("role", "type", "step")]
    return "tool" if entry.get("type") == "tool_call" else "reply", "\n".join(parts)
