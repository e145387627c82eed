"""Pieces of the optimizer's user messages that several stages share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from skillopt_es.config import RunConfig
from skillopt_es.events.values import Edit, FailurePattern, Json, SkillTree, Stage
from skillopt_es.ports import ChatRequest, Message
from skillopt_es.projections.trainer import Attempt
from skillopt_es.prompts import system_prompt
from skillopt_es.training.trajectories import fenced

_CAUSES = {"defect": "the skill's defect", "lapse": "a lapse: the skill has the rule"}


def question(
    config: RunConfig,
    *,
    slot: str,
    stage: Stage,
    prompt: str | tuple[str, ...],
    sections: Iterable[str],
    schema: Mapping[str, Json],
) -> ChatRequest:
    """A request to the optimizer: a system prompt by name (or several as one) and the user message's sections."""
    role = config.optimizer_model
    system = "\n\n".join(map(system_prompt, (prompt,) if isinstance(prompt, str) else prompt))
    user = "\n\n".join(section for section in sections if section)
    return ChatRequest(
        slot=slot,
        stage=stage,
        messages=(Message("system", system), Message("user", user)),
        max_tokens=config.optimizer.max_completion_tokens,
        temperature=role.temperature,
        effort=role.reasoning_effort,
        schema=schema,
    )


def skill_section(skill: SkillTree, title: str = "Current skill") -> str:
    """A skill as the optimizer sees it, every file fenced."""
    if len(skill.files) == 1:
        return f"## {title}\n{fenced('skill', skill.text or '(empty)')}"
    files = "\n\n".join(fenced(path, text) for path, text in sorted(skill.files.items()))
    return f"## {title}\n{files}"


def memory_section(memory: str) -> str:
    """The optimizer's own notes from earlier epochs, or nothing."""
    if not memory.strip():
        return ""
    return (
        "## Your notes from earlier epochs\n"
        "Use them where the evidence is unclear; what the trajectories show now comes first.\n"
        f"{memory.strip()}"
    )


def buffer_section(buffer: Sequence[Attempt]) -> str:
    """What earlier steps of this epoch tried and what came of it, or nothing."""
    if not buffer:
        return ""
    lines = [
        "## Earlier steps of this epoch",
        "Do not propose again what did not work; turn first to failures that are still unsolved.",
    ]
    for attempt in buffer:
        lines.append(f"\n### Step {attempt.step}: {attempt.action.upper()}, {attempt.failed} of {attempt.total} failed")
        lines += [f"- {code} ×{len(items)}: {', '.join(items)}" for code, items in attempt.codes]
        lines += [f"- an analyst saw: {_seen(pattern)}" for pattern in attempt.patterns]
        if attempt.rejected:
            before = "unknown" if attempt.value_before is None else f"{attempt.value_before:.4f}"
            lines.append(f"Rejected edits (score {before} -> {attempt.value_after:.4f}):")
            lines += [f"{number}. {described(edit)}" for number, edit in enumerate(attempt.rejected, start=1)]
        if attempt.rejected_notes:
            lines.append("Reminder notes that were rejected with this step:")
            lines += [f"* {note}" for note in attempt.rejected_notes]
    return "\n".join(lines)


def _seen(pattern: FailurePattern) -> str:
    cause = f" ({_CAUSES[pattern.cause]})" if pattern.cause else ""
    return f"{pattern.type}{cause}: {pattern.description}"


def described(edit: Edit) -> str:
    """One edit in one line."""
    parts = [f"[{edit.op}]"]
    if edit.file:
        parts.append(f"file={edit.file!r}")
    if edit.target:
        parts.append(f"target={edit.target!r}")
    if edit.content:
        parts.append(f"content={edit.content!r}")
    return "  ".join(parts)
