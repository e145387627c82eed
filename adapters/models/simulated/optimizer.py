"""The simulated optimizer: one JSON reply for each stage, made from what the question shows."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from skillopt_es.adapters.models.simulated.reading import Question, Trajectory
from skillopt_es.adapters.models.simulated.reminders import appendix_of, reminder, rules_named_in
from skillopt_es.adapters.models.simulated.rules import Lesson, Rule, chance, rules_in
from skillopt_es.adapters.models.simulated.subjects import EVERY_RULE, EVERY_STYLE, subject_of
from skillopt_es.events.values import Json, Stage
from skillopt_es.ports import ChatRequest

ONLY_BAD = 0.15
ALSO_BAD = 0.3
NOTICES_SUCCESS = 0.3

_RANKED = re.compile(r"^\[(\d+)\] .*support=(\d+)$", re.MULTILINE)
_REJECTED = re.compile(r"^\d+\. (?=\[)(.*)$", re.MULTILINE)
_PROTECTED = re.compile(r"<!-- (\w+)_START -->.*?<!-- \1_END -->", re.DOTALL)

Reply = dict[str, Json]


def advise(request: ChatRequest) -> str:
    """The reply to the first user message, as the JSON object that its stage asks for."""
    users = [message.content for message in request.messages if message.role == "user"]
    answer = _STAGES.get(request.stage)
    if answer is None or not users:
        return "This is simulated-optimizer."
    return json.dumps(answer(Question(users[0])), ensure_ascii=False, indent=1)


# --- analysts ------------------------------------------------------------------------------------------------------


def _analyse(question: Question) -> Reply:
    failed = any(trajectory.failed for trajectory in question.trajectories)
    return _from_failures(question) if failed else _from_successes(question)


def _from_failures(question: Question) -> Reply:
    skill = _skill(question)
    failing = _failing(question.trajectories)
    missing = [lesson for lesson in failing if lesson.rule and not lesson.rule.line_in(skill)]
    tried = _rejected(question)
    wanted = [lesson.rule for lesson in missing if lesson.rule and not any(map(lesson.rule.said_by, tried))]
    edits = [_delete(rule.line_in(skill)) for rule in subject_of(question).harmful if rule.line_in(skill)]
    edits += [_append(rule) for rule in _with_misjudgement(question, skill, wanted, tried)]
    summary = [_summary(lesson, count, lesson in missing) for lesson, count in failing.items()]
    kinds = ", ".join(lesson.kind for lesson in missing) or "none"
    reasoning = f"Simulated: kinds that fail and have no rule: {kinds}."
    most = question.number(r"at most (\d+) edits", 4)
    reply: Reply = {"failure_summary": _json(summary), "patch": {"reasoning": reasoning, "edits": _json(edits[:most])}}
    notes = question.number(r"at most (\d+) reminder notes", 0)
    if notes:
        for row, lesson in zip(summary, failing, strict=True):
            row["cause"] = "SKILL_DEFECT" if lesson in missing else "EXECUTION_LAPSE"
        forgotten = [lesson for lesson in failing if lesson not in missing]
        reply["appendix_notes"] = [*_reminders(question, forgotten)[:notes]]
    return reply


def _reminders(question: Question, forgotten: Sequence[Lesson]) -> list[str]:
    """A note on each rule that was forgotten and that no note names yet."""
    named = rules_named_in(appendix_of(question.skill("Current skill")), EVERY_STYLE)
    return [reminder([lesson.rule]) for lesson in forgotten if lesson.rule and lesson.rule not in named]


def _failing(trajectories: Sequence[Trajectory]) -> dict[Lesson, int]:
    """What was missing with how often, most frequent first."""
    lessons = [trajectory.lesson for trajectory in trajectories if trajectory.failed]
    return dict(Counter(lesson for lesson in lessons if lesson).most_common())


def _rejected(question: Question) -> list[str]:
    """What the edits that the gate refused in this epoch wanted to write."""
    lines = _REJECTED.findall(question.fenced("Earlier steps of this epoch"))
    return [line.partition("content=")[2].strip("'\"") for line in lines]


def _with_misjudgement(question: Question, skill: str, wanted: list[Rule], tried: Sequence[str]) -> list[Rule]:
    """The wanted rules, sometimes with a harmful one among them or only that one; not once the notes warn of it."""
    subject = subject_of(question)
    left = [rule for rule in subject.harmful if not rule.line_in(skill) and not any(map(rule.said_by, tried))]
    if not (wanted and left) or subject.warning in question.section("Your notes from earlier epochs"):
        return wanted
    # Drawn from the items and the rules alone: how a prompt is worded shall not change what the demo shows.
    seen = (
        *sorted(each.item for each in question.trajectories),
        *(rule.name for rule in rules_in(skill, subject.style)),
    )
    luck = chance("misjudgement", *seen)
    worst = left[int(chance("which", *seen) * len(left))]
    if luck < ONLY_BAD:
        return [worst]
    return [wanted[0], worst, *wanted[1:]] if luck < ALSO_BAD else wanted


def _summary(lesson: Lesson, count: int, missing: bool) -> Reply:
    why = lesson.lacks if missing else "the skill has a rule, but it was forgotten"
    return {"failure_type": lesson.failure, "count": count, "description": f"{lesson.what}: {why}."}


def _from_successes(question: Question) -> Reply:
    items = sorted(trajectory.item for trajectory in question.trajectories)
    notices = len(items) > 1 and chance("success", *items) < NOTICES_SUCCESS
    subject = subject_of(question)
    new = not subject.habit.line_in(_skill(question)) and not any(map(subject.habit.said_by, _rejected(question)))
    edits = [_append(subject.habit)] if notices and new else []
    patterns: list[Json] = [subject.pattern] if edits else []
    reasoning = subject.praise if edits else "Simulated: nothing that the skill does not say already."
    reply: Reply = {"success_patterns": patterns, "patch": {"reasoning": reasoning, "edits": _json(edits)}}
    if question.number(r"at most (\d+) reminder notes", 0):
        reply["appendix_notes"] = []
    return reply


# --- notes, merging and ranking ------------------------------------------------------------------------------------


def _consolidate(question: Question) -> Reply:
    """All rules that the notes name, in one note."""
    named = rules_named_in(question.section("Reminder notes"), EVERY_STYLE)
    return {"reasoning": f"Simulated: one note for {len(named)} rules.", "appendix_notes": [reminder(named)]}


def _merge(question: Question) -> Reply:
    merged: dict[tuple[str, str, str], Reply] = {}
    for edit in question.proposals:
        op, target, content = str(edit["op"]), str(edit["target"]), str(edit["content"])
        support = edit["support_count"]
        assert isinstance(support, int)
        same = merged.setdefault(
            (op, target, _meaning(content)),
            {"op": op, "target": target, "content": content, "from": [], "support_count": 0},
        )
        sources, total = same["from"], same["support_count"]
        assert isinstance(sources, list)
        assert isinstance(total, int)
        sources.append(edit["label"])
        same["support_count"] = total + support
    ordered = sorted(merged.values(), key=lambda edit: -int(str(edit["support_count"])))
    reasoning = f"Simulated: {len(question.proposals)} proposals say {len(ordered)} different things."
    return {"reasoning": reasoning, "edits": _json(ordered)}


def _meaning(content: str) -> str:
    """What an edit is about, so that two wordings of a rule are one."""
    known = rules_in(content, EVERY_RULE)
    return known[0].name if known else " ".join(content.casefold().split())


def _learning_rate(question: Question) -> Reply:
    """As many as three trajectories or more ask for, at least one."""
    supported = [support for _, support in _RANKED.findall(question.outside) if int(support) >= 3]
    return {
        "learning_rate": max(1, len(supported)),
        "reasoning": "Simulated: every edit with enough support.",
        "confidence": "medium",
        "risk_notes": [],
    }


def _rank(question: Question) -> Reply:
    rows = [(int(index), int(support)) for index, support in _RANKED.findall(question.outside)]
    best = sorted(rows, key=lambda row: (-row[1], row[0]))
    most = question.number(r"Choose the (\d+) most important", len(best))
    return {
        "reasoning": "Simulated: what more trajectories ask for comes first.",
        "selected_indices": [index for index, _ in best[:most]],
    }


# --- epoch-level advice --------------------------------------------------------------------------------------------


def _guide(question: Question) -> Reply:
    skill = _skill(question)
    failing = _failing([each for each in question.trajectories if each.moment == "now"])
    forgotten = [lesson.rule.name for lesson in failing if lesson.rule and lesson.rule.line_in(skill)]
    guidance = subject_of(question).guidance
    if forgotten:
        guidance += f" Most often forgotten so far: {', '.join(forgotten)}."
    reasoning = f"Simulated: rules that are there but were not followed: {', '.join(forgotten) or 'none'}."
    return {"reasoning": reasoning, "slow_update_content": guidance}


def _note(question: Question) -> Reply:
    subject = subject_of(question)
    before = rules_in(question.skill("Skill at the end of the previous epoch"), subject.style)
    now = rules_in(_skill(question), subject.style)
    new = [rule.name for rule in now if rule not in before]
    notes = [
        subject.advice,
        subject.warning,
        f"Kinds that got a rule in this epoch: {', '.join(new) or 'none'}.",
    ]
    return {
        "reasoning": f"Simulated: {len(new)} new rules, {len(now)} in all.",
        "meta_skill_content": "\n".join(f"- {note}" for note in notes),
    }


# --- pieces --------------------------------------------------------------------------------------------------------


def _skill(question: Question) -> str:
    """The newest skill that is shown, without what only other stages may write."""
    return _PROTECTED.sub("", question.skill("Current skill", "Skill now"))


def _append(rule: Rule) -> Reply:
    return {"op": "append", "target": "", "content": f"- {rule.wording}"}


def _delete(line: str) -> Reply:
    return {"op": "delete", "target": line, "content": ""}


def _json(rows: Sequence[Reply]) -> list[Json]:
    return [*rows]


_STAGES: Mapping[Stage, Callable[[Question], Reply]] = {
    "analyst": _analyse,
    "appendix": _consolidate,
    "merge": _merge,
    "learning_rate": _learning_rate,
    "ranking": _rank,
    "slow_update": _guide,
    "meta_skill": _note,
}
