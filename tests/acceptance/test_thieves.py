"""An agent of one's own finds no key: in the process that started it, in the shell behind that, in files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from support.environments import CONFINED
from support.ready import COMMAND, PATIENCE

HERE = Path(__file__).resolve().parent.parent
THIEF = HERE / "hostile" / "thief.py"
ORDINARY = (sys.executable, str(HERE / "support" / "ordinary_user.py"))
USERS = {"as it is": (), "ordinary": ORDINARY} if os.geteuid() == 0 else {"as it is": ()}
KEY, SHELLS_KEY, FILES_KEY = (f"sk-made-for-thieves-{name}-0123456789" for name in ("own", "shell", "file"))
READING = ["in_processes", "in_descriptors", "in_files"]
MORE = ["by_tracing", "by_other_spaces", "at_ports", "on_terminals", "in_memory"]
CONFIG = """
model:
  backend: simulated
  target_backend: command
  target_command: {command}
  target_gateway: openai
  target: m
  target_base_url: http://127.0.0.1:9/v1
  target_api_key_env: PROVIDER_KEY
  target_agent_env: SHOP
  target_timeout_seconds: 300
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
    """A project that an ordinary user may use, too."""
    with TemporaryDirectory(prefix="skillopt-es-thief-", dir="/tmp") as name:
        folder = Path(name)
        rows = [{"id": f"t{number}", "input": "x", "expected": "gold"} for number in range(3)]
        (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)))
        (folder / "SKILL.md").write_text("- know apple\n")
        (folder / ".env").write_text(f"JUDGES_KEY={FILES_KEY}\n")
        (folder / "thief.py").write_text(THIEF.read_text())
        for path in (folder, *folder.iterdir()):
            path.chmod(0o777)
        yield folder


def looked(folder: Path, user: tuple[str, ...], *arguments: str, isolated: bool = True) -> dict[str, list[str]]:
    """Where an agent of this user's found a key, and which of its looks it took to their end."""
    command = json.dumps([sys.executable, "-E", "thief.py", "found.json", *arguments])
    (folder / "config.yaml").write_text(CONFIG.format(command=command))
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8", "PROVIDER_KEY": KEY, "SHOP": "open"}
    line = [str(COMMAND), "eval", "config.yaml", "--skill", "SKILL.md", "--split", "test", "--again"]
    line += ["--set", f"model.agent_isolated={isolated}"]
    # A shell that has exported a key waits for the command.
    shell = ["/bin/sh", "-c", f'export SHELLS_KEY={SHELLS_KEY}; cd {folder}; "$@"; exit $?', "sh", *line]
    came = subprocess.run([*user, *shell], env=environ, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert came.returncode == 0, came.stderr
    report: dict[str, list[str]] = json.loads((folder / "found.json").read_text())
    (folder / "found.json").unlink()
    return report


@pytest.mark.parametrize("user", ["as it is", *(pytest.param(each, marks=pytest.mark.slow) for each in [*USERS][1:])])
def test_an_agent_finds_no_key(folder: Path, user: str) -> None:
    """As root and as an ordinary user; the same agent finds many where it is not isolated."""
    assert looked(folder, USERS[user]) == {"found": [], "ended": [*READING, *MORE]}
    report = looked(folder, USERS[user], "reads", isolated=False)
    assert {".env", "environ of a process"} <= set(report["found"])
    assert report["ended"] == READING
