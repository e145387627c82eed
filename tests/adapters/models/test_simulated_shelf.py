"""The simulated models at folders of skills: what the target opens, and what the optimizer makes of a question."""

from __future__ import annotations

import json

from skillopt_es.adapters.models.simulated.reading import Question
from skillopt_es.adapters.models.simulated.shelf import covering, is_about_skills, listed_in, manage_skills, opened_in
from skillopt_es.adapters.models.simulated.target import respond
from skillopt_es.adapters.models.simulated.worlds import house_style
from skillopt_es.engine.trajectories import fenced
from skillopt_es.ports import ChatRequest, Message, ToolCall
from skillopt_es.skill.tools import LIST, VIEW

LISTED = "- dates: How dates are written.\n- polite-phrases: Letters.\n- writing-dates: How dates are written."
TASK = "When was the offer for Leipzig sent?\nNote: Ms Maria Brandt sent the offer on 9 November 2023."


def asked(*more: Message) -> ChatRequest:
    """A task with these skills to open."""
    system = Message("system", f"## Skill\n{LISTED}")
    return ChatRequest(
        slot="s", stage="rollout", messages=(system, Message("user", TASK), *more), max_tokens=99, tools=(LIST, VIEW)
    )


def test_the_target_opens_what_a_description_names_and_follows_what_it_read() -> None:
    """All at once; a description alone is no rule."""
    calls = respond(asked())
    assert isinstance(calls, list)
    assert [json.loads(call.arguments)["skill_id"] for call in calls] == ["dates", "writing-dates"]
    told = [
        Message("tool", json.dumps({"skill_id": name, "content": text}), tool_call_id=name)
        for name, text in (("dates", "- Write dates as YYYY-MM-DD."), ("writing-dates", "- Be brief."))
    ]
    request = asked(Message("assistant", "", tool_calls=tuple(calls)), *told)
    assert opened_in(request) == {"dates": "- Write dates as YYYY-MM-DD.", "writing-dates": "- Be brief."}
    assert respond(request) == "2023-11-09"


def test_without_tools_a_list_is_read_as_any_skill() -> None:
    """As before."""
    request = ChatRequest(slot="s", stage="rollout", messages=asked().messages, max_tokens=99)
    assert not isinstance(respond(request), ToolCall | list)


def test_the_optimizer_merges_what_is_about_the_same_and_retires_what_nobody_opens() -> None:
    """At most as many changes as are asked for, each with all that it needs."""
    files = "\n\n".join(
        fenced(f"{name}/SKILL.md", f"---\nname: {name}\ndescription: d\n---\n\n- {name} rule")
        for name in listed_in(LISTED)
    )
    table = "- dates: opened 3 (3 passed)\n- polite-phrases: opened 0 (0 passed)"
    question = Question(
        f"## Skills\n{files}\n\n## Names and descriptions\n{fenced('skills', LISTED)}\n\n"
        f"## What was opened in this epoch\n{fenced('views', table)}\n\nAt most 2 changes."
    )
    assert is_about_skills(question)
    changes = manage_skills(question)["changes"]
    assert isinstance(changes, list)
    merge, retire = changes
    assert isinstance(merge, dict)
    assert (merge["skills"], merge["into"]) == (
        ["dates", "writing-dates"],
        [
            {
                "name": "dates-in-answers",
                "description": "How dates are written.",
                "content": "- dates rule\n- writing-dates rule",
            }
        ],
    )
    assert isinstance(retire, dict)
    assert retire["skills"] == ["polite-phrases"]
    dates = next(rule for rule in house_style() if rule.name == "dates")
    assert covering({"updates": "How updates go."}, dates) == []
