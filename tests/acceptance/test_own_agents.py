"""Agents of one's own, each from the page in an empty folder: tried by the doctor, trained, killed and gone on with."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.agent_page import RULE, fragments, teacher, write_page
from support.desk import Desk
from support.model_server import ModelServer
from support.project import told
from support.ready import PATIENCE

WAYS = {"python": "", "node": "node", "shell": "jq", "http": ""}


@pytest.fixture
def optimizer() -> Iterator[ModelServer]:
    """The model that improves the skill."""
    with ModelServer(teacher) as server:
        yield server


@pytest.fixture
def page(tmp_path: Path, optimizer: ModelServer) -> Desk:
    """The files of the page, typed into an empty folder."""
    write_page(tmp_path, optimizer.base_url)
    return Desk(tmp_path, {"OPENAI_API_KEY": "sk-of-the-optimizer-0123456789"})


@pytest.fixture
def port(tmp_path: Path) -> Iterator[Callable[[], int]]:
    """Starts the page's server, at a port that is free here."""
    started: list[subprocess.Popen[bytes]] = []

    def start() -> int:
        with closing(socket.create_server(("127.0.0.1", 0))) as free:
            number: int = free.getsockname()[1]
        code = (tmp_path / "server.py").read_text().replace("8000", str(number))
        (tmp_path / "server.py").write_text(code)
        started.append(subprocess.Popen([sys.executable, "server.py"], cwd=tmp_path, stderr=subprocess.DEVNULL))
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", number)).close()
            except OSError:
                time.sleep(0.01)
            else:
                break
        return number

    yield start
    for process in started:
        process.kill()
        process.wait(PATIENCE)


def settings(way: str, port: Callable[[], int]) -> list[str]:
    """What the page says to change for each way."""
    if way == "python":
        return []
    kind = "http" if way == "http" else "command"
    said = dict(fragments()[kind])
    if way == "shell":
        said["target_command"] = ["./agent.sh"]
    if way == "http":
        said["target_url"] = said["target_url"].replace("8000", str(port()))
    return [f"--set=model.{key}={value}" for key, value in said.items()]


@pytest.mark.parametrize("way", WAYS)
def test_an_agent_of_the_page_gets_to_a_trained_skill(way: str, page: Desk, port: Callable[[], int]) -> None:
    """Two commands and no name of a model; what it did is what the optimizer is shown."""
    if WAYS[way] and shutil.which(WAYS[way]) is None:
        pytest.skip(f"{WAYS[way]} is not installed here")
    chosen = settings(way, port)
    tried = page.run("doctor", "config.yaml", *chosen)
    assert tried.code == 0, tried.out + tried.err
    assert "'I do not know'" in tried.out
    done = page.run("run", "config.yaml", "--run", "one", "--json", *chosen)
    assert done.code == 0, done.err
    assert done.json["best"]["value"] == 1.0
    assert RULE in (page.folder / "runs" / "one" / "best" / "SKILL.md").read_text()
    assert page.run("replay", "one", "--check").code == 0


SLOW = """
import time
from pathlib import Path

def answer(task):
    with Path("begun.txt").open("a") as begun:
        begun.write(f"{task.item} {task.seed}\\n")
    time.sleep(0.05)
    words = task.task.split()
    return {"answer": words[-1] if "last word" in task.skill.text else "?", "steps": [f"seed {task.seed}"]}
"""


def test_a_run_killed_in_the_middle_of_attempts_ends_as_an_undisturbed_one(page: Desk, optimizer: ModelServer) -> None:
    """What was answered is not asked again: only attempts in flight are made once more, with the same seed."""
    (page.folder / "my_agent.py").write_text(SLOW)
    begun = page.folder / "begun.txt"
    assert page.run("run", "config.yaml", "--run", "whole", "--quiet", "--set=env.workers=2").code == 0
    attempts = Counter(begun.read_text().splitlines())
    begun.unlink()
    with page.start("run", "config.yaml", "--run", "killed", "--quiet", "--set=env.workers=2") as running:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until and not (begun.exists() and len(begun.read_text().splitlines()) > 7):
            time.sleep(0.01)
        running.send(signal.SIGKILL)
    assert page.run("resume", "killed", "--quiet").code == 0
    again = Counter(begun.read_text().splitlines()) - attempts
    assert set(Counter(begun.read_text().splitlines())) == set(attempts)
    assert again.total() <= 4  # two workers: what was in flight, and what was answered but not yet on disk
    assert told(page.folder / "runs" / "killed") == told(page.folder / "runs" / "whole")
