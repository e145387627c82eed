"""
What algorithms share that ask the optimizer: the parts of a question, the question for a patch, the leak guard.

The guard is over the items whose trajectories the optimizer was shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from skillopt_es.config import RunConfig
from skillopt_es.engine.algorithm import Asking
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.engine.trajectories import fenced, unpacked
from skillopt_es.events.catalog import PatchProposed, RolloutCompleted
from skillopt_es.events.values import CallRef, Draft, Edit, Json, Minibatch, Proposal, SkillTree, Stage, Suggestion
from skillopt_es.ports import ChatRequest, Message
from skillopt_es.projections.state import Steering
from skillopt_es.prompts import system_prompt
from skillopt_es.replies.json_reader import Unusable
from skillopt_es.replies.proposals import PatchReply
from skillopt_es.skill.leaks import LeakGuard, Shown

_FILES = "It has several files. An edit names its own in `file`; without one it is for {main}."
_ITEMS_OWN = ("user", "tool", "feedback")  # what the agent said is its own, and the system prompt is everybody's


def question(
    config: RunConfig,
    *,
    slot: str,
    stage: Stage,
    prompt: str | tuple[str, ...],
    sections: Iterable[str],
    schema: Mapping[str, Json] | None,
    max_tokens: int | None = None,
    effort: str = "",
) -> ChatRequest:
    """A request to the optimizer: system prompts by name, the user message's sections, and no schema for plain text."""
    role = config.optimizer_model
    names = (prompt,) if isinstance(prompt, str) else prompt
    system = "\n\n".join(system_prompt(name) for name in names)
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
    return f"## {title}\n{_FILES.format(main=skill.main)}\n\n{files}"


def guide_section(guide: str) -> str:
    """What the environment says about its tasks, or nothing."""
    return f"## About these tasks\n{guide.strip()}" if guide.strip() else ""


def steering_section(steering: Steering) -> str:
    """What people have told those who propose edits, or nothing."""
    parts = []
    if steering.hints:
        parts.append("## Hints from the person in charge\n" + "\n".join(f"- {hint}" for hint in steering.hints))
    if steering.pins:
        lines = "\n".join(steering.pins)
        parts.append(f"## Lines that must stay as they are\nAn edit that takes one away is refused.\n{lines}")
    return "\n\n".join(parts)


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


def patch_asked(
    group: Minibatch,
    step: int,
    request: ChatRequest,
    read: Callable[[str], PatchReply | Unusable],
    note: Callable[[], str] = lambda: "",
) -> Asking[PatchReply]:
    """A question about one group of attempts, for a patch; the `note` is on what was left out of the answer."""
    named = partial(PatchProposed, patch=group.id, step=step, kind=group.kind, items=group.items)

    def proposed(reply: PatchReply, calls: tuple[CallRef, ...]) -> PatchProposed:
        return named(
            result=reply.result,
            edits=reply.edits,
            suggestions=reply.suggestions,
            drafts=reply.drafts,
            notes=reply.notes,
            patterns=reply.patterns,
            reasoning=reply.reasoning,
            note=note(),
            calls=calls,
        )

    return Asking(request=request, read=read, event=proposed, none=named, silence_fails=True)


def guard(
    rows: Iterable[RolloutCompleted],
    skill: SkillTree,
    config: RunConfig,
    evidence: RecordedTexts,
    *,
    quoted: bool = False,
) -> LeakGuard:
    """Over the items of these rollouts, for changes of this skill, which may have their answers `quoted`."""
    span = config.optimizer.leak_span
    shown: dict[str, Shown] = {}
    for row in rows if span else ():
        if row.trajectory:
            trajectory = unpacked(row, evidence)
            text = "\n".join(text for kind, text in trajectory.records if kind in _ITEMS_OWN)
            before = shown.get(row.item)
            # An item may come twice: in two batches, or under both skills of a comparison.
            whole = text if before is None else f"{before.text}\n{text}"
            shown[row.item] = Shown(item=row.item, question=trajectory.task, answers=trajectory.answers, text=whole)
    return LeakGuard(shown.values(), known="\n".join(skill.files.values()), span=span, quoted=quoted)
