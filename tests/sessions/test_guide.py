"""What an environment tells analysts of its tasks: recorded when the run starts, shown in every question to them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from attrs import frozen
from support.environments import OPEN, data_settings, open_on
from support.logs import events_of
from support.scripted import ScriptedEnvironment, ScriptedModel, ScriptedWorld, config, optimizer_reply

from skillopt_es.audit.check import check
from skillopt_es.errors import Interrupted
from skillopt_es.events.catalog import RunStarted
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.ports import ChatReply, ChatRequest, guide_of
from skillopt_es.sessions.session import resume, start

SECTION = "## About these tasks\nPlants are told apart by their kinds."


@frozen
class Guided(ScriptedEnvironment):
    """An environment with something to tell."""

    guide: str = "Plants are told apart by their kinds.\n"


def world_of(environment: ScriptedEnvironment, asked: list[str]) -> ScriptedWorld:
    """A scripted world that notes what the optimizer is asked, each with its stage."""

    def heard(request: ChatRequest) -> str | ChatReply:
        asked.append(f"{request.stage}\n{request.messages[-1].content}")
        return optimizer_reply(request)

    return ScriptedWorld(environment=environment, optimizer=ScriptedModel("scripted optimizer", heard))


def questions(folder: Path, environment: ScriptedEnvironment) -> list[str]:
    """What the optimizer was asked in a run whose decisions can be derived again."""
    asked: list[str] = []
    settings = config(folder, ["train.num_epochs=2"])
    asyncio.run(start(settings, folder / "run", world_of(environment, asked).session()))
    with EventLog.open(folder / "run") as log:
        assert asyncio.run(check(log, Journal(log.reader), folder / "run")).mismatch is None
    return asked


def test_every_analyst_is_told_and_nobody_else(tmp_path: Path) -> None:
    """Of failures as of successes; the log has it, and a resumed run tells what was recorded."""
    asked = questions(tmp_path, Guided())
    assert {each.partition("\n")[0] for each in asked if SECTION in each} == {"analyst"}
    analysts = [each for each in asked if each.startswith("analyst\n")]
    assert all(each.count(SECTION) == 1 for each in analysts)
    assert any("## Successful trajectories" in each for each in analysts)
    started = events_of(tmp_path / "run")[0]
    assert isinstance(started, RunStarted)
    assert started.guide == Guided().guide


def test_an_environment_that_tells_nothing_changes_no_question(tmp_path: Path) -> None:
    """No heading without a text."""
    assert not any("## About these tasks" in each for each in questions(tmp_path, ScriptedEnvironment()))


def test_a_run_keeps_to_what_it_was_told_first(tmp_path: Path) -> None:
    """Another wording in a newer version asks nothing otherwise."""
    before: list[str] = []
    first = world_of(Guided(), before)
    settings = config(tmp_path, ["train.num_epochs=2"])
    stopped = first.session(stopping=lambda: len(before) > 3)
    with pytest.raises(Interrupted):
        asyncio.run(start(settings, tmp_path / "run", stopped))
    after: list[str] = []
    asyncio.run(resume(tmp_path / "run", world_of(Guided(guide="Something else."), after).session()))
    assert any(SECTION in each for each in after)
    assert not any("Something else." in each for each in after)


@pytest.mark.parametrize("name", sorted(set(OPEN) - {"tasks"}))
def test_each_benchmark_tells_how_its_tasks_are_missed(tmp_path: Path, name: str) -> None:
    """With kinds of failure to choose from."""
    guide = guide_of(open_on(tmp_path, name, data_settings()))
    assert "failure_type" in guide
    assert "\n- other\n" in guide
    assert guide_of(open_on(tmp_path, "tasks", data_settings())) == ""
