"""A run has one writer; a second one is told who that is."""

from __future__ import annotations

import json
import os
import signal
import socket

import pytest
from support.desk import Desk
from support.logs import events_of
from support.project import Endpoint, Project, files_of

from skillopt_es.events.verify import verify


def test_a_second_writer_is_refused_until_the_first_is_gone(desk: Desk, endpoint: Endpoint, project: Project) -> None:
    """It names process and host and writes nothing; after a kill -9 of the first the run goes on at once."""
    run = project.run_folder()
    endpoint.delay = 20.0
    with desk.start("run", "config.yaml", "--run", "one") as first:
        first.until(lambda: endpoint.server.in_flight and {"logs.jsonl", "now.json"} <= files_of(run))
        before = (events_of(run), files_of(run))
        done = desk.run("resume", "one", "--quiet")
        assert (done.code, done.out) == (1, "")
        [complaint] = done.complaints
        assert f"process {first.pid} on {socket.gethostname()} has been writing runs/one since" in complaint
        assert done.err.endswith("\n  wait until it ends, or stop it\n")
        assert (events_of(run), files_of(run)) == before
        assert json.loads((run / "lock").read_text())["pid"] == first.pid
        first.kill()
    endpoint.delay = 0.0
    again = desk.run("resume", "one", "--json")
    assert (again.code, again.json["status"]) == (0, "completed")
    assert verify(run).ok


def test_a_second_run_of_the_same_name_is_refused(desk: Desk, endpoint: Endpoint, project: Project) -> None:
    """Also while the first one is at work, whose log is not touched."""
    endpoint.delay = 0.02
    with desk.start("run", "config.yaml", "--run", "one") as first:
        first.until(lambda: len(endpoint.server.requests) > 8)
        done = desk.run("run", "config.yaml", "--run", "one", "--quiet")
        assert done.code in {1, 2}
        assert len(done.complaints) == 1
        endpoint.delay = 0.0
        assert first.wait().code == 0
    assert verify(project.run_folder()).ok


def test_of_many_that_resume_at_once_one_does(desk: Desk, endpoint: Endpoint, project: Project) -> None:
    """The others are refused, and every call is made once."""
    endpoint.delay = 0.02
    with desk.start("run", "config.yaml", "--run", "one") as first:
        first.until(lambda: len(endpoint.server.requests) > 8)
        first.send(signal.SIGINT)
        assert first.wait().code == 130
    racers = [desk.start("resume", "one", "--quiet") for _ in range(4)]
    endpoint.delay = 0.0
    done = [racer.wait() for racer in racers]
    assert sorted(each.code for each in done) in ([0, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0])
    assert set(endpoint.asked.values()) == {1}
    assert verify(project.run_folder()).ok


@pytest.mark.slow
def test_readers_never_disturb_a_writer(desk: Desk, endpoint: Endpoint, project: Project) -> None:
    """The log can be read and verified at any time while the run is on."""
    endpoint.delay = 0.01
    seen = 0
    with desk.start("run", "config.yaml", "--run", "one") as first:
        first.until(lambda: len(endpoint.server.requests) > 4)
        while first.process.poll() is None:
            assert verify(project.run_folder()).ok
            assert len(events_of(project.run_folder())) >= seen
            seen = len(events_of(project.run_folder()))
        assert first.wait().code == 0
    assert os.path.getsize(project.run_folder() / "log.db") > 0  # noqa: PTH202
