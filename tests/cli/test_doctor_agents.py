"""`doctor` finds what keeps a coding agent from being a model: not installed, not signed in, a refused option."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.agents import AGENTS, InstalledAgent, installed
from support.command import Done, command

CONFIG = """
model: {{backend: simulated, target_backend: {name}, optimizer: o, target: default}}
env: {{name: tasks, data_path: tasks.jsonl, split_ratio: "1:1:1"}}
"""


@pytest.fixture(
    params=["codex", *(pytest.param(each, marks=pytest.mark.slow) for each in ("claude_code", "cursor", "copilot"))]
)
def agent(request: pytest.FixtureRequest, tmp_path: Path) -> InstalledAgent:
    """Each agent, beside a project that uses it as its target."""
    return beside_a_project(request.param, tmp_path)


def beside_a_project(name: str, tmp_path: Path) -> InstalledAgent:
    """An agent, and a project that uses it as its target."""
    (tmp_path / "config.yaml").write_text(CONFIG.format(name=name))
    rows = [f'{{"id": "t{number}", "input": "x", "expected": "right"}}' for number in range(6)]
    (tmp_path / "tasks.jsonl").write_text("\n".join(rows))
    return installed(name, tmp_path / "agent")


def doctor(agent: InstalledAgent, *words: str, **variables: str) -> Done:
    """What `doctor` says about it."""
    return command("doctor", "config.yaml", *words, cwd=agent.folder.parent, env={**agent.environ, **variables})


def test_a_ready_agent_is_asked_one_question(agent: InstalledAgent) -> None:
    """And its version and place are shown."""
    done = doctor(agent)
    assert done.code == 0, done.out
    assert str(agent.folder / "bin") in done.out
    assert "no problems" in done.out
    assert len(agent.runs) == 1


def test_a_budget_that_cannot_be_promised(tmp_path: Path) -> None:
    """As a run would say it: an agent asks its model as often as it likes."""
    done = doctor(beside_a_project("codex", tmp_path), "--no-calls", "--set", "budget.max_tokens=1000")
    assert done.code == 1, done.out
    assert "budget.max_tokens cannot be kept: the target is a coding agent" in done.out


def test_an_agent_that_is_not_there(agent: InstalledAgent) -> None:
    """What to type stands below."""
    done = doctor(agent, PATH="/usr/bin:/bin")
    assert done.code == 1
    assert f"{agent.name} is not installed" in done.out
    assert AGENTS[agent.name]().install in done.out


def test_nobody_is_signed_in(agent: InstalledAgent) -> None:
    """Found without a call where the agent can be asked for it, else by the question."""
    agent.behaves(mode="signed_out")
    offline = bool(AGENTS[agent.name]().signed_in)
    done = doctor(agent, *(["--no-calls"] if offline else []))
    assert done.code == 1, done.out
    assert "problem  target" in done.out
    assert "auth" in done.out
    assert AGENTS[agent.name]().sign_in in done.out
    assert "1 problem" in done.out


def test_an_option_that_this_version_refuses(agent: InstalledAgent) -> None:
    """The question finds it."""
    refused = {"codex": "--ephemeral", "claude_code": "--strict-mcp-config", "copilot": "-C", "cursor": "--trust"}
    agent.behaves(refuses=refused[agent.name])
    done = doctor(agent)
    assert done.code == 1
    assert refused[agent.name] in done.out
    assert "too old or too new" in done.out
