"""Sections of the optimizer's user messages that several stages of classic training share."""

from __future__ import annotations

from collections.abc import Sequence

from skillopt_es.algorithms.optimizer import called, described
from skillopt_es.engine.trajectories import fenced
from skillopt_es.events.values import BufferEntry, FailurePattern

_CAUSES = {"defect": "the skill's defect", "lapse": "a lapse: the skill has the rule"}


def meta_skill_section(meta_skill: str) -> str:
    """The optimizer's own notes from earlier epochs, or nothing."""
    if not meta_skill.strip():
        return ""
    return (
        "## Your notes from earlier epochs\n"
        "Use them where the evidence is unclear; what the trajectories show now comes first.\n"
        f"{meta_skill.strip()}"
    )


def buffer_section(buffer: Sequence[BufferEntry]) -> str:
    """What earlier steps of this epoch tried and what came of it, or nothing."""
    if not buffer:
        return ""
    lines = [
        "## Earlier steps of this epoch",
        "Do not propose again what did not work; turn first to failures that are still unsolved.",
    ]
    for attempt in buffer:
        earlier = " of the training before this one" if attempt.before else ""
        came = f"{attempt.action.upper()}, {attempt.failed} of {attempt.total} failed"
        lines.append(f"\n### Step {attempt.step}{earlier}: {came}")
        seen = _seen_in(attempt)
        if seen:
            lines.append(fenced(f"step {attempt.step}", "\n".join(seen)))
    return "\n".join(lines)


def _seen_in(attempt: BufferEntry) -> list[str]:
    """What went wrong in a step and what was tried; ids, codes and descriptions come from outside."""
    lines = [f"- {seen.code} ×{len(seen.items)}: {', '.join(seen.items)}" for seen in attempt.codes]
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
