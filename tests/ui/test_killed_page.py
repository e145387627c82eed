"""A page that is killed takes nothing with it: the runs that it began are processes of their own."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from support.ready import PATIENCE

from skillopt_es.runs.folders import is_run, is_written, writer_here

pytest.importorskip("uvicorn", reason="the page needs the extra `ui`")
pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")]

CONFIG = """
model: {backend: simulated, optimizer: o, target_backend: "python:agent.py:answer"}
train: {num_epochs: 1, batch_size: 12}
env: {name: tasks, grader: exact, data_path: tasks.jsonl, split_mode: field, skill_init: SKILL.md, workers: 8}
"""
AGENT = """
import asyncio

async def answer(task):
    await asyncio.sleep(0.05)
    return "none"
"""


def until(is_so: Callable[[], bool]) -> None:
    """Waits."""
    end = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_run_goes_on_whole_when_the_page_that_began_it_is_killed(tmp_path: Path) -> None:
    """While another page reads along, which is killed, too."""
    for name in ("tasks.jsonl", "SKILL.md"):
        shutil.copy(Path(__file__).parent.parent.parent / "configs" / "demo" / name, tmp_path)
    (tmp_path / "slow.yaml").write_text(CONFIG)
    (tmp_path / "agent.py").write_text(AGENT)
    command, run = [sys.executable, "-m", "skillopt_es"], tmp_path / "runs" / "mine"
    pages = [
        subprocess.Popen(
            [*command, "ui", "--port", "0"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        for _ in range(2)
    ]
    try:
        home = []
        for page in pages:
            assert page.stdout is not None
            home.append(page.stdout.readline().decode().strip())
        address = home[0].partition("/?")[0]
        with httpx.Client(follow_redirects=True, timeout=PATIENCE) as browser:
            browser.get(home[0])
            [token] = set(re.findall(r'name="form_token" value="([^"]+)"', browser.get(f"{address}/start").text))
            fields = {"form_token": token, "config": "file: slow.yaml", "name": "mine"}
            begun = browser.post(f"{address}/start", data=fields, headers={"origin": address})
            assert begun.status_code == 200, begun.text
        until(lambda: is_run(run) and is_written(run))
        writer = writer_here(run)
        assert writer is not None
        assert writer not in [page.pid for page in pages]
        token = home[0].partition("token=")[2]
        for pid in (writer, pages[0].pid):  # what a run begun here, and an agent under it, can look up
            for name in ("cmdline", "environ"):
                assert token.encode() not in Path(f"/proc/{pid}/{name}").read_bytes()
        with httpx.Client(follow_redirects=True, timeout=PATIENCE) as reader:
            assert reader.get(home[1].replace("/?", "/run/mine?")).status_code == 200
        for page in pages:
            page.send_signal(signal.SIGKILL)
            page.wait()
        assert is_written(run)
        until(lambda: not is_written(run))
    finally:
        for page in pages:
            page.kill()
            page.communicate()
    for words in (["verify", "mine"], ["replay", "mine", "--check"]):
        done = subprocess.run([*command, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    status = subprocess.run([*command, "status", "mine"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "completed" in status.stdout
