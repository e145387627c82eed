"""One wiring of a session: training and evaluating check, open and close the same world in the same order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, field, frozen
from support.scripted import (
    NOON,
    ScriptedEnvironment,
    ScriptedModel,
    ScriptedWorld,
    config,
    optimizer_reply,
    target_reply,
)

from skillopt_es.config import RunConfig, load_config
from skillopt_es.errors import ConfigError
from skillopt_es.events.errors import SkillOptError
from skillopt_es.events.values import Role, SkillTree
from skillopt_es.ports import ChatModel
from skillopt_es.sessions.accounts import FILE
from skillopt_es.sessions.evaluation import EvaluationRequest, evaluate
from skillopt_es.sessions.opening import EXECUTORS, open_executor
from skillopt_es.sessions.session import start
from skillopt_es.sessions.skills import load_skill
from skillopt_es.sessions.wiring import Session, open_data, open_world
from skillopt_es.version import installed_for

Work = Callable[[RunConfig, Path, Session], Coroutine[Any, Any, object]]


async def scored(given: RunConfig, folder: Path, session: Session) -> object:
    """An evaluation in this session."""
    request = EvaluationRequest(
        config=given, skill=load_skill(given)[0], splits=("val",), limit=0, directory=folder, stem="scored"
    )
    return await evaluate(request, session, lambda *_: None)


both = pytest.mark.parametrize("work", [start, scored])


@frozen
class Demanding(ScriptedEnvironment):
    """Needs a target that sees."""

    requires: frozenset[str] = frozenset({"text", "images"})
    closed: list[str] = field(factory=list)

    async def aclose(self) -> None:
        """Notes that it was closed."""
        self.closed.append("environment")


class Closing(ScriptedModel):
    """Notes that it was closed."""

    closed = 0

    async def aclose(self) -> None:
        """One more time."""
        self.closed += 1


@both
def test_a_target_that_cannot_do_what_is_needed_is_refused_before_anything_is_written(
    work: Work, tmp_path: Path
) -> None:
    """And what was opened so far is closed, once."""
    environment, target = Demanding(), Closing("scripted target", target_reply)
    session = ScriptedWorld(environment=environment, target=target).session()
    with pytest.raises(ConfigError, match="needs images, but the target model"):
        asyncio.run(work(config(tmp_path), tmp_path / "out", session))
    assert not (tmp_path / "out").exists()
    assert (environment.closed, target.closed) == (["environment"], 1)


def test_a_model_that_cannot_be_opened_leaves_none_open(tmp_path: Path) -> None:
    """The one that was opened before it is closed."""
    target = Closing("scripted target", target_reply)

    def model(given: RunConfig, role: Role) -> ChatModel:
        if role == "optimizer":
            raise ConfigError("no key")
        return target

    session = ScriptedWorld().session()
    session = evolve(session, world=evolve(session.world, model=model))

    async def opened() -> None:
        async with (
            open_data(config(tmp_path), session.world) as data,
            open_world(data, SkillTree({"SKILL.md": ""}), tmp_path / "run", session),
        ):
            raise AssertionError("it is not to be opened")

    with pytest.raises(ConfigError, match="no key"):
        asyncio.run(opened())
    assert target.closed == 1


def test_two_roles_of_one_model_close_it_once(tmp_path: Path) -> None:
    """Its connections are given back a single time."""
    model = Closing(
        "scripted", lambda request: (target_reply if request.stage == "rollout" else optimizer_reply)(request)
    )
    world = ScriptedWorld(target=model, optimizer=model)
    asyncio.run(start(config(tmp_path, ["train.num_epochs=1"]), tmp_path / "run", world.session()))
    assert model.closed == 1


@both
@pytest.mark.parametrize(("error", "there"), [(SkillOptError("ours"), False), (KeyError("a bug"), True)])
def test_calls_in_flight_are_told_only_where_the_end_was_not_orderly(
    work: Work, tmp_path: Path, error: Exception, there: bool
) -> None:
    """After an error of ours every call has come to its end; after another one nobody knows."""

    def breaks(request: object) -> str:
        raise error

    world = ScriptedWorld(target=ScriptedModel("scripted target", breaks))
    given = config(tmp_path, ["budget.max_calls=1000"])
    with pytest.raises(type(error)):
        asyncio.run(work(given, tmp_path / "out", world.session()))
    assert bool(list((tmp_path / "out").rglob(FILE))) == there


def test_executors_are_found_among_the_installed_ones() -> None:
    """As models and environments are; ours is `local`."""
    assert "local" in installed_for(EXECUTORS)

    async def said(word: str) -> str:
        return word

    async def all_of_them() -> list[str]:
        executor = open_executor(load_config(None), lambda: False)
        return [
            each async for done in executor.stream([lambda: said("a"), lambda: said("b")], workers=2) for each in done
        ]

    assert asyncio.run(all_of_them()) == ["a", "b"]


def test_an_executor_that_cannot_be_had_leaves_no_run(tmp_path: Path) -> None:
    """It is told before anything is written."""
    work = start(load_config(None, ["env.executor=golf"]), tmp_path / "run", Session(now=lambda: NOON, clock=lambda: 0))
    with pytest.raises(ConfigError, match="'golf', but no such adapter is installed"):
        asyncio.run(work)
    assert not (tmp_path / "run").exists()
