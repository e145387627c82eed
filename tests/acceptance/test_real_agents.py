"""
The real command lines against a loopback endpoint; nothing leaves the machine.

`npm install @openai/codex @anthropic-ai/claude-code @github/copilot` somewhere, its `node_modules/.bin` on PATH, and
`SKILLOPT_REAL_AGENTS=1 pytest tests/acceptance/test_real_agents.py`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.agent_endpoint import AgentEndpoint
from support.agents import AGENT_SETTINGS, AGENTS
from support.chat import question, settings
from support.logs import decisions_of
from support.scripted import ScriptedEnvironment, ScriptedWorld, config

from skillopt_es.adapters.harnesses.harness import Harness
from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.values import Measured, SkillTree
from skillopt_es.ports import Message
from skillopt_es.sessions.session import start

PATHS = {"codex": "/v1", "claude_code": "", "copilot": "/v1"}
SKILL = SkillTree({"SKILL.md": "- know apple\n"})
KEY = "sk-canary-0123456789"


@pytest.fixture(params=PATHS)
def name(request: pytest.FixtureRequest) -> str:
    """An agent that is installed."""
    if not os.environ.get("SKILLOPT_REAL_AGENTS"):
        pytest.skip("SKILLOPT_REAL_AGENTS is not set: the real command lines are not run")
    program = AGENTS[request.param]().program
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not on PATH")
    return str(request.param)


@pytest.fixture
def endpoint() -> Iterator[AgentEndpoint]:
    """The loopback endpoint."""
    with AgentEndpoint() as running:
        yield running


def real(name: str, endpoint: AgentEndpoint) -> Harness:
    """The real agent, sent to the loopback endpoint."""
    made = settings(
        endpoint.url + PATHS[name],
        backend=name,
        model="gpt-test",
        api_key_env="REAL_AGENT_KEY",
        timeout_seconds=90,
        agent=AGENT_SETTINGS,
    )
    return Harness(AGENTS[name](), made, {**os.environ, "REAL_AGENT_KEY": KEY})


@pytest.mark.parametrize("kind", ["apple", "birch"])
def test_the_real_agent_reads_its_skill_and_answers(name: str, endpoint: AgentEndpoint, kind: str) -> None:
    """Its own tool read the file from the place where it looks for skills; tokens and key are as they must be."""
    asked = question(
        messages=(Message("system", "## Skill\n- know apple"), Message("user", f"kind: {kind} id: 1")), skill=SKILL
    )
    reply = asyncio.run(real(name, endpoint).complete(asked))
    assert reply.text == ("right" if kind == "apple" else "wrong")
    [read] = [step for step in reply.steps if step.kind in ("command", "tool")]
    assert "know apple" in read.output
    assert read.ok
    assert (reply.usage.input, reply.usage.output) == (100, 10)
    assert {key.removeprefix("Bearer ") for key in endpoint.keys} == {KEY}


def test_a_run_on_the_real_agent_learns(name: str, endpoint: AgentEndpoint, tmp_path: Path) -> None:
    """A small training run: the skill that the agent reads gets better, and so do its answers."""
    world = ScriptedWorld(environment=ScriptedEnvironment(train=2, val=2, test=1), target=real(name, endpoint))  # type: ignore[arg-type]
    made = config(tmp_path, ("train.num_epochs=1", "train.batch_size=2", "optimizer.use_slow_update=false"))
    asyncio.run(start(made, tmp_path / "run", world.session()))
    rows = [event for event in decisions_of(tmp_path / "run") if isinstance(event, RolloutCompleted)]
    assert all(isinstance(row.outcome, Measured) for row in rows)
    assert {row.prediction for row in rows} == {"right", "wrong"}
