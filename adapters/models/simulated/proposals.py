"""What the simulated optimizer proposes, and how it merges: what means the same becomes one, with all its support."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import cast

from skillopt_es.adapters.models.simulated.chance import chance
from skillopt_es.adapters.models.simulated.kinds import Rule, rules_in
from skillopt_es.adapters.models.simulated.reading import Question
from skillopt_es.adapters.models.simulated.worlds import all_harmful, all_style
from skillopt_es.events.values import Json

FORGETS_GUIDANCE = 0.4  # often enough that a short demo shows a protected block that is put back
ADD, REMOVE = "Add the rule: ", "Remove the line: "
BREVITY = Rule(
    name="brevity",
    keywords=(r"\bonly the (?:answer|value)\b",),
    wording="Give only the answer, without repeating the question.",
)

_PROTECTED = re.compile(r"\n*<!-- (\w+)_START -->.*?<!-- \1_END -->\n*", re.DOTALL)
_REJECTED = re.compile(r"^\d+\. \[(\w+)\](.*)$", re.MULTILINE)
_SAYS = re.compile(r"(?:content|instruction|changes)=")

Reply = dict[str, Json]


def proposed(question: Question, drop: Sequence[str], add: Sequence[Rule]) -> Reply:
    """An analyst's proposal: lines that shall go and rules that shall come."""
    if question.section("Form"):
        changes: list[Json] = [*(f"Removed: {line}" for line in drop), *(f"Added: {rule.wording}" for rule in add)]
        if not changes:
            return {"skill_candidates": []}
        text = rewritten(question.skill("Current skill"), drop, [f"- {rule.wording}" for rule in add])
        return {"skill_candidates": [{"title": "Rules", "change_summary": changes, "new_skill": text}]}
    most = question.number(r"at most (\d+) (?:edits|suggestions)", 4)
    if "suggestions" in question.section("Budget"):
        removals = [_suggestion("remove_rule", "a rule that does harm", f"{REMOVE}{line}") for line in drop]
        additions = [_suggestion("add_rule", rule.name, f"{ADD}{rule.wording}") for rule in add]
        return {"revise_suggestions": rows([*removals, *additions][:most])}
    deletions: list[Reply] = [{"op": "delete", "target": line, "content": ""} for line in drop]
    return {"edits": rows([*deletions, *map(_append, add)][:most])}


def _append(rule: Rule) -> Reply:
    return {"op": "append", "target": "", "content": f"- {rule.wording}"}


def _suggestion(kind: str, title: str, instruction: str) -> Reply:
    motivation = "Simulated: seen in these trajectories."
    return {
        "type": kind,
        "title": title,
        "motivation": motivation,
        "instruction": instruction,
        "priority_hint": "high",
    }


def rejected_in(question: Question) -> list[str]:
    """What the proposals that the gate refused in this epoch wanted to write."""
    found: list[str] = []
    for kind, line in _REJECTED.findall(question.fenced_under("Earlier steps of this epoch")):
        says = _SAYS.search(line)
        said = line[says.end() :].partition("  priority=")[0].strip("'\"") if says else ""
        if kind == "draft":
            added = [change for change in said.split("; ") if not change.startswith("Removed: ")]
            # One verdict on many changes: what concerns all answers is suspected first.
            found += [change for change in added if not rules_in(change, all_style())] or added
        elif kind != "remove_rule":
            found.append(said)
    return found


def rewritten(skill: str, drop: Sequence[str], add: Sequence[str]) -> str:
    """The whole skill without some lines and with new ones; now and then its protected blocks are forgotten."""
    body, blocks = _PROTECTED.sub("\n\n", skill), [found.group().strip() for found in _PROTECTED.finditer(skill)]
    lines = [line for line in body.rstrip().splitlines() if line not in drop]
    gap = [] if lines and lines[-1].startswith("- ") else [""]
    text = "\n".join([*lines, *(gap if add else []), *add])
    forgets = blocks and chance("forgets", text) < FORGETS_GUIDANCE
    return "\n\n".join([text, *([] if forgets else blocks)]) + "\n"


def rewrite(question: Question) -> Reply:
    """The skill with every selected suggestion followed."""
    told = [str(each["instruction"]) for found in question.fenced("suggestions") for each in json.loads(found)]
    drop = [line.removeprefix(REMOVE) for line in told if line.startswith(REMOVE)]
    add = [f"- {line.removeprefix(ADD)}" for line in told if line.startswith(ADD)]
    changes: list[Json] = [*(f"Removed: {line}" for line in drop), *(f"Added: {line}" for line in add)]
    return {
        "reasoning": f"Simulated: {len(told)} suggestions followed.",
        "change_summary": changes,
        "new_skill": rewritten(question.skill("Current skill"), drop, add),
    }


def rows(replies: Sequence[Reply]) -> list[Json]:
    """Objects as a JSON list."""
    return [*replies]


def merged(question: Question) -> Reply:
    """The proposals of a merge question, each meaning once."""
    drafts = question.fenced("draft ")
    if drafts:
        return _merged_drafts(question, drafts)
    suggestions = question.fenced("suggestions")
    if suggestions:
        made = [cast(Reply, each) for group in json.loads(suggestions[0]) for each in group["revise_suggestions"]]
        keys = ("type", "title", "motivation", "instruction", "priority_hint")
        return _joined(made, "revise_suggestions", keys, says="instruction")
    return _joined(question.proposals, "edits", ("op", "target", "content"), says="content")


def _joined(made: Sequence[Reply], called: str, keys: Sequence[str], *, says: str) -> Reply:
    """The proposals that differ in kind, target or meaning; the ones with most support first."""
    different: dict[tuple[str, str, str], Reply] = {}
    for each in made:
        key = (str(each[keys[0]]), str(each.get("target", "")), _meaning(str(each[says])))
        blank: Reply = {**{name: each[name] for name in keys}, "from": [], "support_count": 0}
        same = different.setdefault(key, blank)
        sources, total, support = same["from"], same["support_count"], each["support_count"]
        assert isinstance(sources, list)
        assert isinstance(total, int)
        assert isinstance(support, int)
        sources.append(each["label"])
        same["support_count"] = total + support
    ordered = sorted(different.values(), key=lambda each: -int(str(each["support_count"])))
    reasoning = f"Simulated: {len(made)} proposals say {len(ordered)} different things."
    return {"reasoning": reasoning, called: rows(ordered)}


def _meaning(content: str) -> str:
    """What a proposal is about, so that two wordings of a rule are one."""
    known = rules_in(content, (*all_style(), *all_harmful(), BREVITY))
    return known[0].name if known else " ".join(content.casefold().split())


def _merged_drafts(question: Question, drafts: Sequence[str]) -> Reply:
    """One draft that drops what any of them drops, and adds what any of them adds."""
    current = question.skill("Current skill")
    before = current.splitlines()
    after = [draft.splitlines() for draft in drafts]
    drop = [line for line in before if line.startswith("- ") and any(line not in lines for lines in after)]
    new = {_meaning(line): line for lines in after for line in lines if line.startswith("- ") and line not in before}
    changes: list[Json] = [*(f"Removed: {line}" for line in drop), *(f"Added: {line}" for line in new.values())]
    return {
        "reasoning": f"Simulated: {len(drafts)} drafts have {len(new)} new rules.",
        "skill_candidates": [
            {
                "title": "Rules",
                "change_summary": changes,
                "new_skill": rewritten(current, drop, [*new.values()]),
                "from": [f"E{number}" for number in range(1, len(drafts) + 1)],
                "support_count": question.number(r"support_count (\d+)", 1),
            }
        ],
    }
