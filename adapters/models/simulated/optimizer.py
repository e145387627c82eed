"""The simulated optimizer: one JSON reply for each stage, made from what the question shows."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from skillopt_es.adapters.models.simulated import shelf
from skillopt_es.adapters.models.simulated.chance import chance
from skillopt_es.adapters.models.simulated.kinds import Rule, Topic, rules_in
from skillopt_es.adapters.models.simulated.proposals import BREVITY, Reply, merged, proposed, rejected_in, rewrite, rows
from skillopt_es.adapters.models.simulated.reading import Question, Trajectory
from skillopt_es.adapters.models.simulated.reminders import appendix_of, reminder, rules_named_in
from skillopt_es.adapters.models.simulated.worlds import all_style
from skillopt_es.events.values import Json, Stage
from skillopt_es.ports import ChatRequest

ONLY_BAD = 0.15  # of all questions: without harmful rules a demo's gate has nothing to refuse
ALSO_BAD = 0.3  # the same with a good rule as well, so that a bundle can be part right; less the share above
NOTICES_SUCCESS = 0.3  # seldom enough that most edits come from failures, as with real optimizers
WARNING = "Rules about all answers (their length, their case, their grammar) hurt: leave them out."

_RANKED = re.compile(r"^\[(\d+)\] .*support=(\d+)$", re.MULTILINE)
_PROTECTED = re.compile(r"<!-- (\w+)_START -->.*?<!-- \1_END -->", re.DOTALL)


def advise(request: ChatRequest) -> str:
    """The reply to the first user message, as the JSON object that its stage asks for."""
    users = [message.content for message in request.messages if message.role == "user"]
    answer = _STAGES.get(request.stage)
    if answer is None or not users:
        return "This is simulated-optimizer."
    return json.dumps(answer(Question(users[0])), ensure_ascii=False, indent=1)


# --- analysts ------------------------------------------------------------------------------------------------------


def _analyse(question: Question) -> Reply:
    if shelf.is_about_skills(question):
        return shelf.edit_skills(question, shelf.failing_topics(question.trajectories))
    failed = any(trajectory.failed for trajectory in question.trajectories)
    return _from_failures(question) if failed else _from_successes(question)


def _from_failures(question: Question) -> Reply:
    skill = _skill(question)
    failing = _failing(question.trajectories)
    missing = [topic for topic in failing if topic.rule and not topic.rule.line_in(skill)]
    tried = rejected_in(question)
    wanted = [topic.rule for topic in missing if topic.rule and not any(map(topic.rule.said_by, tried))]
    drop = [rule.line_in(skill) for rule in question.world.harmful if rule.line_in(skill)]
    add = _with_misjudgement(question, skill, wanted, tried)
    summary = [_summary(question.world.mistake, topic, count, topic in missing) for topic, count in failing.items()]
    kinds = ", ".join(topic.kind for topic in missing) or "none"
    reasoning = f"Simulated: kinds that fail and have no rule: {kinds}."
    patch: Reply = {"reasoning": reasoning, **proposed(question, drop, add)}
    reply: Reply = {"failure_summary": rows(summary), "patch": patch}
    notes = question.number(r"at most (\d+) reminder notes", 0)
    if notes:
        for row, topic in zip(summary, failing, strict=True):
            row["cause"] = "SKILL_DEFECT" if topic in missing else "EXECUTION_LAPSE"
        reply["appendix_notes"] = [*_reminders(question, [topic for topic in failing if topic not in missing])[:notes]]
    return reply


def _reminders(question: Question, forgotten: Sequence[Topic]) -> list[str]:
    """A note on each rule that was forgotten and that no note names yet."""
    named = rules_named_in(appendix_of(question.skill("Current skill")))
    return [reminder([topic.rule]) for topic in forgotten if topic.rule and topic.rule not in named]


def _failing(trajectories: Sequence[Trajectory]) -> dict[Topic, int]:
    """The kinds that failed with how often, most frequent first."""
    topics = [trajectory.topic for trajectory in trajectories if trajectory.failed]
    return dict(Counter(topic for topic in topics if topic).most_common())


def _with_misjudgement(question: Question, skill: str, wanted: list[Rule], tried: Sequence[str]) -> list[Rule]:
    """The wanted rules, sometimes with a harmful one among them or only that one; not once the notes warn of it."""
    left = [rule for rule in question.world.harmful if not rule.line_in(skill) and not any(map(rule.said_by, tried))]
    if not (wanted and left) or WARNING in question.section("Your notes from earlier epochs"):
        return wanted
    # Drawn from the items and the rules alone: how a prompt is worded shall not change what the demo shows.
    seen = (*sorted(each.item for each in question.trajectories), *(rule.name for rule in rules_in(skill, all_style())))
    luck = chance("misjudgement", *seen)
    worst = left[int(chance("which", *seen) * len(left))]
    if luck < ONLY_BAD:
        return [worst]
    return [wanted[0], worst, *wanted[1:]] if luck < ALSO_BAD else wanted


def _summary(mistake: str, topic: Topic, count: int, missing: bool) -> Reply:
    why = "the skill has no rule for its form" if missing else "the skill has a rule, but it was forgotten"
    return {
        "failure_type": f"{topic.kind} form",
        "count": count,
        "description": f"{mistake.format(kind=topic.kind)}: {why}.",
    }


def _from_successes(question: Question) -> Reply:
    items = sorted(trajectory.item for trajectory in question.trajectories)
    notices = len(items) > 1 and chance("success", *items) < NOTICES_SUCCESS
    new = not BREVITY.line_in(_skill(question)) and not any(map(BREVITY.said_by, rejected_in(question)))
    add = [BREVITY] if notices and new else []
    patterns: list[Json] = ["The answers hold nothing but what was asked for."] if add else []
    reasoning = "Simulated: short answers pass." if add else "Simulated: nothing that the skill does not say already."
    reply: Reply = {"success_patterns": patterns, "patch": {"reasoning": reasoning, **proposed(question, [], add)}}
    if question.number(r"at most (\d+) reminder notes", 0):
        reply["appendix_notes"] = []
    return reply


# --- notes and choosing --------------------------------------------------------------------------------------------


def _consolidate(question: Question) -> Reply:
    """All rules that the notes name, in one note."""
    named = rules_named_in(question.section("Reminder notes"))
    return {"reasoning": f"Simulated: one note for {len(named)} rules.", "appendix_notes": [reminder(named)]}


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


# --- texts of an epoch's end ------------------------------------------------------------------------------------------


def _guide(question: Question) -> Reply:
    skill = _skill(question)
    failing = _failing([each for each in question.trajectories if each.moment == "now"])
    forgotten = [topic.rule.name for topic in failing if topic.rule and topic.rule.line_in(skill)]
    guidance = "Before you answer, re-check every rule of this document that fits the question."
    if forgotten:
        guidance += f" Most often forgotten so far: {', '.join(forgotten)}."
    reasoning = f"Simulated: rules that are there but were not followed: {', '.join(forgotten) or 'none'}."
    return {"reasoning": reasoning, "slow_update_content": guidance}


def _note(question: Question) -> Reply:
    if shelf.is_about_skills(question):
        return shelf.manage_skills(question)
    before = rules_in(question.skill("Skill at the end of the previous epoch"), all_style())
    now = rules_in(_skill(question), all_style())
    new = [rule.name for rule in now if rule not in before]
    notes = [
        "Rules that name one kind of value and show its form help.",
        WARNING,
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


_STAGES: Mapping[Stage, Callable[[Question], Reply]] = {
    "analyst": _analyse,
    "appendix": _consolidate,
    "merge": merged,
    "learning_rate": _learning_rate,
    "ranking": _rank,
    "rewrite": rewrite,
    "slow_update": _guide,
    "meta_skill": _note,
}
