"""How far a session is: counted once, and told to other processes while it lasts."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from attrs import asdict
from support.scripted import ScriptedWorld, config

from skillopt_es.engine.work import Work
from skillopt_es.events.catalog import Event
from skillopt_es.events.journal import CallRow
from skillopt_es.events.lock import RunLock
from skillopt_es.projections.state import AnyState
from skillopt_es.runs import now as module
from skillopt_es.runs.now import NOW_FILE, Now, Tally, now_of
from skillopt_es.sessions.session import start

SAID = Now(where="epoch 1/2", stage="rank", total=4, done=2, answered=2, in_flight=1, waiting=1, tokens=30)


def test_what_a_session_says_is_read_while_somebody_writes_the_run(tmp_path: Path) -> None:
    """What a killed one has left behind means nothing."""
    (tmp_path / NOW_FILE).write_text(json.dumps(asdict(SAID)))
    assert now_of(tmp_path) is None
    lock = RunLock(tmp_path, start="2026-01-01T00:00:00Z")
    try:
        assert now_of(tmp_path) == SAID
        (tmp_path / NOW_FILE).write_text('{"stage": 1}')
        assert now_of(tmp_path) is None
    finally:
        lock.release()


class Looking:
    """Reads what a session says of itself each time that something happens, after giving it the time to say it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tally = Tally()
        self.seen: list[tuple[Now, Now | None]] = []

    def planned(self, work: Work, state: AnyState) -> None:
        """Counts as the session does."""
        self.tally.planned(work, state)

    def happened(self, seq: int, event: Event, state: AnyState) -> None:
        """Counts, and looks."""
        self.tally.happened(seq, event, state)
        self.seen.append((self.tally.now, now_of(self.folder)))

    def called(self, row: CallRow) -> None:
        """Counts."""
        self.tally.called(row)


def test_a_session_tells_what_it_is_doing_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The numbers are those that any other observer counts, a little later."""
    monkeypatch.setattr(module, "_EVERY_SECONDS", 0.0)
    looking = Looking(tmp_path / "run")
    asyncio.run(
        start(config(tmp_path, ["train.num_epochs=1"]), tmp_path / "run", ScriptedWorld().session(observers=(looking,)))
    )
    counted = {(now.stage, now.total, now.done) for now, _ in looking.seen}
    told = [told for _, told in looking.seen if told is not None]
    assert len({each.stage for each in told}) > 2  # a stage that is over at once may go by untold
    assert all((each.stage, each.total, each.done) in counted for each in told if each.done)
    assert not (tmp_path / "run" / NOW_FILE).exists()


def test_what_is_left_is_told_once_a_step_took_some_time() -> None:
    """Before that nobody knows."""
    tally = Tally(clock=lambda: 0.0)
    assert tally.left is None


def test_a_session_with_a_budget_says_what_is_left_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the session itself counts; without one it says nothing."""
    monkeypatch.setattr(module, "_EVERY_SECONDS", 0.0)
    looking = Looking(tmp_path / "run")
    limits = ["train.num_epochs=1", "budget.max_calls=1000", "budget.max_minutes=60"]
    asyncio.run(start(config(tmp_path, limits), tmp_path / "run", ScriptedWorld().session(observers=(looking,))))
    told = [told.budget for _, told in looking.seen if told is not None]
    calls = [next(each for each in budget if each.limit == "calls") for budget in told]
    assert {each.most for each in calls} == {"1,000"}
    left = [int(each.left.replace(",", "")) for each in calls]
    assert left == sorted(left, reverse=True)
    assert left[0] > left[-1] > 0
    assert {each.most for budget in told for each in budget if each.limit == "minutes"} == {"60"}
