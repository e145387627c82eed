"""How the simulated optimizer merges: what means the same becomes one, with the support of all who said it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

from skillopt_es.adapters.models.simulated.proposals import Reply, rewritten, rows
from skillopt_es.adapters.models.simulated.reading import Question
from skillopt_es.adapters.models.simulated.rules import BREVITY, rules_in
from skillopt_es.adapters.models.simulated.worlds import ALL_HARMFUL, ALL_STYLE
from skillopt_es.events.values import Json


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
    known = rules_in(content, (*ALL_STYLE, *ALL_HARMFUL, BREVITY))
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
