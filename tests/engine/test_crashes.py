"""A crash costs nothing: killed anywhere and resumed, a run ends with the log of one that was never disturbed."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import time
from collections import Counter
from contextlib import closing
from functools import cache
from pathlib import Path

import pytest
from support.crashes import KillAt, in_child
from support.logs import call_slots, decisions_of
from support.ready import PATIENCE
from support.scripted import ScriptedEnvironment, ScriptedWorld, config

from skillopt_es.events.errors import RunNotFound
from skillopt_es.events.schema import LOG_FILE
from skillopt_es.events.verify import verify
from skillopt_es.projections.usage import RunUsage
from skillopt_es.runs.overview import spent
from skillopt_es.sessions.session import resume, start

SMALL = ["train.num_epochs=2", "train.batch_size=2", "optimizer.slow_update_gate_with_selection=true"]


def world() -> ScriptedWorld:
    """A run of two steps an epoch, over few items: each kill makes it once and ends it once."""
    return ScriptedWorld(environment=ScriptedEnvironment(train=4, val=4, test=2))


def undisturbed(folder: Path) -> Path:
    """A run that nobody disturbed."""
    run = folder / "run"
    asyncio.run(start(config(folder, SMALL), run, world().session()))
    return run


def assert_recovers(folder: Path, whole: Path) -> None:
    """Resumes a killed run and compares it with the undisturbed one."""
    run = folder / "run"
    recorded = Counter(call_slots(run))
    again = world()
    asyncio.run(resume(run, again.session()))
    assert decisions_of(run) == decisions_of(whole)
    asked = Counter([*again.target.asked, *again.optimizer.asked])
    assert not asked & recorded, "a recorded call was made again"
    assert Counter(call_slots(run)) == Counter(call_slots(whole))
    assert spent(run).usage == used_by(whole), "what was used is not what an undisturbed run used"
    report = verify(run)
    assert report.ok, report.problems


@cache
def used_by(run: Path) -> RunUsage:
    """The usage of a run that is over."""
    return spent(run).usage


def begin(folder: Path, killer: KillAt) -> None:
    """Starts the run that the killer ends."""
    asyncio.run(start(config(folder, SMALL), folder / "run", world().session(observers=(killer,))))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The undisturbed run."""
    return undisturbed(tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize("every", [14, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_after_any_event_a_run_recovers(whole: Path, tmp_path: Path, every: int) -> None:
    """SIGKILL at every event boundary, or at some of them in every part of the run."""
    for seq in range(1, len(decisions_of(whole)), every):
        folder = tmp_path / str(seq)
        assert in_child(lambda folder=folder, seq=seq: begin(folder, KillAt(event=seq))) == signal.SIGKILL
        assert_recovers(folder, whole)


@pytest.mark.slow
def test_killed_after_any_answer_a_run_recovers(whole: Path, tmp_path: Path) -> None:
    """SIGKILL when a call is recorded and nobody has used it yet."""
    for call in range(1, len(call_slots(whole)) + 1, 4):
        folder = tmp_path / str(call)
        assert in_child(lambda folder=folder, call=call: begin(folder, KillAt(call=call))) == signal.SIGKILL
        assert_recovers(folder, whole)


@pytest.mark.parametrize("times", [6, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_at_random_moments_a_run_recovers(whole: Path, tmp_path: Path, times: int) -> None:
    """SIGKILLs from outside at any moment, also in the middle of a commit."""
    moments, events = random.Random(times), len(decisions_of(whole))
    killed = 0
    for attempt in range(20 * times):  # a run that was over before the signal came does not count
        folder = tmp_path / str(attempt)
        pid = os.fork()
        if pid == 0:
            try:
                begin(folder, KillAt())
            finally:
                os._exit(0)
        # By events: how long a run takes is the machine's affair.
        wait_for_events(folder / "run", moments.randrange(1, events // 2))
        time.sleep(moments.uniform(0.0, 0.005))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        if decisions_of(folder / "run") != decisions_of(whole):
            killed += 1
            assert_recovers(folder, whole)
        if killed == times:
            break
    assert killed == times


def wait_for_events(run: Path, count: int) -> None:
    """Until the log has so many."""
    until = time.monotonic() + PATIENCE
    while events_in(run / LOG_FILE) < count and time.monotonic() < until:
        time.sleep(0.001)


def events_in(file: Path) -> int:
    """How many events a log has, which may not be there yet."""
    if not file.exists():
        return 0
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
            return int(connection.execute("select count(*) from events").fetchone()[0])
    except sqlite3.OperationalError:  # it is just being made
        return 0


def test_a_run_that_is_killed_again_and_again_still_ends(whole: Path, tmp_path: Path) -> None:
    """Every session gets a few events further."""
    assert in_child(lambda: begin(tmp_path, KillAt(event=5))) == signal.SIGKILL

    def go_on(killer: KillAt) -> None:
        asyncio.run(resume(tmp_path / "run", world().session(observers=(killer,))))

    for seq in range(12, 100, 9):
        in_child(lambda seq=seq: go_on(KillAt(event=seq)))
    assert_recovers(tmp_path, whole)


def test_a_run_of_which_nothing_is_left_says_what_to_do(tmp_path: Path) -> None:
    """To accept the loss of everything leaves nothing to go on from, and it cannot be started over."""
    assert in_child(lambda: begin(tmp_path, KillAt(event=1))) == signal.SIGKILL
    run = tmp_path / "run"
    for name in ("log.db-wal", "tail"):
        (run / name).unlink()
    with pytest.raises(RunNotFound) as refused:
        asyncio.run(resume(run, world().session(accept_loss=True)))
    assert "nothing is left to continue from" in refused.value.hint
