"""
What a model makes of a candidate: a task that stands on its own, and how its answers can be checked. Pure.

It proposes, rules look at what it proposed, and a person decides. Its question has nothing that was not cleaned, and
what it replies is cleaned again: a model may fill a gap with a name that it knows.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib import resources
from typing import cast

from attrs import frozen

from skillopt_es.events.values import Json
from skillopt_es.harvest.mining import FEWEST_WORDS, MOST_CHARACTERS, Candidate
from skillopt_es.harvest.privacy import without_private
from skillopt_es.harvest.review import Task
from skillopt_es.ports import Message

_MOST_SHOWN = 6_000  # as many characters as a request may have: enough to write a check from
_QUOTED = 40  # characters of the answer in a row that a task must not give away
_MOST_CHECKS = 8  # more than eight repeat each other, and each is tried on the answer

SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {
        "usable": {"type": "boolean"},
        "why": {"type": "string"},
        "input": {"type": "string"},
        "checks": {"type": "array", "items": {"type": "object"}},
        "rubric": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "required": ["usable", "why"],
}
"""The form of a reply."""

Unmet = Callable[[Json, str, Sequence[str]], Awaitable[str]]
"""Why an answer, with the tools that were called, does not meet a check; raises ValueError for what is no check."""


@frozen(kw_only=True)
class Proposed:
    """What a model made of a candidate: a task, or why it is none; `dropped` says what rules took out, and why."""

    task: Task | None
    why: str
    dropped: tuple[str, ...] = ()


def question(candidate: Candidate) -> tuple[Message, ...]:
    """What a model is asked about a candidate."""
    given = {
        "request": candidate.asked,
        "answer": candidate.answered[:_MOST_SHOWN],
        "went_on_without_a_correction": candidate.accepted,
        "corrections": list(candidate.rubric),
        "found_checks": list(candidate.checks),
    }
    role = resources.files(__package__).joinpath("proposing.md").read_text(encoding="utf-8").rstrip("\n")
    return Message("system", role), Message("user", json.dumps(given, ensure_ascii=False, indent=1))


async def proposed(reply: Mapping[str, Json], candidate: Candidate, unmet: Unmet) -> Proposed:
    """The task in a reply, as far as rules let it pass; none, and why, where they do not."""
    why = _clean(reply.get("why"))
    if reply.get("usable") is not True:
        return Proposed(task=None, why=why or "it gave no reason")
    asked = _clean(reply.get("input"))
    refused = _wrong_with(asked, candidate)
    checks, dropped = await _checks(reply.get("checks"), candidate, unmet)
    rubric = _rubric(reply.get("rubric"))
    if not refused and not checks and not rubric:
        refused = "nothing is left that says when an answer is right"
    if refused:
        return Proposed(task=None, why=refused, dropped=tuple(dropped))
    task: Task = {"id": f"harvest-{candidate.id}", "type": candidate.kind, "input": asked}
    task |= {"grader": "checks", "checks": cast(Json, checks)} if checks else {"grader": "judge"}
    if rubric:
        task["rubric"] = cast(Json, rubric)
    return Proposed(task={**task, "trust": "untrusted"}, why=why, dropped=tuple(dropped))


def _clean(value: Json) -> str:
    return without_private(value.strip()).text if isinstance(value, str) else ""


def _wrong_with(asked: str, candidate: Candidate) -> str:
    """Why a text is no task; nothing where it may be one."""
    if len(asked.split()) < FEWEST_WORDS or len(asked) > MOST_CHARACTERS:
        return f"its task has fewer than {FEWEST_WORDS} words, or more than {MOST_CHARACTERS} characters"
    answer = " ".join(candidate.answered.split())
    said, known = " ".join(asked.split()), " ".join(candidate.asked.split())
    for at in range(max(1, len(answer) - _QUOTED + 1)):
        piece = answer[at : at + _QUOTED]
        if len(piece) == _QUOTED and piece in said and piece not in known:
            return f"its task gives away the answer: {piece!r}"
    return ""


async def _checks(given: Json, candidate: Candidate, unmet: Unmet) -> tuple[list[Json], list[str]]:
    """Those that are checks and that the answer meets which nobody corrected; and why the others are not among them."""
    kept: list[Json] = []
    dropped: list[str] = []
    for each in (given if isinstance(given, list) else [])[:_MOST_CHECKS]:
        try:
            why = await unmet(each, candidate.answered, candidate.tools)
        except ValueError as error:
            dropped.append(f"a check {error}")
            continue
        if why and candidate.accepted:
            dropped.append(f"the answer that was accepted fails a check: {why}")
        elif each not in kept:
            kept.append(each)
    return kept, dropped


def _rubric(given: Json) -> dict[str, str]:
    found = given.items() if isinstance(given, dict) else ()
    return {name: text for name, value in found if (text := _clean(value)) and name.isidentifier()}
