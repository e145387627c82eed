"""A sweep of the installed command: killed, interrupted, out of budget, it goes on, and every run is finished once."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.desk import Desk
from support.logs import events_of
from support.project import Project, plain_config

from skillopt_es.events.catalog import RunCompleted, RunStarted
from skillopt_es.events.verify import verify


@pytest.fixture
def offline(tmp_path: Path) -> Project:
    """A small project with simulated models: each run takes about a second, most of it to start."""
    project = Project(tmp_path, plain_config("")).set(model={"backend": "simulated", "api_key_env": ""})
    return project.set(train={"num_epochs": 1})


def write(project: Project, **sweep: Any) -> None:
    """The sweep's file; JSON is YAML, too."""
    (project.folder / "sweep.yaml").write_text(json.dumps({"config": "config.yaml", **sweep}))


def facts(project: Project) -> list[dict[str, Any]]:
    """The sweep's log so far."""
    file = project.folder / "sweeps" / "sweep" / "sweep.jsonl"
    lines = file.read_text().split("\n")[:-1] if file.exists() else []
    return [json.loads(line) for line in lines]


def ended(project: Project) -> Counter[str]:
    """How often each run has completed, by the sweep's log."""
    return Counter(
        fact["data"]["run"]
        for fact in facts(project)
        if fact["type"] == "RunEnded" and fact["data"]["outcome"] == "completed"
    )


def assert_finished_once(project: Project, runs: int) -> None:
    """Each run has one beginning and one end, and nothing of its log is wrong."""
    assert ended(project) == Counter(dict.fromkeys(ended(project), 1))
    folders = sorted((project.folder / "sweeps" / "sweep" / "runs").iterdir())
    assert sorted(ended(project)) == [folder.name for folder in folders]
    assert len(folders) == runs
    for folder in folders:
        kinds = Counter(type(event) for event in events_of(folder))
        assert (kinds[RunStarted], kinds[RunCompleted]) == (1, 1)
        assert verify(folder).ok


@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "kill_at"), [(2, (1,)), (5, (2, 6))], ids=["small", "killed twice"])
def test_a_killed_sweep_goes_on(desk: Desk, offline: Project, seeds: int, kill_at: tuple[int, ...]) -> None:
    """SIGKILL leaves its runs at work: the next process waits for them, and begins none of them again."""
    write(offline, axes={"optimizer.learning_rate": [1, 2]}, seeds=seeds, at_once=2)
    for count in kill_at:
        with desk.start("sweep", "sweep.yaml", "--quiet") as running:
            running.until(lambda count=count: ended(offline).total() >= count)
            running.kill()
    done = desk.run("sweep", "sweep.yaml", "--json")
    assert done.code == 0, done.err
    assert_finished_once(offline, 2 * seeds)
    assert done.json["status"] == "completed"
    assert [row["completed"] for row in done.json["settings"]] == [seeds, seeds]
    assert {row["against_leader"]["difference"]["seeds"] for row in done.json["settings"][1:]} == {seeds}


@pytest.mark.slow
def test_ctrl_c_pauses_every_run(desk: Desk, offline: Project) -> None:
    """The same command goes on with them."""
    write(offline, seeds=3, at_once=2)
    with desk.start("sweep", "sweep.yaml") as running:
        running.until(lambda: ended(offline))
        running.send(signal.SIGINT)
        done = running.wait()
    assert done.code == 130
    assert not done.complaints
    assert "stopped as asked; every run that was at work is paused" in done.err
    assert "`skillopt-es sweep sweep.yaml` continues it" in done.err
    assert desk.run("sweep", "sweep.yaml", "--quiet").code == 0
    assert_finished_once(offline, 3)


@pytest.mark.slow
def test_a_shared_budget_holds_over_all_runs(desk: Desk, offline: Project) -> None:
    """With exit code 3 and the key; with a higher limit the same command goes on, and every call is counted once."""
    write(offline, seeds=2, at_once=2, limits={"simulated": {"max_calls": 60}})
    done = desk.run("sweep", "sweep.yaml", "--quiet")
    assert done.code == 3
    assert "limits.simulated.max_calls is 60, with 60 requests sent by all runs that share it" in done.err
    assert ended(offline).total() == 0
    write(offline, seeds=2, at_once=2, limits={"simulated": {"max_calls": 6000}})
    done = desk.run("sweep", "sweep.yaml", "--json", "--quiet")
    assert done.code == 0, done.err
    assert_finished_once(offline, 2)


@pytest.mark.slow
def test_a_changed_plan_is_refused(desk: Desk, offline: Project) -> None:
    """A table of two plans would compare what nobody planned; the limits alone may change."""
    write(offline, seeds=1)
    assert desk.run("sweep", "sweep.yaml", "--quiet").code == 0
    write(offline, seeds=2)
    done = desk.run("sweep", "sweep.yaml")
    assert done.code == 2
    assert "was begun with another plan: it has other runs (2 runs now, 1 then)" in done.err
    offline.set(train={"batch_size": 4})
    write(offline, seeds=1)
    done = desk.run("sweep", "sweep.yaml")
    assert "config-seed-1 has other settings" in done.err


@pytest.mark.slow
def test_a_run_that_fails_does_not_stop_the_others(desk: Desk, offline: Project) -> None:
    """Its own words are told; the next time it is tried again."""
    write(offline, settings=[{"name": "good"}, {"name": "bad", "set": {"env.data_path": "nowhere.jsonl"}}])
    done = desk.run("sweep", "sweep.yaml", "--json", "--quiet")
    assert done.code == 1
    assert "1 run did not complete: first bad-seed-47" in done.err
    assert "nowhere.jsonl" in done.err
    assert [row["completed"] for row in done.json["settings"]] == [1, 0]
    (offline.folder / "nowhere.jsonl").write_bytes((offline.folder / "tasks.jsonl").read_bytes())
    assert desk.run("sweep", "sweep.yaml", "--quiet").code == 0
    assert_finished_once(offline, 2)


@pytest.mark.slow
def test_status_says_where_a_sweep_stands(desk: Desk, offline: Project) -> None:
    """While it works and afterwards; by its file, its name or nothing."""
    assert "there is no sweep in sweeps" in desk.run("sweep", "status").err
    write(offline, seeds=2, at_once=1)
    with desk.start("sweep", "sweep.yaml", "--quiet") as running:
        running.until(lambda: len(facts(offline)) > 1)
        assert "sweep (running)" in desk.run("sweep", "status").out
        assert running.wait().code == 0
    for words in ((), ("sweep.yaml",), ("sweep",)):
        said = desk.run("sweep", "status", *words)
        assert said.code == 0
        assert "2 of 2 completed" in said.out
    assert "there: sweep" in desk.run("sweep", "status", "other").err


@pytest.mark.slow
def test_a_second_process_is_refused(desk: Desk, offline: Project) -> None:
    """One sweep has one writer."""
    write(offline, seeds=2, at_once=1)
    with desk.start("sweep", "sweep.yaml", "--quiet") as running:
        running.until(lambda: len(facts(offline)) > 1)
        done = desk.run("sweep", "sweep.yaml")
        assert done.code == 1
        assert "has been writing" in done.err
        running.send(signal.SIGTERM)
        assert running.wait().code == 130
