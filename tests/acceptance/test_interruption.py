"""A run that is stopped, however rudely, goes on where it stopped and pays for nothing twice."""

from __future__ import annotations

import os
import pty
import random
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from support.desk import Desk, Done, Running
from support.logs import call_slots, events_of
from support.params import parametrized
from support.project import Endpoint, Project, request_ids, told
from support.ready import PATIENCE

from skillopt_es.cli.process import ECHO_SECONDS
from skillopt_es.events.catalog import RunPaused, RunResumed
from skillopt_es.events.verify import verify

SLOW = 0.012
WORKERS = 4
OPEN = 2 * WORKERS  # calls in flight and answers on their way to the disk


@contextmanager
def training(desk: Desk, endpoint: Endpoint, *, calls: int, delay: float = SLOW) -> Iterator[Running]:
    """The run `one` at a slow endpoint, as soon as that many calls have arrived there."""
    endpoint.delay = delay
    with desk.start("run", "config.yaml", "--run", "one") as running:
        running.until(lambda: len(endpoint.server.requests) >= calls)
        yield running
    endpoint.delay = 0.0


def assert_goes_on(desk: Desk, endpoint: Endpoint, project: Project, undisturbed: Path, *, repeats: int) -> None:
    """Resumed, the run ends with the log of an undisturbed one, and asks again only what was in flight."""
    run = project.run_folder()
    recorded, asked = request_ids(call_slots(run)), endpoint.asked
    assert len(asked - recorded) <= repeats
    done = desk.run("resume", "one")
    assert done.code == 0, done.err
    again = endpoint.asked - asked
    assert not again & recorded, "a recorded call was made again"
    assert (again & asked).total() <= repeats
    assert verify(run).ok
    assert told(run) == told(undisturbed)
    assert Counter(call_slots(run)) == Counter(call_slots(undisturbed))


def assert_paused_well(done: Done, endpoint: Endpoint, project: Project) -> None:
    """Every call that was made is recorded, the log's last event says why it ends, and the user is told what to do."""
    run = project.run_folder()
    assert done.code == 130
    assert not done.complaints, "what was asked for is no error"
    assert "\nstopped as asked; everything that was answered is recorded\n" in done.err
    assert done.err.endswith("\n  `skillopt-es resume one` continues it\n")
    last = events_of(run)[-1]
    assert isinstance(last, RunPaused)
    assert last.reason == "interrupt"
    assert request_ids(call_slots(run)) == endpoint.asked
    assert verify(run).ok


@parametrized(
    ("number", "calls"),
    [
        (signal.SIGINT, 40),
        (signal.SIGTERM, 15),
        pytest.param(signal.SIGINT, 2, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, 30, marks=pytest.mark.slow),
    ],
    by_default=1,
)
def test_a_first_signal_finishes_what_is_in_flight(
    desk: Desk, endpoint: Endpoint, project: Project, undisturbed: Path, number: signal.Signals, calls: int
) -> None:
    """Ctrl-C, `kill` and a closed terminal are the same; `resume` goes on without a repeated call."""
    with training(desk, endpoint, calls=calls) as running:
        running.send(number)
        assert_paused_well(running.wait(), endpoint, project)
    assert endpoint.server.wait_until(lambda server: server.open_connections == 0)
    assert_goes_on(desk, endpoint, project, undisturbed, repeats=0)
    comings = [event for event in events_of(project.run_folder()) if isinstance(event, RunPaused | RunResumed)]
    assert [type(event) for event in comings] == [RunPaused, RunResumed]


def test_a_second_ctrl_c_stops_at_once(desk: Desk, endpoint: Endpoint, project: Project, undisturbed: Path) -> None:
    """It does not wait for an endpoint that takes its time, and nothing that was recorded is lost."""
    with training(desk, endpoint, calls=30) as running:
        endpoint.delay = 20.0
        running.until(lambda: endpoint.server.in_flight == WORKERS)
        running.send(signal.SIGINT)
        running.until(lambda: "Ctrl-C once more" in running.said)
        running.send(signal.SIGINT)
        done = running.wait()
    assert done.code == 130
    assert not done.complaints
    assert "\nstopped at once, as asked; calls in flight may be paid again\n" in done.err
    assert "`skillopt-es resume one` continues it" in done.err
    assert_goes_on(desk, endpoint, project, undisturbed, repeats=OPEN)


@pytest.mark.parametrize("calls", [10, pytest.param(35, marks=pytest.mark.slow)])
def test_a_second_ctrl_c_ends_the_run_whatever_it_is_doing(
    desk: Desk, endpoint: Endpoint, project: Project, calls: int
) -> None:
    """Also while it commits, scores or writes its anchor."""
    with training(desk, endpoint, calls=calls, delay=0.0) as running:
        running.send(signal.SIGINT)
        running.until(lambda: running.process.poll() is not None or "Ctrl-C once more" in running.said)
        running.send(signal.SIGINT)
        assert running.wait().code in {130, -signal.SIGINT}
    assert verify(project.run_folder()).ok
    assert desk.run("resume", "one").code == 0


def test_an_echo_of_a_signal_does_not_count_as_the_second(desk: Desk, endpoint: Endpoint, project: Project) -> None:
    """A closing terminal sends SIGHUP twice, `timeout` SIGTERM: the run still ends in order."""
    with training(desk, endpoint, calls=20) as running:
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGHUP, signal.SIGHUP):
            running.send(number)
        assert_paused_well(running.wait(), endpoint, project)


@pytest.mark.parametrize(
    "words",
    [
        ("run", "config.yaml"),
        ("eval", "config.yaml", "--split", "val"),
        pytest.param(("resume", "one", "--max-calls", "1000"), marks=pytest.mark.slow),
        pytest.param(("sweep", "sweep.yaml"), marks=pytest.mark.slow),
    ],
    ids=lambda words: words[0],
)
def test_a_second_kill_stops_at_once(desk: Desk, endpoint: Endpoint, project: Project, words: tuple[str, ...]) -> None:
    """As Ctrl-C does: it does not wait for an endpoint that takes its time."""
    if words[0] == "resume":
        assert desk.run("run", "config.yaml", "--run", "one", "--max-calls", 10).code == 3
    (project.folder / "sweep.yaml").write_text("config: config.yaml\nseeds: 1\n")
    calls = len(endpoint.server.requests)
    endpoint.delay = 2 * PATIENCE
    with desk.start(*words) as running:
        running.until(lambda: len(endpoint.server.requests) > calls)
        running.send(signal.SIGTERM)
        running.until(lambda: "Ctrl-C once more" in running.said)
        time.sleep(ECHO_SECONDS)  # what comes earlier is an echo
        running.send(signal.SIGTERM)
        done = running.wait()
    assert done.code == 130
    assert not done.complaints
    assert words[0] == "sweep" or "stopped at once, as asked" in done.err


def test_nohup_is_respected(desk: Desk, endpoint: Endpoint, project: Project) -> None:
    """What the caller had it ignore stays ignored: the run survives the terminal."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with training(desk, endpoint, calls=20) as running:
            running.send(signal.SIGHUP)
            endpoint.delay = 0.0
            done = running.wait()
    finally:
        signal.signal(signal.SIGHUP, before)
    assert done.code == 0
    assert "stopping" not in done.err
    assert len(events_of(project.run_folder())) > 100


def test_a_closed_terminal_leaves_a_paused_run(
    desk: Desk, endpoint: Endpoint, project: Project, undisturbed: Path
) -> None:
    """SIGHUP with a terminal that can no longer be written to: the log ends like after Ctrl-C."""
    endpoint.delay = SLOW
    ours, theirs = pty.openpty()
    environ = {"PATH": os.environ["PATH"], "TERM": "xterm", **desk.environ}
    words = [str(desk.command), "run", "config.yaml", "--run", "one"]
    process = subprocess.Popen(words, cwd=desk.folder, env=environ, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    assert endpoint.server.wait_until(lambda server: len(server.requests) > 20)
    os.close(ours)
    process.send_signal(signal.SIGHUP)
    assert process.wait(PATIENCE) == 130
    endpoint.delay = 0.0
    assert isinstance(events_of(project.run_folder())[-1], RunPaused)
    assert_goes_on(desk, endpoint, project, undisturbed, repeats=0)


@pytest.mark.slow
def test_a_terminal_sees_one_line_that_moves(desk: Desk, endpoint: Endpoint, project: Project) -> None:
    """With epoch, step, stage, scores, tokens and time; the lines that stay are those of a pipe."""
    endpoint.delay = SLOW
    ours, theirs = pty.openpty()
    environ = {"PATH": os.environ["PATH"], "TERM": "xterm", "COLUMNS": "140", "LINES": "40", **desk.environ}
    words = [str(desk.command), "run", "config.yaml", "--run", "one"]
    process = subprocess.Popen(words, cwd=desk.folder, env=environ, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # what Linux says when the other side is closed
        while piece := os.read(ours, 65536):
            shown += piece
    os.close(ours)
    assert process.wait(PATIENCE) == 0
    assert b"\x1b[2K" in shown, "the line moves"
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    assert re.search(r"epoch \d step \d/4 · (trying|scoring) [a-z ']+ \d/\d · hard: current 0\.\d{4} best", text)
    assert "tokens · 0:0" in text
    assert "step 1: accept new best" in text
    assert "run         one (completed)" in text


@pytest.mark.parametrize("attempt", [0, 1, *(pytest.param(each, marks=pytest.mark.slow) for each in (2, 3, 4))])
def test_a_killed_run_goes_on(
    desk: Desk, endpoint: Endpoint, project: Project, attempt: int, undisturbed: Path
) -> None:
    """SIGKILL at a random moment: only calls in flight are asked again, all else is as if nothing had been."""
    draw = random.Random(attempt)
    with training(desk, endpoint, calls=draw.randrange(13, 115), delay=0.004) as running:
        with suppress(TimeoutError):
            running.process.wait(draw.random() * 0.01)
        running.kill()
    assert not endpoint.server.errors
    assert_goes_on(desk, endpoint, project, undisturbed, repeats=OPEN)


@pytest.mark.slow
def test_a_run_killed_again_and_again_ends(desk: Desk, endpoint: Endpoint, project: Project, undisturbed: Path) -> None:
    """Every session gets further, down to the last call."""
    with training(desk, endpoint, calls=15) as running:
        running.kill()
    for _ in range(3):
        endpoint.delay = SLOW
        seen = len(endpoint.server.requests)
        with desk.start("resume", "--quiet") as running:
            running.until(lambda seen=seen: len(endpoint.server.requests) >= seen + 20)
            running.kill()
    endpoint.delay = 0.0
    assert_goes_on(desk, endpoint, project, undisturbed, repeats=OPEN * 5)


def test_a_run_killed_before_its_first_event_can_be_begun_again(desk: Desk, project: Project) -> None:
    """An empty log is no run yet: the same command takes the name, and `resume` says so."""
    run = project.run_folder()
    assert desk.run("run", "config.yaml", "--run", "one", "--set", "model.api_key_env=NOT_SET").code == 2
    assert not run.exists()
    make_empty_log(project)
    done = desk.run("resume", "one")
    assert (done.code, done.complaints) == (2, ["error: one stopped before it began"])
    assert desk.run("run", "config.yaml", "--run", "one", "--quiet").code == 0


def make_empty_log(project: Project) -> None:
    """What a kill between the making of the log and its first event leaves."""
    from datetime import UTC, datetime

    from skillopt_es.events.writer import RunWriter

    RunWriter.create(project.run_folder(), run_id="x", name="one", now=lambda: datetime.now(UTC)).close()
