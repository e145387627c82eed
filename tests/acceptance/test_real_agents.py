"""
The real command lines against a loopback endpoint; nothing leaves the machine.

`npm install @openai/codex @anthropic-ai/claude-code @github/copilot` somewhere, its `node_modules/.bin` on PATH, and
`SKILLOPT_REAL_AGENTS=1 pytest tests/acceptance/test_real_agents.py`.
"""

from __future__ import annotations

import asyncio
import json
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
from support.skills import folder, skill

import skillopt_es as so
from skillopt_es.adapters.harnesses.harness import Harness
from skillopt_es.events.catalog import MinibatchesPlanned, RolloutCompleted
from skillopt_es.events.values import Measured, SkillTree
from skillopt_es.ports import Message
from skillopt_es.sessions.session import start
from skillopt_es.skill.tools import Shelf

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


FOLDER = folder(
    fruit=skill("fruit", "Names of fruit.", "- know apple"), money=skill("money", "Sums.", "- know cash")
).files
SKILLS = SkillTree({**FOLDER, "fruit/references/more.md": "- know birch\n"}, main="")
OPENS = {
    "First read {place}/fruit/SKILL.md.": ["fruit/SKILL.md"],
    "First read {place}/money/SKILL.md. First read {place}/fruit/references/more.md.": [
        "money/SKILL.md",
        "fruit/references/more.md",
    ],
    "First read {place}/silver/SKILL.md.": [],
    "": [],
}
OWN = {
    "codex": {"First enter {place}/money.": ["money/SKILL.md"], "Pay $money.": ["money/SKILL.md"]},
    "claude_code": {"First ask money. First ask silver.": ["money/SKILL.md"], "Pay $money.": []},
    "copilot": {"First ask money. First ask silver.": ["money/SKILL.md"], "Pay $money.": []},
}


def test_what_the_real_agent_opened_of_a_folder_is_known(name: str, endpoint: AgentEndpoint) -> None:
    """It lists all of them to its model, and tells of each that was opened, in whichever way."""
    agent = real(name, endpoint)
    for said, opened in {**OPENS, **OWN[name]}.items():
        shelf, task = Shelf(SKILLS, own=True), said.format(place=AGENTS[name]().skills)
        asked = question(
            messages=(Message("system", shelf.shown.text), Message("user", f"kind: apple id: 1. {task}")), skill=SKILLS
        )
        shelf.note_opened(asyncio.run(agent.complete(asked)).steps)
        assert shelf.viewed == opened, said
    asking = [body for body in endpoint.bodies if "kind: apple" in body]
    assert asking
    assert all("Names of fruit." in body and "Sums." in body for body in asking)


def test_a_folder_is_trained_by_what_the_real_agent_opened(name: str, endpoint: AgentEndpoint, tmp_path: Path) -> None:
    """Views get into the log, attempts are grouped by them, and an edit of what was open is taken."""
    place = AGENTS[name]().skills
    rows = [
        {"id": f"{split}{n}", "split": split, "input": f"kind: birch id: {n}. First read {place}/fruit/SKILL.md."}
        for split, many in (("train", 2), ("val", 2), ("test", 1))
        for n in range(many)
    ]
    (tmp_path / "tasks.jsonl").write_text("\n".join(json.dumps({**row, "expected": "right"}) for row in rows))
    for path, text in SKILLS.files.items():
        (tmp_path / "skills" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "skills" / path).write_text(text)
    edit = {"op": "append", "skill": "fruit", "content": "- know birch"}
    run = so.train(
        {
            "env": {
                "name": "tasks",
                "data_path": str(tmp_path / "tasks.jsonl"),
                "split_mode": "field",
                "grader": "exact",
                "skill_init": str(tmp_path / "skills"),
            },
            "train": {"algorithm": "skills", "num_epochs": 1, "batch_size": 2},
            "evaluation": {"eval_test": False},
            "skills": {"manage": False},
        },
        name="r",
        runs=tmp_path,
        target=real(name, endpoint),
        optimizer=lambda request: json.dumps({"edits": [edit]}),
    )
    events = [recorded.event for recorded in run.events()]
    tried = [event for event in events if isinstance(event, RolloutCompleted)]
    assert {event.viewed for event in tried} == {("fruit/SKILL.md",)}
    [planned] = [event for event in events if isinstance(event, MinibatchesPlanned) and event.groups]
    assert [group.viewed for group in planned.groups] == [("fruit",)]
    assert "- know birch" in run.skill("best").files["fruit/SKILL.md"]


def test_a_run_on_the_real_agent_learns(name: str, endpoint: AgentEndpoint, tmp_path: Path) -> None:
    """A small training run: the skill that the agent reads gets better, and so do its answers."""
    world = ScriptedWorld(environment=ScriptedEnvironment(train=2, val=2, test=1), target=real(name, endpoint))  # type: ignore[arg-type]
    made = config(tmp_path, ("train.num_epochs=1", "train.batch_size=2", "optimizer.use_slow_update=false"))
    asyncio.run(start(made, tmp_path / "run", world.session()))
    rows = [event for event in decisions_of(tmp_path / "run") if isinstance(event, RolloutCompleted)]
    assert all(isinstance(row.outcome, Measured) for row in rows)
    assert {row.prediction for row in rows} == {"right", "wrong"}
