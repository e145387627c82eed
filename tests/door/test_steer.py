"""Orders to a run: left for whoever writes it, and what came of them."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest
from support.scripted import ScriptedWorld, config

from skillopt_es.door.steer import awaited, how_it_goes_on, steer
from skillopt_es.engine.steering import OrderRefused
from skillopt_es.events.lock import RunLock
from skillopt_es.runs.inbox import Inbox
from skillopt_es.sessions.session import read_state, resume, start


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """A run that was stopped before its first step."""
    calls = iter(range(1000))
    session = ScriptedWorld().session(stopping=lambda: next(calls) > 0)
    with pytest.raises(Exception, match="stopped as asked"):
        asyncio.run(start(config(tmp_path), tmp_path / "run", session))
    return tmp_path / "run"


def test_a_run_at_rest_keeps_an_order_until_it_goes_on(stopped: Path) -> None:
    """Nobody is waited for."""
    asked = steer(stopped, "hint", by="anna", why="x", text="ferns are plants")
    began = time.monotonic()
    assert not awaited(stopped, asked, 60)
    assert time.monotonic() - began < 30
    assert "resume run" in how_it_goes_on(stopped)
    assert [each.text for each in Inbox(stopped).waiting()] == ["ferns are plants"]


def test_a_pin_that_waits_can_be_taken_back(tmp_path: Path) -> None:
    """Once: after that, the line is not pinned."""
    (tmp_path / "first.md").write_text("# Plants\n\n- Look twice.\n")
    calls, run, line = iter(range(1000)), tmp_path / "run", "- Look twice."
    session = ScriptedWorld().session(stopping=lambda: next(calls) > 20)
    with pytest.raises(Exception, match="stopped as asked"):
        asyncio.run(start(config(tmp_path, [f"env.skill_init={tmp_path / 'first.md'}"]), run, session))
    steer(run, "pin", by="anna", why="x", text=line)
    steer(run, "unpin", by="anna", why="x", text=line)
    assert [asked.order for asked in Inbox(run).waiting()] == ["pin", "unpin"]
    with pytest.raises(OrderRefused, match="no such line is pinned"):
        steer(run, "unpin", by="anna", why="x", text=line)
    asyncio.run(resume(run, ScriptedWorld().session()))
    assert read_state(run).steering.pins == ()
    assert len(read_state(run).steering.orders) == 2


def test_what_cannot_be_done_is_refused_at_once(stopped: Path, demo_run: Path) -> None:
    """And leaves nothing behind."""
    with pytest.raises(OrderRefused, match="nobody is working"):
        steer(stopped, "pause", by="anna", why="x")
    with pytest.raises(OrderRefused, match="over"):
        steer(demo_run, "stop", by="anna", why="x")
    assert not (stopped / "inbox").exists()


@pytest.mark.parametrize("refusal", ["", "no such line"])
def test_what_the_writer_says_is_told(stopped: Path, refusal: str) -> None:
    """Followed, or refused with its reason."""
    lock = RunLock(stopped, start="2026-01-01T00:00:00Z")
    try:
        asked = steer(stopped, "hint", by="anna", why="x", text="ferns are plants")
        inbox = Inbox(stopped)
        answer = (lambda: inbox.refused(asked.name, refusal)) if refusal else (lambda: inbox.followed(asked.name))
        threading.Timer(0.2, answer).start()
        if refusal:
            with pytest.raises(OrderRefused, match=refusal):
                awaited(stopped, asked, 20)
        else:
            assert awaited(stopped, asked, 20)
    finally:
        lock.release()
