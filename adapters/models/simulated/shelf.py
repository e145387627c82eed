"""
Folders of skills as the simulated models see them: the target opens what a description names, the optimizer tends it.

The target knows a skill by its description alone, until it has opened it. The optimizer creates a skill for each kind
that fails without one, gives some a second name and now and then creates one that nobody needs; an epoch's end is when
it merges what says the same and retires what is never opened.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from skillopt_es.adapters.models.simulated.chance import chance
from skillopt_es.adapters.models.simulated.kinds import Rule, Topic
from skillopt_es.adapters.models.simulated.proposals import Reply
from skillopt_es.adapters.models.simulated.reading import Question, Trajectory
from skillopt_es.adapters.models.simulated.worlds import house_style
from skillopt_es.events.values import Json
from skillopt_es.ports import ChatRequest, ToolCall

_VIEW = "skill_view"
_LISTED = re.compile(r"^- ([a-z0-9-]+): (.+)$", re.MULTILINE)
_UNOPENED = re.compile(r"^- ([a-z0-9-]+): opened 0 ", re.MULTILINE)
_FRONTMATTER = re.compile(r"\A---\n.*?^---\n+", re.MULTILINE | re.DOTALL)
_NEEDLESS = ("polite-phrases", "Polite phrases for the end of a letter.", "- Close letters with kind regards.")
_HAS_NEEDLESS = 0.5  # often enough that each demo shows a skill that is never opened, and its end
_OTHER_NAME = 0.35  # two questions then name the same skill differently often enough that a demo has something to merge


def offers_skills(request: ChatRequest) -> bool:
    """Whether the target may open skills."""
    return any(tool.name == _VIEW for tool in request.tools)


def listed_in(text: str) -> dict[str, str]:
    """The skills of a list by name, with their descriptions."""
    return dict(_LISTED.findall(text))


def opened_in(request: ChatRequest) -> dict[str, str]:
    """What the target has opened, by name."""
    found: dict[str, str] = {}
    for message in request.messages:
        if message.role == "tool" and message.content.startswith('{"skill_id"'):
            told = json.loads(message.content)
            found[str(told["skill_id"])] = str(told.get("content", ""))
    return found


def wanted_skills(request: ChatRequest, system: str, topic: Topic) -> list[ToolCall]:
    """The requests for the skills that fit a question, all at once; none when they are open."""
    have = opened_in(request)
    fitting = [] if topic.rule is None else covering(listed_in(system), topic.rule)
    return [
        ToolCall(f"skill-{number}", _VIEW, json.dumps({"skill_id": skill}))
        for number, skill in enumerate(fitting, start=1)
        if skill not in have
    ]


def covering(listed: Mapping[str, str], rule: Rule) -> list[str]:
    """The skills whose descriptions name what a rule is about."""
    return [skill for skill, said in listed.items() if re.search(rf"\b{re.escape(rule.name)}\b", said, re.IGNORECASE)]


# --- the optimizer -------------------------------------------------------------------------------------------------


def is_about_skills(question: Question) -> bool:
    """Whether a question is about a folder of skills."""
    return bool(question.fenced_under("Names and descriptions"))


def edit_skills(question: Question, failing: Sequence[Topic]) -> Reply:
    """Edits after one group of attempts: what failed without a rule gets one, in its own skill."""
    listed = listed_in(question.fenced_under("Names and descriptions"))
    opened = question.fenced_under("Skills that were open")
    items = sorted(each.item for each in question.trajectories)
    edits: list[Json] = []
    for topic in failing:
        rule = topic.rule
        if rule is None or rule.line_in(opened):
            continue
        there = covering(listed, rule)
        edits.append(_edit("append", there[0], content=f"- {rule.wording}") if there else _created(rule, items))
    if edits and _NEEDLESS[0] not in listed and chance("needless", *items) < _HAS_NEEDLESS:
        name, description, content = _NEEDLESS
        edits.append(_edit("create", name, description=description, content=content))
    kinds = ", ".join(topic.kind for topic in failing) or "none"
    return {"reasoning": f"Simulated: kinds that fail: {kinds}.", "edits": edits}


def _created(rule: Rule, items: Sequence[str]) -> Reply:
    """A skill for what a rule is about; two questions may call it differently."""
    name = rule.name.replace(" ", "-")
    if chance("name", rule.name, *items) < _OTHER_NAME:
        name = f"writing-{name}"
    return _edit("create", name, description=f"How {rule.name} are written.", content=f"- {rule.wording}")


def _edit(op: str, skill: str, *, description: str = "", content: str = "") -> Reply:
    return {"op": op, "skill": skill, "file": "", "target": "", "description": description, "content": content}


def manage_skills(question: Question) -> Reply:
    """Changes of the whole folder: skills about the same become one, and one that nobody opens goes."""
    listed = listed_in(question.fenced_under("Names and descriptions"))
    changes: list[Json] = []
    for rule in house_style():
        same = covering(listed, rule)
        if len(same) > 1:
            changes.append(_merge(question, same, rule))
    idle = _UNOPENED.findall(question.fenced_under("What was opened in this epoch"))
    changes += [_change("retire", [skill], [], "nobody opens it") for skill in idle]
    most = question.number(r"At most (\d+) changes", 1)
    return {"reasoning": f"Simulated: {len(changes)} things to tidy.", "changes": changes[:most]}


def _merge(question: Question, skills: Sequence[str], rule: Rule) -> Reply:
    """One skill with every line of these, each once."""
    files = {label.removesuffix("/SKILL.md"): text for label, text in question.labelled("Skills")}
    bodies = [_FRONTMATTER.sub("", files[skill]) for skill in skills if skill in files]
    lines = dict.fromkeys(line for body in bodies for line in body.splitlines() if line.strip())
    into: Reply = {
        "name": f"{rule.name.replace(' ', '-')}-in-answers",
        "description": f"How {rule.name} are written.",
        "content": "\n".join(lines),
    }
    return _change("merge", skills, [into], "they are about the same")


def _change(kind: str, skills: Sequence[str], into: Sequence[Reply], why: str) -> Reply:
    return {"kind": kind, "skills": [*skills], "into": [*into], "why": why}


def failing_topics(trajectories: Sequence[Trajectory]) -> list[Topic]:
    """The kinds that failed, each once, in the order in which they were met."""
    return [*dict.fromkeys(each.topic for each in trajectories if each.failed and each.topic is not None)]
