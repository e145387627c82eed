"""Pieces of the optimizer's user messages that several stages share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from skillopt_es.engine.run_data import RunData
from skillopt_es.engine.trajectories import fenced
from skillopt_es.events.values import Draft, Edit, FailurePattern, Json, Proposal, SkillTree, Stage, Suggestion
from skillopt_es.ports import ChatRequest, Message
from skillopt_es.programs.classic.state import BufferEntry
from skillopt_es.prompts import system_prompt

_CAUSES = {"defect": "the skill's defect", "lapse": "a lapse: the skill has the rule"}


def question(
    run: RunData,
    *,
    slot: str,
    stage: Stage,
    prompt: str | tuple[str, ...],
    sections: Iterable[str],
    schema: Mapping[str, Json],
    max_tokens: int | None = None,
    effort: str = "",
) -> ChatRequest:
    """A request to the optimizer: a system prompt by name (or several as one) and the user message's sections."""
    config, version = run.config, run.started.prompts
    role = config.optimizer_model
    names = (prompt,) if isinstance(prompt, str) else prompt
    system = "\n\n".join(system_prompt(name, version) for name in names)
    user = "\n\n".join(section for section in sections if section)
    return ChatRequest(
        slot=slot,
        stage=stage,
        messages=(Message("system", system), Message("user", user)),
        max_tokens=config.optimizer.max_completion_tokens if max_tokens is None else max_tokens,
        temperature=role.temperature,
        effort=effort or role.reasoning_effort,
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


def guide_section(guide: str) -> str:
    """What the environment says about its tasks, or nothing."""
    return f"## About these tasks\n{guide.strip()}" if guide.strip() else ""


def buffer_section(buffer: Sequence[BufferEntry]) -> str:
    """What earlier steps of this epoch tried and what came of it, or nothing."""
    if not buffer:
        return ""
    lines = [
        "## Earlier steps of this epoch",
        "Do not propose again what did not work; turn first to failures that are still unsolved.",
    ]
    for attempt in buffer:
        lines.append(f"\n### Step {attempt.step}: {attempt.action.upper()}, {attempt.failed} of {attempt.total} failed")
        seen = _seen_in(attempt)
        if seen:
            lines.append(fenced(f"step {attempt.step}", "\n".join(seen)))
    return "\n".join(lines)


def _seen_in(attempt: BufferEntry) -> list[str]:
    """What went wrong in a step and what was tried; ids, codes and descriptions come from outside."""
    lines = [f"- {code} ×{len(items)}: {', '.join(items)}" for code, items in attempt.codes]
    lines += [f"- an analyst saw: {_seen(pattern)}" for pattern in attempt.patterns]
    if attempt.rejected:
        lines.append(f"Rejected {called(attempt.rejected[0])} ({_why_rejected(attempt)}):")
        lines += [f"{number}. {described(each)}" for number, each in enumerate(attempt.rejected, start=1)]
    if attempt.rejected_notes:
        lines.append("Reminder notes that were rejected with this step:")
        lines += [f"* {note}" for note in attempt.rejected_notes]
    return lines


def _why_rejected(attempt: BufferEntry) -> str:
    if attempt.value_after is None:
        return "they make the skill too large"
    before = "unknown" if attempt.value_before is None else f"{attempt.value_before:.4f}"
    most = "at most " if attempt.bound else ""
    return f"score {before} -> {most}{attempt.value_after:.4f}"


def _seen(pattern: FailurePattern) -> str:
    cause = f" ({_CAUSES[pattern.cause]})" if pattern.cause else ""
    return f"{pattern.type}{cause}: {pattern.description}"


def called(proposal: Proposal) -> str:
    """What proposals of this kind are called."""
    match proposal:
        case Edit():
            return "edits"
        case Suggestion():
            return "suggestions"
        case Draft():
            return "drafts"


def described(proposal: Proposal) -> str:
    """One edit, suggestion or draft in one line."""
    match proposal:
        case Edit():
            return _in_line(proposal.op, file=proposal.file, target=proposal.target, content=proposal.content)
        case Suggestion():
            title, what = proposal.title, proposal.instruction
            return _in_line(proposal.kind, title=title, instruction=what, priority=proposal.priority)
        case Draft():
            return _in_line("draft", title=proposal.title, changes="; ".join(proposal.changes))


def _in_line(kind: str, **parts: str) -> str:
    return "  ".join([f"[{kind}]", *(f"{name}={value!r}" for name, value in parts.items() if value)])
