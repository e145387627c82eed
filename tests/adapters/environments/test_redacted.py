"""What graders and environments say reaches nobody with a key in it."""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import yaml
from attrs import frozen

from skillopt_es.adapters.environments.redacted import RedactedEnvironment, RedactedHands
from skillopt_es.adapters.models.redaction import REDACTED, Redactor
from skillopt_es.config import load_config
from skillopt_es.errors import ConfigError
from skillopt_es.events.values import Failed, Json, Measured, SkillTree
from skillopt_es.ports import (
    Answers,
    Ask,
    Asking,
    AsksJudge,
    CallFailed,
    ChatReply,
    Environment,
    Episode,
    Item,
    Message,
    Splits,
    Tool,
    TrajectoryRecord,
    Walled,
    can_regrade,
    guide_of,
    required,
)
from skillopt_es.sessions.opening import known_secrets, open_environment

KEY = "sk-canary-Zx81Qw7mnbvcpL"
SKILL = SkillTree({"SKILL.md": "Be brief.\n"})


class Says:
    """A target that notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def __call__(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int | None = None,
        tools: Sequence[Tool] = (),
        tool_choice: str = "",
    ) -> ChatReply:
        """Always the same answer."""
        self.asked += [message.content for message in messages]
        return ChatReply(text="42", finish="stop")


def opened(folder: Path, code: str, environ: Mapping[str, str]) -> Environment:
    """The environment of a project with this grader."""
    rows = [{"id": split, "input": "?", "expected": "7", "split": split} for split in ("train", "val")]
    (folder / "tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "SKILL.md").write_text("Be brief.\n")
    (folder / "grader.py").write_text(code)
    model = {"optimizer": "o", "target": "t", "api_key_env": "MY_KEY", "base_url": "http://127.0.0.1:9/v1"}
    env = {
        "name": "tasks",
        "data_path": "tasks.jsonl",
        "split_mode": "field",
        "skill_init": "SKILL.md",
        "grader": "python:grader.py:grade",
    }
    (folder / "config.yaml").write_text(yaml.safe_dump({"model": model, "env": env}))
    return open_environment(load_config(folder / "config.yaml"), environ)


async def graded(environment: Environment) -> Episode:
    """The first item's episode."""
    return await environment.attempt(environment.load().train[0], SKILL, Says(), seed=1)


@pytest.mark.parametrize("head", ["def", "async def"])
@pytest.mark.parametrize("before", [0, 270])
def test_an_exception_of_a_grader_loses_the_key(tmp_path: Path, head: str, before: int) -> None:
    """Also where the text is so long that the key is cut."""
    code = f"{head} grade(answer, item):\n    raise RuntimeError({'.' * before + KEY!r})\n"
    episode = asyncio.run(graded(opened(tmp_path, code, {"MY_KEY": KEY})))
    assert isinstance(episode.outcome, Failed)
    assert KEY[:10] not in repr(episode)
    assert REDACTED in episode.outcome.message
    assert REDACTED in episode.detail
    assert REDACTED in episode.records[-1].text


def test_a_note_of_a_grader_loses_the_key(tmp_path: Path) -> None:
    """The grade is what it was."""
    code = f"def grade(answer, item):\n    return {{'soft': 0.5, 'note': {'it is ' + KEY!r}}}\n"
    episode = asyncio.run(graded(opened(tmp_path, code, {"MY_KEY": KEY})))
    assert episode.outcome == Measured(0.0, 0.5)
    assert episode.detail.endswith(f"it is {REDACTED}")
    assert KEY not in repr(episode)


def test_a_grader_that_breaks_when_it_is_read_quotes_no_key(tmp_path: Path) -> None:
    """Nor does a traceback of the error."""
    with pytest.raises(ConfigError) as caught:
        opened(tmp_path, f"raise ValueError({KEY!r})\n", {"MY_KEY": KEY})
    assert REDACTED in caught.value.message
    assert KEY not in "".join(traceback.format_exception(caught.value))


def test_a_short_key_is_no_word_to_take_out(tmp_path: Path) -> None:
    """Servers without keys are given ones like `none`."""
    code = "def grade(answer, item):\n    return {'hard': 0, 'note': 'none of it'}\n"
    assert asyncio.run(graded(opened(tmp_path, code, {"MY_KEY": "none"}))).detail.endswith("none of it")


def test_the_keys_of_both_roles_and_of_the_environment_are_known(tmp_path: Path) -> None:
    """By the variables that the config names."""
    opened(tmp_path, "def grade(answer, item):\n    return 1\n", {})
    said = ("model.optimizer_api_key_env=OTHER_KEY", "env.some_env=THIRD")
    config = load_config(tmp_path / "config.yaml", said)
    environ = {"MY_KEY": KEY, "OTHER_KEY": "other", "THIRD": "third", "HOME": "/root"}
    assert set(known_secrets(config, environ)) == {KEY, "other", "third"}


@frozen
class Quoting:
    """Somebody's environment that quotes the key in all it says."""

    name: str = "quoting"
    raises: Exception | None = None
    requires: frozenset[str] = frozenset({"tools"})

    def load(self) -> Splits:
        """Nothing but a note."""
        return Splits(train=(), val=(), test=(), digests={}, notes=(f"read with {KEY}",))

    async def attempt(self, item: Item, skill: SkillTree, ask: Ask, *, seed: int) -> Episode:
        """An episode full of keys, or an error."""
        await ask([Message("user", f"use {KEY}")])
        if self.raises is not None:
            raise self.raises
        return Episode(
            outcome=Failed(f"kind {KEY}", f"message {KEY}"),
            task=KEY,
            records=tuple(TrajectoryRecord(kind, f"{kind} {KEY}") for kind in ("system", "tool", "feedback")),
            failure=KEY,
            detail=f"detail {KEY}",
            prediction=f"42 {KEY}",
        )

    async def aclose(self) -> None:
        """Nothing to give back."""


def attempted(ask: Says, raises: Exception | None = None) -> Episode:
    """What an attempt in it comes to."""
    inner = Quoting(raises=raises)
    environment = RedactedEnvironment(inner, Redactor([KEY]))
    assert environment.load().notes == (f"read with {REDACTED}",)
    assert required(environment) == frozenset({"tools"})
    item = type("One", (), {"id": "1", "task_type": ""})()
    return asyncio.run(environment.attempt(item, SKILL, ask, seed=1))


def test_an_environment_of_somebody_quotes_no_key() -> None:
    """In no field, and the target is not told one."""
    ask = Says()
    assert KEY not in repr(attempted(ask))
    assert ask.asked == [f"use {REDACTED}"]


@frozen
class Telling(Quoting):
    """One that says more of itself."""

    guide: str = f"Never say {KEY}."
    regrades: bool = True

    def seen_by_code(self, answers: Answers) -> str:
        """A reason that quotes the key."""
        return f"{answers.places[0]} holds {KEY}"


def test_what_an_environment_says_of_itself_is_still_known() -> None:
    """What it needs, tells and can do, asked as the port asks it; without the key."""
    environment = RedactedEnvironment(Telling(), Redactor([KEY]))
    assert (required(environment), can_regrade(environment)) == (frozenset({"tools"}), True)
    assert guide_of(environment) == f"Never say {REDACTED}."
    assert isinstance(environment, Walled)
    assert environment.seen_by_code(Answers(places=(Path("here"),), around=())) == f"here holds {REDACTED}"
    plain = RedactedEnvironment(Quoting(), Redactor([KEY]))
    assert (guide_of(plain), can_regrade(plain)) == ("", False)
    assert plain.seen_by_code(Answers(places=(), around=())) == ""


@pytest.mark.parametrize("error", [KeyError(KEY), ConfigError(KEY, hint=KEY), CallFailed("server", KEY)])
def test_an_error_of_an_environment_quotes_no_key(error: Exception) -> None:
    """Whatever it is; what was told to be a failed call still is one."""
    with pytest.raises((RuntimeError, ConfigError, CallFailed)) as caught:
        attempted(Says(), error)
    assert isinstance(caught.value, RuntimeError if isinstance(error, KeyError) else type(error))
    assert KEY not in "".join(traceback.format_exception(caught.value))
    assert REDACTED in str(caught.value)


class SaysAndJudges(Says):
    """The same with a judge."""

    async def judge(self, messages: Sequence[Message], *, max_tokens: int, schema: Mapping[str, Json]) -> ChatReply:
        """Always the same verdict."""
        self.asked += [message.content for message in messages]
        return ChatReply(text="{}", finish="stop")


@frozen
class AnItem:
    """An item of nothing."""

    id: str
    task_type: str = ""


class TellsItAll:
    """Hands elsewhere that ask the target and the judge about a key, and find it in the answer."""

    async def attempt(self, item: Item, skill: SkillTree, asking: Asking, *, seed: int, slot: str) -> Episode:
        """The key is in each thing that is said."""
        ask = asking(None)
        await ask([Message("user", f"is {KEY} right?")])
        assert isinstance(ask, AsksJudge)
        await ask.judge([Message("user", f"is {KEY} right?")], max_tokens=1, schema={})
        return Episode(outcome=Measured(1.0, 1.0), task="", records=(), detail=f"it is {KEY}", prediction=KEY)


def test_what_comes_from_elsewhere_loses_its_keys_here() -> None:
    """Neither target nor judge are told one, and nothing of it is recorded."""
    says = SaysAndJudges()
    hands = RedactedHands(TellsItAll(), Redactor([KEY]))
    item = AnItem("one")
    episode = asyncio.run(hands.attempt(item, SKILL, lambda _: says, seed=1, slot="s"))
    assert says.asked == [f"is {REDACTED} right?"] * 2
    assert KEY not in f"{episode}"
