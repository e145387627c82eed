"""The object that an agent gets, and what may come back."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from attrs import evolve

from skillopt_es.adapters.agents.contract import read_answer, read_printed, task_json
from skillopt_es.adapters.agents.trajectories import UnreadableError
from skillopt_es.ports import AgentStep, AgentTask, Gateway, Message, SkillFiles, Usage

TASK = AgentTask(
    item="t1",
    task="Say three.",
    instructions="Be brief.",
    fields={"language": "de"},
    messages=(Message("system", "Be brief.\n\n## Skill\nCount."), Message("user", "Say three.")),
    skill=SkillFiles(text="Count.", main="SKILL.md", files={"SKILL.md": "Count."}, folder="/somewhere/skill"),
    seed=7,
    deadline_seconds=30.0,
)


def test_the_task_is_one_json_object() -> None:
    """With the skill as text, as files and as a folder, and no gateway where there is none."""
    assert json.loads(json.dumps(task_json(TASK))) == {
        "version": 1,
        "item": "t1",
        "task": "Say three.",
        "instructions": "Be brief.",
        "fields": {"language": "de"},
        "messages": [
            {"role": "system", "content": "Be brief.\n\n## Skill\nCount."},
            {"role": "user", "content": "Say three."},
        ],
        "skill": {
            "text": "Count.",
            "main": "SKILL.md",
            "files": {"SKILL.md": "Count."},
            "folder": "/somewhere/skill",
        },
        "seed": 7,
        "deadline_seconds": 30.0,
        "gateway": None,
    }
    gateway = Gateway(base_url="http://127.0.0.1:9/v1", api_key="secret", model="small")
    assert task_json(evolve(TASK, gateway=gateway))["gateway"] == {
        "base_url": "http://127.0.0.1:9/v1",
        "api_key": "secret",
        "model": "small",
    }


def test_an_answer_alone_may_stand_for_the_object() -> None:
    """As text, or as JSON text; what was printed before the last line is not read."""
    assert read_answer("three").text == "three"
    assert read_printed('"three"').text == "three"
    assert read_printed('loading …\n{"answer": "three"}\n').text == "three"


def test_everything_else_is_optional() -> None:
    """Steps, tokens by our names or by OpenAI's, cost, its own score, which model it asked."""
    answer = read_answer(
        {
            "answer": "three",
            "steps": [{"tool": "count", "input": {"to": 3}, "output": "1 2 3"}, "three"],
            "usage": {"prompt_tokens": 10, "output": 2, "cached_tokens": None},
            "cost": 0.0125,
            "score": {"hard": True, "soft": 1, "note": "sure"},
            "model": "small",
        }
    )
    assert answer.steps == (
        AgentStep(kind="tool", text='count {"to": 3}', output="1 2 3"),
        AgentStep(kind="score", text='{"hard":1.0,"note":"sure","soft":1.0}'),
    )
    assert answer.usage == Usage(input=10, output=2)
    assert (answer.cost, answer.model, answer.error) == (Decimal("0.0125"), "small", "")


def test_what_was_said_last_is_the_answer_of_a_conversation() -> None:
    """An agent that returns its messages need not repeat the last of them."""
    assert read_answer({"messages": [{"role": "assistant", "content": "three"}]}).text == "three"
    assert read_answer({"messages": [{"role": "assistant", "content": "three"}]}).steps == ()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (7, "7 is neither a text nor an object"),
        ({}, "has no `answer`"),
        ({"answer": 7}, "has 7 as `answer`, which is not text"),
        ({"anwser": "three"}, "unknown key 'anwser': did it mean 'answer'"),
        ({"answer": "x", "steps": [], "messages": []}, "has both `steps` and `messages`"),
        ({"answer": "x", "steps": "none"}, "`steps` are not a list"),
        ({"answer": "x", "steps": [{"kind": "thought"}]}, "step 1 is of kind 'thought'"),
        ({"answer": "x", "steps": [{"txt": "thought"}]}, "step 1 has 'txt'"),
        ({"answer": "x", "usage": {"input": -1}}, "has -1 as input tokens"),
        ({"answer": "x", "usage": [1]}, r"`usage` is \[1\]"),
        ({"answer": "x", "cost": "much"}, "`cost` is 'much'"),
        ({"answer": "x", "score": 2}, "`score` is 2"),
        ({"answer": "x", "score": {"soft": 1, "hards": 1}}, "`score` has hards"),
    ],
)
def test_what_is_not_the_contract_says_why(value: object, said: str) -> None:
    """And what would be."""
    with pytest.raises(UnreadableError, match=said):
        read_answer(value)


@pytest.mark.parametrize(("output", "said"), [(" \n", "printed nothing"), ("Hello\nthere", "Hello.nthere")])
def test_a_program_that_prints_no_object_is_told(output: str, said: str) -> None:
    """With what it printed."""
    with pytest.raises(UnreadableError, match=said):
        read_printed(output)


def test_an_agent_may_say_that_it_failed() -> None:
    """In its own words, which is no answer."""
    assert read_answer({"error": "the shop is closed"}).error == "the shop is closed"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"queue": "tea", "urgent": True}, '{"queue": "tea", "urgent": true}'),
        ({"answer": {"queue": "tea"}, "steps": ["I looked."]}, '{"queue": "tea"}'),
        ({"answer": ["tea", "grün"]}, '["tea", "grün"]'),
        ([1, 2], "[1, 2]"),
        ({"score": 3, "queue": "tea"}, '{"score": 3, "queue": "tea"}'),
        ('{"queue": "tea"}', '{"queue": "tea"}'),
    ],
)
def test_where_answers_are_graded_as_json_an_object_is_an_answer(value: object, text: str) -> None:
    """By itself, or as `answer`; it is written as JSON text."""
    assert read_answer(value, as_json=True).text == text
    if not isinstance(value, str):
        with pytest.raises(UnreadableError, match=r"env\.grader: json|neither a text"):
            read_answer(value)


def test_a_printed_object_is_an_answer_too() -> None:
    """In its last line, after whatever it logged."""
    assert read_printed('looking\n{"queue": "tea"}\n', as_json=True).text == '{"queue": "tea"}'


def _nested() -> list[object]:
    value: list[object] = []
    for _ in range(5_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        {"answer": "x", "steps": [{"tool": "t", "input": _nested()}]},
        {"answer": _nested()},
        {"answer": "x", "steps": [{"tool": "t", "output": object()}]},
        {"answer": "x", "messages": [{"role": "assistant", "content": {"a": {1, 2}}}]},
        {"answer": {"when": {1, 2}}},
    ],
)
@pytest.mark.parametrize("as_json", [True, False])
def test_what_is_no_json_is_the_answers_own_fault(value: object, as_json: bool) -> None:
    """A function may return anything, however deep."""
    with pytest.raises(UnreadableError, match=r"nested too deeply|cannot be written as JSON|not text"):
        read_answer(value, as_json=as_json)
