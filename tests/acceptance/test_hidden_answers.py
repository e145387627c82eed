"""A coding agent that is trained finds no answers on the machine, or nothing is trained."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from pathlib import Path

import pytest
from support.agents import InstalledAgent, installed
from support.command import Done, command
from support.environments import CONFINED

from skillopt_es.adapters.sandboxes.covers import Covers
from skillopt_es.adapters.sandboxes.start import command_for

CONFIG = """
model: {backend: simulated, target_backend: codex, optimizer: o, target: default}
train: {num_epochs: 1, batch_size: 1}
optimizer: {use_slow_update: false, use_meta_skill: false}
env: {name: tasks, data_path: data/tasks.jsonl, split_ratio: "1:1:1", skill_init: SKILL.md, grader: python:grade:grade}
"""
needs_spaces = pytest.mark.skipif(not CONFINED, reason="this machine has no user namespaces")


@pytest.fixture
def agent(tmp_path: Path) -> InstalledAgent:
    """A project in a repository, with data, a grader, an earlier run, and an agent installed inside of it."""
    project = tmp_path / "project"
    for folder in ("data", ".git/objects", "runs/earlier"):
        (project / folder).mkdir(parents=True)
    rows = [{"id": f"t{number}", "input": "x", "expected": "gold"} for number in range(3)]
    (project / "data" / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (project / "copy.jsonl").write_text("gold")
    (project / ".git" / "objects" / "pack").write_text("gold")
    (project / "runs" / "earlier" / "log.db").write_text("gold")
    (project / "SKILL.md").write_text("- know apple\n")
    (project / "grade.py").write_text("def grade(answer, item):\n    return answer == 'gold'\n")
    (project / "config.yaml").write_text(CONFIG)
    return installed("codex", project / "agent")


def done(agent: InstalledAgent, *words: str) -> Done:
    """What a command says in the project."""
    return command(*words, cwd=agent.folder.parent, env=agent.environ)


def look_around(agent: InstalledAgent) -> list[str]:
    """Lets the agent look where answers are: as they lie there, and through the process that started it."""
    project = agent.folder.parent
    places = ["data/tasks.jsonl", "data", "copy.jsonl", "grade.py", ".git/objects/pack", "runs", "runs/earlier/log.db",
              "runs/mine/log.db"]  # fmt: skip
    peeks = [str(project / place) for place in places]
    peeks += [f"/proc/PARENT/root{peeks[0]}", "/proc/PARENT/environ", f"/proc/PARENT/cwd/{places[0]}"]
    agent.behaves(peeks=peeks)
    return peeks


@pytest.mark.slow
@needs_spaces
def test_an_agent_finds_no_answers(agent: InstalledAgent) -> None:
    """Not in the data, beside it, in the repository, in this run or an earlier one; its own program still works."""
    peeks = look_around(agent)
    came = done(agent, "run", "config.yaml", "--run", "mine", "--quiet")
    assert came.code == 0, came.err
    assert len(agent.runs) > 1
    assert [run["peeked"] for run in agent.runs] == [dict.fromkeys(peeks, "")] * len(agent.runs)
    came = done(agent, "eval", "config.yaml", "--skill", "SKILL.md", "--split", "test")
    assert came.code == 0, came.err
    assert not any(agent.runs[-1]["peeked"].values())


@pytest.mark.slow
def test_an_agent_may_see_them_if_the_config_says_so(agent: InstalledAgent) -> None:
    """Then it does, and the run and `doctor` say what that means."""
    look_around(agent)
    visible = ("--set", "model.agent_answers=visible")
    came = done(agent, "run", "config.yaml", "--run", "mine", "--quiet", *visible)
    assert came.code == 0, came.err
    assert "warning: the target (codex) can read the data with its answers" in came.err
    assert "gold" in agent.runs[0]["peeked"][str(agent.folder.parent / "data" / "tasks.jsonl")]
    with sqlite3.connect(agent.folder.parent / "runs" / "mine" / "log.db") as log:
        [[first]] = log.execute("select data from events where seq = 1")
    assert "the target (codex) can read the data with its answers" in str(first)
    checks = done(agent, "doctor", "config.yaml", "--no-calls", "--json", *visible).json["checks"]
    assert [check["status"] for check in checks if "can read the data" in check["message"]] == ["warning"]


@needs_spaces
def test_what_cannot_be_hidden_stops_the_run(agent: InstalledAgent) -> None:
    """Before anything is asked: data where the agent has its sign-in."""
    project = agent.folder.parent
    (agent.folder / "home" / "train").mkdir()
    for split in ("train", "val", "test"):
        (agent.folder / "home" / f"{split}.jsonl").write_text(f'{{"id": "{split}", "input": "x", "expected": "gold"}}')
    there = (
        "--set",
        "env.split_mode=file",
        "--set",
        f"env.split_dir={agent.folder / 'home'}",
        "--set",
        "env.data_path=",
    )
    came = done(agent, "run", "config.yaml", "--run", "mine", *there)
    assert came.code == 2
    assert "the answers cannot be hidden from the target (codex)" in came.err
    assert "model.agent_answers: visible" in came.err
    assert not (project / "runs" / "mine").exists()
    assert agent.runs == []
    checks = done(agent, "doctor", "config.yaml", "--no-calls", "--json", *there).json["checks"]
    assert [check["name"] for check in checks if check["status"] == "problem"] == ["target"]


@needs_spaces
def test_what_is_hidden_cannot_be_uncovered(tmp_path: Path) -> None:
    """Not by unmounting, mounting elsewhere, new spaces, or the spaces of another process."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a").write_text("gold")
    (tmp_path / "f").write_text("gold")
    (tmp_path / "link").symlink_to("f")
    tries = f"""
    cd {tmp_path}; umount f; umount -l data; mount --bind {tmp_path} /mnt && cat /mnt/f
    mount --rbind / /mnt && umount -l /mnt{tmp_path}/f && cat /mnt{tmp_path}/f
    unshare -Urm sh -c 'umount f; umount -l data; cat f data/a'
    nsenter -t {os.getpid()} -m -U cat {tmp_path}/f; cat /proc/{os.getpid()}/root{tmp_path}/f
    rm -f f; mv data moved; cat f link data/a moved/a
    """
    hidden = ["2", *Covers([str(tmp_path / "f"), str(tmp_path / "data")]).marked("hidden")]
    words = command_for("hide", "apart", str(os.getpid()), *hidden, "0", "0", "/bin/sh", "-c", tries)
    came = subprocess.run(words, capture_output=True, text=True, check=False)
    assert "gold" not in came.stdout + came.stderr
    assert (tmp_path / "data" / "a").read_text() == (tmp_path / "f").read_text() == "gold"
