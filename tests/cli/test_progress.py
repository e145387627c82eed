"""What is said while a run is watched."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast, get_args

import pytest
from rich.console import Console
from rich.live import Live
from support.scripted import ScriptedModel, ScriptedWorld, config, target_reply

from skillopt_es.algorithms.classic.algorithm import CLASSIC
from skillopt_es.algorithms.classic.jobs import Job
from skillopt_es.cli import progress as module
from skillopt_es.cli.process import StopRequests, until_stopped
from skillopt_es.cli.progress import Progress, open_progress
from skillopt_es.cli.terminal import safe_streams, telling_on_stderr
from skillopt_es.config.files import GivenTwice, load_once
from skillopt_es.engine.algorithms import fold
from skillopt_es.engine.in_flight import InFlight
from skillopt_es.engine.work import Rollouts, Unit
from skillopt_es.events.catalog import RunStarted
from skillopt_es.events.values import Purpose, SkillTree, SplitIds
from skillopt_es.ports import ChatRequest
from skillopt_es.sessions.session import start


def test_every_question_to_the_optimizer_has_a_name() -> None:
    """A stage without one could not be shown."""
    assert set(CLASSIC.questions) == set(get_args(Job))


@contextmanager
def piped(folder: Path, *, quiet: bool = False) -> Iterator[Progress]:
    """Progress where there is no terminal."""
    with safe_streams(), telling_on_stderr(), open_progress(folder, quiet=quiet) as progress:
        yield progress


def test_each_stage_says_that_it_begins_where_there_is_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before its first answer is there; nothing with --quiet."""
    for quiet in (False, True):
        settings = config(tmp_path / str(quiet), ["train.num_epochs=1"])
        with piped(tmp_path / str(quiet), quiet=quiet) as observer:
            asyncio.run(start(settings, tmp_path / str(quiet) / "run", ScriptedWorld().session(observers=(observer,))))
        lines = capsys.readouterr().err.splitlines()
        if quiet:
            assert not lines
            continue
        assert lines[:2] == [f"run {tmp_path / str(quiet)}", "scoring the initial skill, 12 to do"]
        assert {
            "step 1: trying training items, 4 to do",
            "step 1: scoring the candidate, 12 to do",
            "step 1: rank",
        } <= set(lines)


UNIT = Unit(place="baseline", purpose="selection", item="v1", skill=SkillTree(files={"SKILL.md": ""}), seed=0)
STATE = fold(
    [
        RunStarted(
            software="",
            config={},
            algorithm="classic",
            folder="",
            skill=UNIT.skill,
            splits=SplitIds(train=(), val=("v1",), test=(), digests={}),
            steps_per_epoch=1,
            total_steps=1,
        )
    ]
)


def test_a_stage_that_goes_on_for_long_says_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Again and again, until the next one begins."""
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.01)

    async def waiting(observer: Progress) -> None:
        observer.planned(Rollouts(units=(UNIT, UNIT)), STATE)
        await asyncio.sleep(0.3)

    with piped(tmp_path) as observer:
        asyncio.run(waiting(observer))
    assert capsys.readouterr().err.count("  scoring the initial skill: 0 of 2 done, 0 calls answered after 0:0") > 2


@pytest.mark.parametrize(
    ("place", "purpose", "words"),
    [
        ("e1/s2/reported", "selection", "scoring the new skill once more (for reporting)"),
        ("e1/s2/gate/repeat-2", "selection", "scoring the candidate, repeat 2"),
        ("e1/slow/standing", "selection", "scoring the current skill again"),
        ("e1/slow/previous", "slow_previous", "trying the epoch's first skill on training items"),
        ("final/test/best", "test", "scoring on the test items"),
    ],
)
def test_rollouts_are_named_by_what_they_are_for(place: str, purpose: Purpose, words: str) -> None:
    """Not by the last part of their place."""
    skill = SkillTree(files={"SKILL.md": ""})
    assert CLASSIC.words.doing(Unit(place=place, purpose=purpose, item="v1", skill=skill, seed=0)) == words


class Screen:
    """Keeps what a live line showed."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._shown: Progress | None = None

    def update(self, shown: Progress) -> None:
        """One more."""
        self._shown = shown
        self.draw()

    def draw(self) -> None:
        """Draws again what is there, as a terminal does several times a second."""
        assert self._shown is not None
        self.lines.append(self._shown.__rich__().plain)


@pytest.mark.parametrize("width", [50, 80, 120])
def test_the_time_stays_on_a_narrow_line(tmp_path: Path, width: int) -> None:
    """What is under way and the time are what a live line is for; the rest is there as far as it fits."""
    screen = Screen()
    observer = Progress(tmp_path, Console(file=io.StringIO(), width=width), live=cast("Live", screen))
    asyncio.run(start(config(tmp_path), tmp_path / "run", ScriptedWorld().session(observers=(observer,))))
    assert all("elapsed" in line for line in screen.lines)
    assert all(len(line) <= width for line in screen.lines)
    assert any("left" in line for line in screen.lines)
    assert width == 50 or any("tokens" in line for line in screen.lines)


def test_the_time_goes_on_while_nothing_happens(tmp_path: Path) -> None:
    """A call that waits for long says nothing, and the line is drawn again all the same."""
    screen, clock = Screen(), iter((0.0, 0.0, 0.0, 12.0))
    observer = Progress(
        tmp_path,
        Console(file=io.StringIO(), width=80),
        live=cast("Live", screen),
        clock=lambda: next(clock),
    )
    observer.planned(Rollouts(units=(UNIT, UNIT)), STATE)
    screen.draw()
    assert [line.rpartition(" · ")[2] for line in screen.lines] == ["0:00 elapsed", "0:12 elapsed"]


@pytest.mark.parametrize(
    ("heard", "times"),
    [
        ([(0.0, signal.SIGINT), (0.0, signal.SIGINT)], 2),
        ([(0.0, signal.SIGTERM), (0.1, signal.SIGTERM)], 1),
        ([(0.0, signal.SIGTERM), (9.0, signal.SIGTERM)], 2),
        ([(0.0, signal.SIGTERM), (0.1, signal.SIGTERM), (9.0, signal.SIGTERM)], 2),
        ([(0.0, signal.SIGHUP), (9.0, signal.SIGHUP)], 1),
        ([(0.0, signal.SIGTERM), (0.1, signal.SIGINT)], 2),
    ],
)
def test_only_a_second_request_counts_as_the_second(heard: list[tuple[float, int]], times: int) -> None:
    """A closing terminal and `timeout` send their signal more than once."""
    moments = iter(moment for moment, _ in heard)
    asked = StopRequests(clock=lambda: next(moments))
    for _, number in heard:
        asked.hear(number)
    assert asked.times == times


@pytest.mark.parametrize(
    ("count", "words"), [(0, "no call is"), (1, "finishing the 1 call"), (7, "finishing the 7 calls")]
)
def test_ctrl_c_says_how_many_calls_it_waits_for(count: int, words: str) -> None:
    """Whoever pays for them wants to know."""
    said: list[str] = []
    in_flight = InFlight()
    in_flight.count = count

    async def go() -> None:
        async with until_stopped(said.append, in_flight) as stopping:
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(0.2)
            assert stopping()

    asyncio.run(go())
    assert said == [f"stopping: {words} in flight (Ctrl-C once more to stop at once)"]


def test_calls_that_are_being_answered_are_counted(tmp_path: Path) -> None:
    """Up while they are, down to none at the end, also after a failure."""
    counted: list[int] = []
    in_flight = InFlight()

    def target(request: ChatRequest) -> str:
        counted.append(in_flight.count)
        return target_reply(request)

    session = ScriptedWorld(target=ScriptedModel("scripted target", target)).session(in_flight=in_flight)
    asyncio.run(start(config(tmp_path, ["train.num_epochs=1"]), tmp_path / "run", session))
    assert min(counted) >= 1
    assert in_flight.count == 0


def test_the_package_can_be_run_as_the_command(tmp_path: Path) -> None:
    """Where no script is on the path."""
    command = [sys.executable, "-m", "skillopt_es", "--version"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("skillopt-es ")


def test_a_key_that_comes_in_by_reference_may_be_given_anew() -> None:
    """That is what YAML's merge is for; a mapping's own key is there once."""
    assert load_once("a: &a {x: 1}\nb: {<<: *a, x: 2}\n") == {"a": {"x": 1}, "b": {"x": 2}}
    with pytest.raises(GivenTwice) as twice:
        load_once("a:\n  x: 1\n  x: 1\n")
    assert (twice.value.key, twice.value.line, twice.value.first) == ("x", 3, 2)
