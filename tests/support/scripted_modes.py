"""The scripted optimizer in the modes that rewrite: it suggests or drafts what the other one edits, sometimes badly."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from skillopt_es.ports import ChatRequest
from skillopt_es.prompts import system_prompt
from support.scripted import ScriptedModel, ScriptedWorld, chance, optimizer_reply

MODES = ("rewrite_from_suggestions", "full_rewrite_minibatch")
FRONT = "---\nname: scripted\ndescription: a skill\n---\n"
SKILL = f"""{FRONT}
# Scripted

<!-- APPENDIX_START -->
- note: old
<!-- APPENDIX_END -->

<!-- SLOW_UPDATE_START -->
- note: slow
<!-- SLOW_UPDATE_END -->
"""
BLOCK = re.compile(r"<!-- (\w+)_START -->.*?<!-- \1_END -->\n?", re.DOTALL)


def rewriting_reply(request: ChatRequest) -> str:
    """What the optimizer says at each stage, by the prompt that it is given."""
    told = request.messages[0].content
    name = next((name for name in _ANSWERS if told.startswith(system_prompt(name))), "")
    return json.dumps(_ANSWERS[name](request.messages[1].content)) if name else optimizer_reply(request)


def rewriting_world(reply: Callable[[ChatRequest], str] = rewriting_reply, **more: object) -> ScriptedWorld:
    """A scripted world whose optimizer knows the modes."""
    return ScriptedWorld(optimizer=ScriptedModel("scripted optimizer", reply), **more)  # type: ignore[arg-type]


def fenced(user: str, label: str) -> list[str]:
    """The texts in fences whose label begins like this."""
    return [text for _, text in re.findall(rf"^(~~~~+) {label}[^\n]*\n(.*?)\n\1$", user, re.MULTILINE | re.DOTALL)]


def new_skill(user: str, add: list[str]) -> str:
    """The current skill with more lines; by chance without its protected parts, or with them altered."""
    text = fenced(user, "skill")[0]
    text = "" if text == "(empty)" else text
    luck = chance(user)
    if luck < 0.3:
        text = BLOCK.sub("", text)
    elif luck < 0.5:
        text = text.replace("name: scripted", "name: mine").replace("note", "other note")
    return "\n".join([text.rstrip(), *add])


def _wanted(user: str) -> list[str]:
    skill = fenced(user, "skill")[0]
    kinds = re.findall(r"kind: (\w+), wanted: right, got: wrong", user)
    missing = sorted({kind for kind in kinds if f"know {kind}" not in skill})
    word = "spoil" if chance(user) < 0.2 else "know"
    return [f"- {word} {kind}" for kind in missing[:3]]


def _suggest(user: str) -> dict[str, object]:
    rows = [{"type": "add_rule", "title": line, "instruction": line, "priority_hint": "high"} for line in _wanted(user)]
    return {"patch": {"reasoning": "kinds are missing", "revise_suggestions": rows}}


def _draft(user: str) -> dict[str, object]:
    add = _wanted(user)
    rows = [{"title": "more", "change_summary": add, "new_skill": new_skill(user, add)}] if add else []
    return {"patch": {"reasoning": "kinds are missing", "skill_candidates": rows}}


def _merge_suggestions(user: str) -> dict[str, object]:
    made = [each for group in json.loads(fenced(user, "suggestions")[0]) for each in group["revise_suggestions"]]
    merged = {each["instruction"]: {**each, "from": []} for each in made}
    for each in made:
        merged[each["instruction"]]["from"].append(each["label"])
    return {"reasoning": "joined", "revise_suggestions": list(merged.values())}


def _merge_drafts(user: str) -> dict[str, object]:
    lines = [line for draft in fenced(user, "draft ") for line in draft.splitlines() if line.startswith("- ")]
    known = fenced(user, "skill")[0].splitlines()
    add = [line for line in dict.fromkeys(lines) if line not in known and "note" not in line]
    row = {"title": "all", "change_summary": add, "new_skill": new_skill(user, add), "from": ["E1", "E2"]}
    return {"reasoning": "joined", "skill_candidates": [row]}


def _rewrite(user: str) -> dict[str, object]:
    add = [each["instruction"] for each in json.loads(fenced(user, "suggestions")[0])]
    return {"reasoning": "done", "change_summary": add, "new_skill": new_skill(user, add)}


_ANSWERS: dict[str, Callable[[str], dict[str, object]]] = {
    "analyst_failure_rewrite": _suggest,
    "analyst_success_rewrite": lambda user: {"patch": {"reasoning": "fine", "revise_suggestions": []}},
    "merge_failure_rewrite": _merge_suggestions,
    "merge_success_rewrite": _merge_suggestions,
    "merge_final_rewrite": _merge_suggestions,
    "rewrite_skill": _rewrite,
    "analyst_failure_full_rewrite": _draft,
    "analyst_success_full_rewrite": lambda user: {"patch": {"reasoning": "fine", "skill_candidates": []}},
    "merge_failure_full_rewrite": _merge_drafts,
    "merge_success_full_rewrite": _merge_drafts,
    "merge_final_full_rewrite": _merge_drafts,
}
