"""An agent that moves what is hidden gains nothing: it cannot, or no attempt starts after it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from support.environments import CONFINED
from support.params import parametrized
from support.ready import COMMAND, PATIENCE

HERE = Path(__file__).resolve().parent.parent
USERS = {"as it is": (), "ordinary": (sys.executable, str(HERE / "support" / "ordinary_user.py"))}
if os.geteuid() != 0:
    del USERS["ordinary"]
KEY = "sk-made-for-movers-0123456789"
CONFIG = """
model:
  backend: simulated
  target_backend: command
  target_command: {command}
  target: m
  target_agent_processes: 1
  optimizer: o
  judge_backend: openai
  judge: j
  judge_base_url: http://127.0.0.1:9/v1
  judge_api_key_env: JUDGES_KEY
env: {{name: tasks, data_path: tasks.jsonl, split_ratio: "1:1:1", skill_init: SKILL.md, grader: exact}}
"""
pytestmark = pytest.mark.skipif(not CONFINED, reason="this machine has no user namespaces")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of an ordinary user's, with a project some folders further down."""
    with TemporaryDirectory(prefix="skillopt-es-mover-", dir="/tmp") as name:
        top = Path(name)
        project = top / "work" / "project"
        project.mkdir(parents=True)
        rows = [{"id": f"t{number}", "input": "x", "expected": "gold"} for number in range(9)]
        (project / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)))
        (project / "SKILL.md").write_text("- know apple\n")
        (project / ".env").write_text(f"JUDGES_KEY={KEY}\n")
        (project / "mover.py").write_text((HERE / "hostile" / "mover.py").read_text())
        for path in (top, *top.rglob("*")):
            path.chmod(0o777)
        yield top


def evaluated(top: Path, how: str, user: str, *, isolated: bool = True) -> tuple[subprocess.CompletedProcess[str], str]:
    """How an evaluation of three tasks by this agent ended, and what the agent noted."""
    project = top / "work" / "project"
    (project / "config.yaml").write_text(CONFIG.format(command=json.dumps([sys.executable, "mover.py", how, str(top)])))
    environ = {"PATH": os.environ["PATH"], "HOME": str(top), "LANG": "C.UTF-8"}
    line = [COMMAND, "eval", "config.yaml", "--skill", "SKILL.md", "--split", "test", "--again", "--dir", top / "runs"]
    line += ["--set", f"model.agent_isolated={isolated}"]
    shell = ["/bin/sh", "-c", f'cd {project}; "$@"; exit $?', "sh", *map(str, line)]
    words = [*USERS[user], *shell]
    came = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return came, (top / "report").read_text()


@parametrized(("how", "user"), product(["plain", "inside"], USERS), by_default=len(USERS))
def test_what_is_hidden_cannot_be_moved(folder: Path, how: str, user: str) -> None:
    """Neither the file nor a folder above it, by the agent itself or in name spaces of its own."""
    came, report = evaluated(folder, how, user)
    assert came.returncode == 0, came.stderr
    assert [json.loads(line) for line in report.splitlines()] == [{"moved": "nothing", "keys": []}] * 3


@parametrized(
    ("how", "moved", "user"),
    [(*each, user) for each in (("apart", ".env"), ("above", "project")) for user in USERS],
    by_default=len(USERS),
)
def test_no_attempt_starts_once_it_was_moved(folder: Path, how: str, moved: str, user: str) -> None:
    """Where mounts do not count any more it can be; the evaluation pauses, and says where the file is now."""
    came, report = evaluated(folder, how, user)
    assert came.returncode == 1, came.stderr
    assert [json.loads(line) for line in report.splitlines()] == [{"moved": moved, "keys": []}]
    env = folder / "work" / "project" / ".env"
    now = str(env).replace(moved, f"{moved}-elsewhere")
    assert f"{env} has to be hidden, but it was moved during the run and is now {now}" in came.stderr
    assert "look at what the agent did, then move it back" in came.stderr


@pytest.mark.slow
def test_without_isolation_the_same_agent_finds_the_key(folder: Path) -> None:
    """So it does look where the key is."""
    came, report = evaluated(folder, "plain", "as it is", isolated=False)
    assert came.returncode == 0, came.stderr
    assert all(json.loads(line)["keys"] for line in report.splitlines())
