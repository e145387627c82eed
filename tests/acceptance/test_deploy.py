"""The job files do what they say: a job that is taken away is continued by the next one, and nothing is done twice."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from attrs import frozen
from support.logs import call_slots, events_of
from support.project import Endpoint, Project
from support.ready import COMMAND, PATIENCE

from skillopt_es.events.catalog import RunCompleted, RunPaused, RunStarted
from skillopt_es.events.verify import verify

DEPLOY = Path(__file__).parent.parent.parent / "docs" / "deploy"
pytestmark = pytest.mark.slow


@frozen
class Node:
    """A machine that starts jobs in the project's folder."""

    project: Project
    endpoint: Endpoint
    environ: dict[str, str]

    @contextmanager
    def job(self, *words: str, **more: str) -> Iterator[subprocess.Popen[bytes]]:
        """A job at work."""
        tools = f"{COMMAND.parent}:{self.project.folder}:{os.environ['PATH']}"
        environ = {"PATH": tools, "LANG": "C.UTF-8", "CONFIG": "config.yaml", "RUN": "one", **self.environ, **more}
        process = subprocess.Popen(words, cwd=self.project.folder, env=environ, start_new_session=True)
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait(PATIENCE)

    def run(self, *words: str, **more: str) -> int:
        """A job, to its end."""
        with self.job(*words, **more) as process:
            return process.wait(PATIENCE)

    def until(self, condition: Callable[[], object]) -> None:
        """Waits."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def asked(self, calls: int) -> Callable[[], bool]:
        """Whether so many calls have arrived by now."""
        return lambda: len(self.endpoint.server.requests) >= calls

    def assert_complete(self) -> None:
        """One beginning, one end, each call recorded once."""
        folder = self.project.run_folder()
        kinds = Counter(type(event) for event in events_of(folder))
        assert (kinds[RunStarted], kinds[RunCompleted]) == (1, 1)
        assert set(Counter(call_slots(folder)).values()) == {1}
        assert verify(folder).ok


@pytest.fixture
def node(project: Project, endpoint: Endpoint, desk: Any) -> Node:
    """A machine, and the job's files in the project's folder."""
    for file in DEPLOY.iterdir():
        (project.folder / file.name).write_bytes(file.read_bytes())
    endpoint.delay = 0.012
    return Node(project, endpoint, dict(desk.environ))


def test_the_job_begins_and_continues(node: Node) -> None:
    """Killed with its machine, then asked to leave, then let finish: three jobs, one run. A fourth does nothing."""
    with node.job("sh", "job.sh") as process:
        node.until(node.asked(20))
        os.killpg(process.pid, signal.SIGKILL)
    with node.job("sh", "job.sh") as process:
        node.until(node.asked(60))
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 130
    assert isinstance(events_of(node.project.run_folder())[-1], RunPaused)
    node.endpoint.delay = 0.0
    assert node.run("sh", "job.sh") == 0
    before = len(node.endpoint.server.requests)
    assert node.run("sh", "job.sh", "--max-minutes", "50") == 0
    assert len(node.endpoint.server.requests) == before
    node.assert_complete()


def test_kubernetes_ends_a_pod_in_order(node: Node) -> None:
    """The container's command with its variables: SIGTERM reaches the run, and its exit codes fit the policy."""
    _, job = yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())
    pod = job["spec"]["template"]["spec"]
    [container] = pod["containers"]
    values = {each["name"]: each["value"] for each in container["env"] if "value" in each}
    command = [word.replace("/project/", "") for word in container["command"]]
    here = {name: value.replace("/project/", "").replace("/data/", "") for name, value in values.items()}
    with node.job(*command, **(here | {"RUN": "one"})) as process:
        node.until(node.asked(20))
        process.send_signal(signal.SIGTERM)
        assert process.wait(pod["terminationGracePeriodSeconds"]) == 130
    [fails, _] = job["spec"]["podFailurePolicy"]["rules"]
    assert 130 not in fails["onExitCodes"]["values"]
    assert node.run(*command, "--max-calls", "40", **(here | {"RUN": "one"})) in fails["onExitCodes"]["values"]
    node.endpoint.delay = 0.0
    assert node.run(*command, "--max-calls", "5000", **(here | {"RUN": "one"})) == 0
    node.assert_complete()


def test_slurm_queues_a_paused_job_again(node: Node) -> None:
    """With the number that Slurm gave it; the batch script gets the signal, as `--signal=B:` says."""
    scontrol = node.project.folder / "scontrol"
    scontrol.write_text('#!/bin/sh\necho "$@" >> requeued.txt\n')
    scontrol.chmod(0o755)
    with node.job("bash", "slurm.sh", SLURM_JOB_ID="7") as process:
        node.until(node.asked(20))
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 130
    assert (node.project.folder / "requeued.txt").read_text() == "requeue 7\n"
    assert isinstance(events_of(node.project.run_folder())[-1], RunPaused)
    node.endpoint.delay = 0.0
    assert node.run("bash", "slurm.sh", SLURM_JOB_ID="7") == 0
    assert (node.project.folder / "requeued.txt").read_text() == "requeue 7\n"
    node.assert_complete()


def test_a_ci_job_works_until_its_time_is_over(node: Node) -> None:
    """That is no failure; the next one continues. After a complete run, a new one begins with its best skill."""
    job = yaml.safe_load((DEPLOY / "ci.yaml").read_text())["jobs"]["train"]
    [line] = [step["run"] for step in job["steps"] if step.get("name") == "train"]
    line, more = line.replace("ci/", ""), {name: value for name, value in job["env"].items() if name == "CONTINUE"}
    assert node.run("bash", "-c", line.replace("--max-minutes 50", "--max-minutes 0.01"), RUNS="runs", **more) == 0
    assert isinstance(events_of(node.project.run_folder())[-1], RunPaused)
    node.endpoint.delay = 0.0
    assert node.run("bash", "-c", line, RUNS="runs", **more) == 0
    node.assert_complete()
    assert node.run("bash", "-c", line, RUNS="runs", **more) == 0
    first, second = (events_of(node.project.folder / "runs" / name) for name in ("one", "one-2"))
    assert isinstance(second[-1], RunCompleted)
    [began, ended] = [each for each in (second[0], first[-1]) if isinstance(each, RunStarted | RunCompleted)]
    assert isinstance(began, RunStarted)
    assert isinstance(ended, RunCompleted)
    assert began.skill.hash == ended.best


def test_the_files_name_nothing_that_only_this_repository_has() -> None:
    """They are copied into others, and nothing is installed by its name from an index."""
    for name in ("ci.yaml", "kubernetes.yaml", "slurm.sh", "job.sh"):
        lines = [line.partition("#")[0] for line in (DEPLOY / name).read_text().splitlines()]
        assert not [line for line in lines if "docs/" in line or "tests/" in line], name
