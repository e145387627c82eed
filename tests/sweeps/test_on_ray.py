"""A sweep whose runs are jobs of a cluster of two nodes: whoever is killed, each run is finished once."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.desk import Desk
from support.logs import events_of
from support.project import Project, plain_config
from support.ray_cluster import SEAT, Nodes

from skillopt_es.events.catalog import RunCompleted, RunStarted
from skillopt_es.events.verify import verify
from skillopt_es.sessions.commons import Commons

pytest.importorskip("ray", reason="Ray is not installed: `pip install '.[ray]'`")


def test_a_sweep_on_a_cluster_goes_on_whoever_is_lost(tmp_path: Path, nodes: Nodes) -> None:
    """Its process is killed, and then a node: nothing is run twice, and every call is counted once."""
    project = Project(tmp_path, plain_config("")).set(
        model={"backend": "simulated", "api_key_env": ""}, train={"num_epochs": 1}
    )
    sweep = {
        "config": "config.yaml",
        "seeds": 4,
        "at_once": 2,
        "limits": {"simulated": {"max_calls": 6000}},
        "ray": {"address": nodes.dashboard, "cpus": 0, "resources": {SEAT: nodes.seats}},  # one run a node
    }
    nodes.add(2 - nodes.spare)
    (project.folder / "sweep.yaml").write_text(json.dumps(sweep))
    desk = Desk(tmp_path, {})
    with desk.start("sweep", "sweep.yaml", "--quiet") as running:
        running.until(lambda: ended(project))
        running.kill()
    with desk.start("sweep", "sweep.yaml", "--quiet") as running:
        running.until(lambda: ended(project).total() >= 2)
        assert nodes.lose(random.Random(1))
        nodes.add()
        done = running.wait()
    assert done.code == 0, done.err
    assert ended(project) == {f"config-seed-{seed}": 1 for seed in range(1, 5)}
    calls = 0
    for folder in sorted((project.folder / "sweeps" / "sweep" / "runs").iterdir()):
        kinds = Counter(type(event) for event in events_of(folder))
        assert (kinds[RunStarted], kinds[RunCompleted]) == (1, 1)
        assert verify(folder).ok
        calls += json.loads(desk.run("usage", str(folder), "--json").out)["total"]["calls"]
    assert launches(project) <= 4 + 2  # a lost node has one run, or is lost between two
    commons = Commons(project.folder / "sweeps" / "sweep" / "limits.db", project.folder)
    spent = commons.spent("simulated").calls
    commons.close()
    assert calls <= spent <= calls + 4  # what was in flight on the node counts at its worst


def facts(project: Project) -> list[dict[str, Any]]:
    """The sweep's log so far."""
    file = project.folder / "sweeps" / "sweep" / "sweep.jsonl"
    return [json.loads(line) for line in file.read_text().split("\n")[:-1]] if file.exists() else []


def ended(project: Project) -> Counter[str]:
    """How often each run has completed, by the sweep's log."""
    return Counter(
        fact["data"]["run"]
        for fact in facts(project)
        if fact["type"] == "RunEnded" and fact["data"]["outcome"] == "completed"
    )


def launches(project: Project) -> int:
    """How many jobs there were."""
    return sum(fact["type"] == "RunLaunched" for fact in facts(project))
