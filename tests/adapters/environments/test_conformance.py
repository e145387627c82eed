"""What every environment keeps to, whatever its benchmark."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.environments import OPEN, SKILL, Target, data_settings, open_on, open_rows

from skillopt_es.errors import ConfigError
from skillopt_es.events.values import Measured
from skillopt_es.ports import CallFailed, ChatReply, Environment, Episode, Item, Message

NAMES = sorted(OPEN)
HOSTILE = ["../x", "/etc/passwd", "a/b", "CON", "x" * 3000, "ü🙂", "a:b", "A:b", "..", "a\nb"]
REPLIES = [
    "<answer>gold</answer>",
    "<answer>B</answer>",
    "gold",
    "<answer>golden gold</answer>",
    "lead",
    "",
    "<answer></answer>",
    "<think>I stay.</think><action>look</action>",
    "<think>I go.</think><action>go to desk 1</action>",
]
GAME = """(define (problem one-step) (:domain alfred)
(:objects agent1 - agent Desk_bar_1 - receptacle DeskType - rtype l0 l1 - location)
(:init (atLocation agent1 l0) (receptacleType Desk_bar_1 DeskType) (receptacleAtLocation Desk_bar_1 l1))
(:goal (atLocation agent1 l1)))"""
SCRIPT = "import openpyxl\nbook = openpyxl.load_workbook(INPUT_PATH)\n{}\nbook.save(OUTPUT_PATH)"
CHANGES = ("book.active['D2'] = 'gold'", "book.active['D2'] = 'lead'", "book.active['D2'] = nothing")
SCRIPTS = [*(f"```python\n{SCRIPT.format(change)}\n```" for change in CHANGES), "", "1"]
CODES = {"", "wrong_answer", "wrong_choice", "near_miss", "format", "no_answer", "refused"}
CODES |= {"exec_error", "no_output", "eval_mismatch", "step_limit"}
MANY = {"spreadsheetbench": 6}  # programs are started for each


def row(name: str) -> dict[str, Any]:
    return {"id": name, "input": f"Input of {name}", "expected": "gold", "grader": "f1",
            "question": f"Question of {name}", "context": "[DOC] c", "answers": ["gold"],
            "choices": ["lead", "iron", "gold", "golden"], "correct_choice": "C", "answer": "gold",
            "game": {"task": f"Input of {name}", "pddl_problem": GAME}}  # fmt: skip


def rows(name: str) -> list[dict[str, Any]]:
    return [row(str(number)) for number in range(MANY.get(name, 30))]


def scripted(messages: Sequence[Message]) -> str:
    """An answer that depends on what was asked and on nothing else."""
    return random.Random(repr(messages)).choice(SCRIPTS if "INPUT_PATH" in messages[0].content else REPLIES)


class Late:
    """A target whose answers come in random order."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    async def __call__(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> ChatReply:
        await asyncio.sleep(self.dice.random() / 100)
        return ChatReply(text=scripted(messages), finish="stop")


def all_at_once(environment: Environment, items: Sequence[Item], target: Any) -> list[Episode]:
    async def gather() -> list[Episode]:
        return await asyncio.gather(*(environment.attempt(item, SKILL, target, seed=1) for item in items))

    return asyncio.run(gather())


@pytest.mark.parametrize("name", NAMES)
def test_the_same_answers_give_the_same_episodes(tmp_path: Path, name: str) -> None:
    """Neither the folder, nor the order of answers, nor an earlier attempt changes an episode."""
    found = []
    for seed in range(3):
        folder = tmp_path / str(seed)
        folder.mkdir()
        environment, splits = open_rows(folder, name, rows(name))
        found.append(all_at_once(environment, splits.train, Late(seed)))
        assert str(folder) not in repr(found[-1])
    assert found[0] == found[1] == found[2]
    assert len({episode.failure for episode in found[0]}) > 2


@pytest.mark.parametrize("name", NAMES)
def test_every_episode_is_whole(tmp_path: Path, name: str) -> None:
    """Scores are within bounds, a failure has a code exactly when it is one, and there always is a trajectory."""
    environment, splits = open_rows(tmp_path, name, rows(name))
    for item, episode in zip(splits.train, all_at_once(environment, splits.train, Target(scripted)), strict=True):
        assert isinstance(episode.outcome, Measured)
        assert 0 <= episode.outcome.hard <= 1
        assert 0 <= episode.outcome.soft <= 1
        assert bool(episode.failure) == (episode.outcome.hard < 1)
        assert episode.failure in CODES
        kinds = [record.kind for record in episode.records]
        assert (kinds[:3], kinds[-1]) == (["system", "user", "reply"], "feedback")
        assert item.id in episode.task


@pytest.mark.parametrize("name", NAMES)
def test_hostile_ids_stay_names(tmp_path: Path, name: str) -> None:
    """Ids that look like paths are told apart, and nothing but the data is on disk afterwards."""
    environment, splits = open_rows(tmp_path, name, [row(each) for each in HOSTILE])
    assert [item.id for item in splits.train] == HOSTILE
    before = sorted(tmp_path.rglob("*"))
    all_at_once(environment, splits.train, Target(scripted))
    asyncio.run(environment.aclose())
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", NAMES)
def test_a_failed_call_passes_through(tmp_path: Path, name: str) -> None:
    """The trainer, not the environment, decides what an outage means."""

    async def down(messages: Sequence[Message], *, max_tokens: int | None = None) -> ChatReply:
        raise CallFailed("server", "no answer")

    environment, splits = open_rows(tmp_path, name, [row("1")])
    with pytest.raises(CallFailed, match="no answer"):
        asyncio.run(environment.attempt(splits.train[0], SKILL, down, seed=1))


@pytest.mark.parametrize("name", NAMES)
def test_no_gold_reaches_the_target(tmp_path: Path, name: str) -> None:
    """Expected answers are in no message."""
    environment, splits = open_rows(tmp_path, name, [row("1")])
    target = Target(["x"])
    all_at_once(environment, splits.train, target)
    shown = json.dumps([message.content for message in target.asked[0]])
    if name == "livemathematicianbench":
        shown = shown.replace(". golden", "").replace(". gold", "")  # among the choices, without a mark
    assert "gold" not in shown


@pytest.mark.parametrize(
    ("name", "key", "near"), [("tasks", "gradr", "grader"), ("searchqa", "max_turn", "max_turns"), ("tasks", "qq", "")]
)
def test_an_unknown_option_is_refused_with_the_nearest(tmp_path: Path, name: str, key: str, near: str) -> None:
    """The error names the key, and the hint the ones there are."""
    with pytest.raises(ConfigError, match=f"^env.{key}: environment '{name}' has no such option") as caught:
        open_on(tmp_path, name, data_settings(), **{key: 1})
    assert ("did you mean" in caught.value.hint) == bool(near)
    assert near in caught.value.hint


@pytest.mark.parametrize("name", NAMES)
def test_an_environment_knows_its_name(tmp_path: Path, name: str) -> None:
    """The name is the registry's."""
    assert open_on(tmp_path, name, data_settings()).name == name
