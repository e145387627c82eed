"""A training run whose target is a coding agent: the same decisions as over HTTP, and no execution made twice."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import asdict, evolve
from support.agents import AGENTS, InstalledAgent, installed
from support.chat import settings
from support.logs import decisions_of, events_of
from support.model_server import Answer, ModelServer
from support.scripted import ScriptedEnvironment, ScriptedModel, ScriptedWorld, config, optimizer_reply, target_reply

from skillopt_es.adapters.models.openai import open_model
from skillopt_es.engine.call_records import steps_of
from skillopt_es.errors import Interrupted
from skillopt_es.events.log import EventLog
from skillopt_es.ports import ChatModel, ChatRequest, Message
from skillopt_es.sessions.session import resume, start

SMALL = ("train.num_epochs=1", "train.batch_size=3", "env.workers=4")
ENVIRONMENT = ScriptedEnvironment(train=3, val=3, test=1)  # each attempt is two processes
OTHERS = sorted(set(AGENTS) - {"codex"})  # each one's own ways are the harnesses' tests


def world(target: ChatModel, optimizer: ScriptedModel | None = None) -> ScriptedWorld:
    """The scripted world with another target."""
    made = ScriptedWorld(environment=ENVIRONMENT, target=target)  # type: ignore[arg-type]  # any ChatModel will do
    return made if optimizer is None else evolve(made, optimizer=optimizer)


def decided(folder: Path) -> list[dict[str, Any]]:
    """The events of a run but for which calls they name."""
    return [
        {"type": type(event).__name__, **{key: value for key, value in asdict(event).items() if key != "calls"}}
        for event in decisions_of(folder)
    ]


def over_http(body: Mapping[str, Any]) -> Answer:
    """The scripted target behind an endpoint."""
    messages = tuple(Message(each["role"], each["content"]) for each in body["messages"])
    return Answer(text=target_reply(ChatRequest(slot="", stage="rollout", messages=messages, max_tokens=1)))


@pytest.fixture(scope="module")
def http_decisions(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What a run over HTTP decided."""
    folder = tmp_path_factory.mktemp("http")
    with ModelServer(lambda body, headers: over_http(body)) as server:
        target = open_model(settings(server.base_url), {})
        asyncio.run(start(config(folder, SMALL), folder / "run", world(target).session()))
    return decided(folder / "run")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["codex", *(pytest.param(each, marks=pytest.mark.slow) for each in OTHERS)])
def test_the_decisions_are_those_of_a_run_over_http(
    tmp_path: Path, name: str, http_decisions: list[dict[str, Any]]
) -> None:
    """The agent reads the skill from its workspace; it answers the same, so all is decided the same."""
    agent = installed(name, tmp_path / "agent", quiet=True)
    asyncio.run(start(config(tmp_path, SMALL), tmp_path / "run", world(agent.opened()).session()))
    assert decided(tmp_path / "run") == http_decisions
    assert any(each.get("verdict", {}).get("action", "").startswith("accept") for each in http_decisions)


@pytest.mark.slow
def test_a_resumed_run_repeats_no_execution(tmp_path: Path) -> None:
    """Stopped in the middle, then gone on with: as many runs of the agent as without the stop, and the same log."""
    whole = installed("codex", tmp_path / "whole")
    asyncio.run(start(config(tmp_path, SMALL), tmp_path / "undisturbed", world(whole.opened()).session()))

    agent = installed("codex", tmp_path / "agent")
    stopped = world(agent.opened()).session(stopping=lambda: len(agent.runs) >= 5)
    with pytest.raises(Interrupted):
        asyncio.run(start(config(tmp_path, SMALL), tmp_path / "run", stopped))
    assert 5 <= len(agent.runs) < len(whole.runs)
    asyncio.run(resume(tmp_path / "run", world(agent.opened()).session()))
    assert len(agent.runs) == len(whole.runs)
    assert decisions_of(tmp_path / "run") == decisions_of(tmp_path / "undisturbed")


def asked_with(tmp_path: Path, agent: InstalledAgent) -> list[str]:
    """What the analysts of a run were shown."""
    shown: list[str] = []

    def reply(request: ChatRequest) -> str:
        if request.stage == "analyst":
            shown.append(request.messages[1].content)
        return optimizer_reply(request)

    optimizer = ScriptedModel("scripted optimizer", reply)
    (tmp_path / "skill.md").write_text("- be kind\n")
    made = config(tmp_path, [*SMALL, "env.skill_init=skill.md"])
    asyncio.run(start(made, tmp_path / "run", world(agent.opened(), optimizer).session()))
    return shown


@pytest.mark.slow
def test_the_optimizer_sees_what_the_agent_did(tmp_path: Path) -> None:
    """Steps stand in the trajectory, before the answer, and in the journal as they were."""
    agent = installed("codex", tmp_path / "agent")
    shown = "\n".join(asked_with(tmp_path, agent))
    command = "[tool] $ /bin/bash -lc 'cat .agents/skills/trained-skill/SKILL.md'"
    assert f"{command}\n---\nname: trained-skill\n" in shown
    assert "(the skill document)" in shown
    assert shown.index(command) < shown.index("[agent] wrong")
    with EventLog.open(tmp_path / "run") as log:
        rows = [
            row for (row,) in log.reader.rows("select lower(hex(trace)) from calls where trace is not null order by n")
        ]
        assert rows
        assert {step.kind for row in rows for step in steps_of(log.text(str(row)))} == {"command"}


def test_an_agent_that_gives_no_answer_measures_zero(tmp_path: Path) -> None:
    """Its transcript is never graded, whatever stands in it."""
    agent = installed("codex", tmp_path / "agent", mode="silent")
    asyncio.run(
        start(
            config(tmp_path, SMALL),
            tmp_path / "run",
            world(agent.opened(attempts=1)).session(),
        )
    )
    rows = [event for event in events_of(tmp_path / "run") if type(event).__name__ == "RolloutCompleted"]
    assert rows
    assert {row.failure for row in rows} == {"no_answer"}  # type: ignore[attr-defined]
