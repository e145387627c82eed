"""Attempts on a Ray cluster of several nodes: the log is that of the local run, whatever is killed."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from attrs import define, evolve, field
from support.desk import Desk
from support.logs import call_slots, events_of
from support.project import KEY, KEY_NAME, Endpoint, Project, plain_config, request_ids
from support.ray_cluster import SEAT, Nodes, cluster

from skillopt_es.adapters.executors.local import LocalExecutor
from skillopt_es.config import RunConfig, load_config
from skillopt_es.errors import BackendError, ConfigError
from skillopt_es.events.catalog import RolloutCompleted, RunCompleted, RunPaused
from skillopt_es.events.journal import CallRow, Journal
from skillopt_es.events.values import Failed, Measured
from skillopt_es.events.verify import verify
from skillopt_es.ports import Executor
from skillopt_es.sessions.opening import open_executor
from skillopt_es.sessions.session import start
from skillopt_es.sessions.wiring import REAL_WORLD, Session, World
from skillopt_es.testing.executors import EXECUTOR_CHECKS, ExecutorCase

pytest.importorskip("ray", reason="Ray is not installed: `pip install '.[ray]'`")
ROUNDS = int(os.environ.get("RAY_ROUNDS", "1"))
SEED = int(os.environ.get("RAY_SEED", "0"))
TRACEBACK = "Traceback (most recent call last)"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A small project with simulated models: one epoch, sixty attempts."""
    made = Project(tmp_path_factory.mktemp("ray"), plain_config(""))
    return made.set(model={"backend": "simulated", "api_key_env": ""}, train={"num_epochs": 1})


def settings(project: Project, nodes: Nodes) -> RunConfig:
    """The run's config, as it is for the cluster."""
    own = ["env.executor=ray", f"ray.address={nodes.address}", "ray.cpus=0", f'ray.resources={{"{SEAT}": 1}}']
    return load_config(project.folder / "config.yaml", own)


Opens = Callable[[RunConfig, Callable[[], bool], Callable[[str], None]], Executor]


def trained(config: RunConfig, folder: Path, executor: Opens) -> Path:
    """A run in a folder, at a clock of its own."""
    world: World = evolve(REAL_WORLD, executor=executor)
    asyncio.run(start(config, folder, Session(now=lambda: NOON, clock=lambda: 0.0, world=world)))
    return folder


def here(_: RunConfig, stopping: Callable[[], bool], warn: Callable[[str], None]) -> Executor:
    """This process, whatever the config says."""
    return LocalExecutor(stopping)


def same(one: Path, other: Path) -> bool:
    """Whether two logs have the same events, to the last byte that is hashed."""
    return [verify(each).ok for each in (one, other)] == [True, True] and events_of(one) == events_of(other)


@pytest.mark.parametrize("name", EXECUTOR_CHECKS)
def test_it_keeps_to_what_every_executor_has_to(name: str, nodes: Nodes) -> None:
    """With real workers."""
    from skillopt_es.adapters.executors.on_ray import open_executor as open_ray

    options = {"address": nodes.address, "cpus": 0.0, "resources": {SEAT: 1}}
    EXECUTOR_CHECKS[name](ExecutorCase(open=open_ray, options=options, patience=120.0))


def test_the_log_is_that_of_the_local_run(tmp_path: Path, project: Project, nodes: Nodes) -> None:
    """Byte for byte: nobody can tell from it where its attempts were made."""
    config = settings(project, nodes)
    there = trained(config, tmp_path / "there" / "run", open_executor)
    local = trained(config, tmp_path / "here" / "run", here)
    assert same(there, local)
    assert head(there) == head(local)


def head(folder: Path) -> str:
    """The hash that a log ends with."""
    from skillopt_es.events.log import EventLog

    with EventLog.open(folder) as log:
        return log.head().hash


def test_workers_and_nodes_may_die(
    tmp_path: Path, project: Project, nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At random, while it runs: the same log, and no item with a 0 that it did not earn."""
    monkeypatch.setattr("skillopt_es.adapters.executors.crew._MOST_FALSE_STARTS", 1000)
    config = settings(project, nodes)
    local = trained(config, tmp_path / "here" / "run", here)
    number, total = 0, Counter[str]()
    while number < ROUNDS or not total["worker"]:  # a run may be over before anything was killed
        nodes.add(2 - nodes.spare)
        killed = Killed(nodes, random.Random(SEED + number))
        with killed.while_it_runs():
            there = trained(config, tmp_path / f"there-{number}" / "run", patient)
        number, total = number + 1, total + killed.counts
        print(number, killed.counts)
        assert head(there) == head(local)
        assert same(there, local)


@define
class Killed:
    """Kills workers, and now and then a node, from a thread of its own."""

    nodes: Nodes
    draw: random.Random
    most: int = 1000
    begins: Callable[[], bool] = lambda: True
    counts: Counter[str] = field(factory=Counter)

    @contextmanager
    def while_it_runs(self) -> Iterator[None]:
        """Until the block ends."""
        over = threading.Event()

        def disturb() -> None:
            while not over.wait(0.3 + self.draw.random()) and self.counts.total() < self.most:
                if not self.begins():
                    continue
                if not self.counts["node"] and self.draw.random() < 0.15:
                    self.counts["node"] += self.nodes.lose(self.draw)
                else:
                    self.counts["worker"] += self.nodes.kill_a_worker(self.draw)

        trouble = threading.Thread(target=disturb)
        trouble.start()
        try:
            yield
        finally:
            over.set()
            trouble.join()


def test_an_agent_of_the_users_works_on_the_workers(
    tmp_path: Path, nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program on other nodes, whose calls are the run's; some are killed with their worker, and begin anew."""
    monkeypatch.setenv(KEY_NAME, KEY)
    endpoint = Endpoint(delay=0.1)
    with endpoint.server:
        project = Project(tmp_path / "project", plain_config(endpoint.base_url)).set(
            model={
                "target_backend": "command",
                "target_command": [sys.executable, "agent.py"],
                "target_gateway": "openai",
                "target_agent_env": "SEEN",
                "target_agent_isolated": False,  # it says which processes are above it
            },
            train={"num_epochs": 1, "batch_size": 4},
        )
        rows = [[row for row in project.rows if row["split"] == split] for split in ("train", "val", "test")]
        project.rows = [row for some in rows for row in some[:4]]
        project.write()
        (project.folder / "agent.py").write_text(ASKING)
        config = settings(project, nodes)
        local = trained(config, tmp_path / "here" / "run", here)
        seen = (project.folder / "seen").read_text().split()
        assert set(seen) == {"here", "False"}
        (project.folder / "seen").unlink()
        asked = endpoint.asked
        nodes.add(2 - nodes.spare)
        killed = Killed(nodes, random.Random(SEED), most=2, begins=(project.folder / "seen").exists)
        with killed.while_it_runs():
            there = trained(config, tmp_path / "there" / "run", patient)
    assert killed.counts["worker"]
    where = Counter((project.folder / "seen").read_text().split())
    assert where["True"] > where["False"] <= killed.counts["worker"]  # who is killed at once leaves an orphan
    assert same(there, local)
    twice = [slot for slot, times in (endpoint.asked - asked).items() if times > asked[slot]]
    assert not twice, "a call that was answered was made again"
    lost = [row.call for row in journal(there) if row.call.outcome == "failed"]
    assert {each.error_message for each in lost} <= {"the agent is gone with the worker on which it was at work"}
    assert Counter(row.ref for row in journal(there) if row.call.outcome == "answered") == Counter(
        row.ref for row in journal(local)
    )


ASKING = """
import json, os, sys, urllib.request
from pathlib import Path

task = json.load(sys.stdin)
above, on_worker = os.getpid(), False
while above > 1:
    on_worker = on_worker or (Path("/proc") / str(above) / "cmdline").read_bytes().startswith(b"ray::_Worker")
    above = int((Path("/proc") / str(above) / "stat").read_text().rpartition(")")[2].split()[1])
assert "ACCEPTANCE_KEY" not in os.environ
with open("seen", "a") as file:
    file.write(f"{os.environ['SEEN']} {on_worker}\\n")
body = json.dumps({"model": os.environ["OPENAI_MODEL"], "messages": task["messages"]}).encode()
headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)
with urllib.request.urlopen(request) as reply:
    print(json.dumps({"answer": json.load(reply)["choices"][0]["message"]["content"]}))
"""


def journal(folder: Path) -> list[CallRow]:
    """Every call of a run."""
    from skillopt_es.events.log import EventLog

    with EventLog.open(folder) as log:
        return list(Journal(log.reader).read())


def test_an_item_that_kills_its_workers_is_not_measured(
    tmp_path: Path, nodes: Nodes, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A grader that takes its worker along, twice: that item has no score, the run goes on, and it is said once."""
    # How long a worker takes to start is the machine's: that it is waited for is told in a test of its own.
    monkeypatch.setattr("skillopt_es.adapters.executors.on_ray._NO_ROOM_AFTER", 10**6)
    project = Project(tmp_path / "project", plain_config("")).set(
        model={"backend": "simulated", "api_key_env": ""},
        train={"num_epochs": 1},
        env={"grader": "python:grader.py:grade"},
    )
    item = project.rows[0]["id"]
    (project.folder / "grader.py").write_text(DEADLY.format(item=item))
    said: list[str] = []
    there, world = tmp_path / "run", evolve(REAL_WORLD, executor=open_executor)
    asyncio.run(
        start(
            settings(project, nodes),
            there,
            Session(now=lambda: NOON, clock=lambda: 0.0, world=world, warn=said.append),
        )
    )
    tried = [event for event in events_of(there) if isinstance(event, RolloutCompleted) and event.item == item]
    assert tried
    assert {event.outcome for event in tried} == {Failed("worker", "2 workers died while they tried it")}
    assert isinstance(events_of(there)[-1], RunCompleted)
    lost = [each for each in said if "fewer than 20" not in each]  # the project is small on purpose
    assert len(lost) == 1
    assert " is lost: " in lost[0]
    assert "made anew" in lost[0]
    assert not capsys.readouterr().out  # where Ray tells of it, by itself


DEADLY = """
import os, signal
from pathlib import Path

def grade(answer, item):
    above = os.getpid() if item["id"] == {item!r} else 0
    while above > 1:
        process = Path("/proc") / str(above)
        if (process / "cmdline").read_bytes().startswith(b"ray::_Worker"):
            os.kill(above, signal.SIGKILL)
        above = int((process / "stat").read_text().rpartition(")")[2].split()[1])
    return answer.strip() == item["expected"]
"""


def test_a_worker_has_no_key(tmp_path: Path, nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though Ray was started by a process that has one: not in its environment, nor where the system shows that."""
    monkeypatch.setenv(KEY_NAME, KEY)
    project = Project(tmp_path / "project", plain_config("")).set(
        model={"backend": "simulated", "api_key_env": KEY_NAME},
        train={"num_epochs": 1},
        env={"grader": "python:grader.py:grade"},
    )
    (project.folder / "grader.py").write_text(CURIOUS.format(name=KEY_NAME, key=KEY))
    there = trained(settings(project, nodes), tmp_path / "there" / "run", open_executor)
    tried = [event for event in events_of(there) if isinstance(event, RolloutCompleted)]
    assert {event.outcome for event in tried} == {Measured(1.0, 1.0)}


CURIOUS = """
import os

def grade(answer, item):
    return {name!r} not in os.environ and {key!r}.encode() not in open("/proc/self/environ", "rb").read()
"""


def test_a_full_object_store_pauses_the_run(
    tmp_path: Path, project: Project, nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what to do about it."""
    import ray

    def full(value: object) -> object:
        raise ray.exceptions.ObjectStoreFullError("no room")

    monkeypatch.setattr(ray, "put", full)
    with pytest.raises(BackendError, match="has no room left in its object store: no room") as raised:
        trained(settings(project, nodes), tmp_path / "there" / "run", open_executor)
    assert "--object-store-memory" in raised.value.hint
    assert isinstance(events_of(tmp_path / "there" / "run")[-1], RunPaused)


def patient(config: RunConfig, stopping: Callable[[], bool], warn: Callable[[str], None]) -> Executor:
    """The executor of the config, which blames no item for what the test does."""
    executor = open_executor(config, stopping)
    executor._most_deaths = 100  # type: ignore[attr-defined]
    return executor


def test_a_cluster_that_is_not_there_is_told(tmp_path: Path, project: Project, nodes: Nodes) -> None:
    """Before a run begins, with where it looked."""
    import ray

    ray.shutdown()
    config = load_config(project.folder / "config.yaml", ["env.executor=ray", "ray.address=127.0.0.1:1", "ray.cpus=0"])
    with pytest.raises(BackendError, match=r"there is no Ray cluster at 127\.0\.0\.1:1"):
        trained(config, tmp_path / "there" / "run", open_executor)
    assert not (tmp_path / "there").exists()


def test_a_worker_that_no_node_can_hold_is_refused_before_the_run(
    tmp_path: Path, project: Project, nodes: Nodes
) -> None:
    """With what it would take, and the most that a node has."""
    import ray

    own = [f"ray.address={nodes.address}", "env.executor=ray", "ray.cpus=0", f'ray.resources={{"{SEAT}": 3}}']
    config = load_config(project.folder / "config.yaml", own)
    with pytest.raises(ConfigError, match=f"which takes 3 {SEAT}; the most that a node has of each is 2 {SEAT}"):
        trained(config, tmp_path / "there" / "run", open_executor)
    assert not (tmp_path / "there").exists()
    assert not ray.is_initialized()


def test_that_attempts_wait_for_room_is_said_once(
    tmp_path: Path, project: Project, nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others have all seats: what is asked for, and what is there; the run goes on when there is room."""
    import ray

    from skillopt_es.adapters.executors import on_ray

    class Other:  # in here: a node knows nothing of our tests
        def sits(self) -> bool:
            return True

    monkeypatch.setattr(on_ray, "_NO_ROOM_AFTER", 1)
    said: list[str] = []
    ray.init(address=nodes.address, log_to_driver=False, configure_logging=False)
    total = ray.cluster_resources()[SEAT]
    others = ray.remote(num_cpus=0, resources={SEAT: 2})(Other)
    taken = [others.remote() for _ in range(int(total) // 2)]
    ray.get([each.sits.remote() for each in taken])

    def warned(message: str) -> None:
        said.append(message)
        for each in taken:
            ray.kill(each)

    world = evolve(REAL_WORLD, executor=open_executor)
    session = Session(now=lambda: NOON, clock=lambda: 0.0, world=world, warn=warned)
    asyncio.run(start(settings(project, nodes), tmp_path / "run", session))
    waits = [each for each in said if "attempts wait" in each]
    assert len(waits) == 1
    assert f"each takes 1 {SEAT}, and of {total:g} {SEAT} on all nodes together 0 {SEAT} is free" in waits[0]
    assert isinstance(events_of(tmp_path / "run")[-1], RunCompleted)


def test_where_there_is_room_nobody_is_told_that_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node that is slow to start a worker is not a full one."""
    from skillopt_es.adapters.executors import ray_cluster

    def said(free: float) -> str:
        known = SimpleNamespace(cluster_resources=lambda: {"CPU": 4.0}, available_resources=lambda: {"CPU": free})
        monkeypatch.setattr(ray_cluster, "ray", known)
        return asyncio.run(ray_cluster.no_room(ray_cluster.Cluster(address="auto", cpus=1.0, resources={})))

    assert "of 4 CPU on all nodes together 0.5 CPU is free; others have the rest" in said(0.5)
    assert "slow to start one" in said(2.0)


def test_a_cluster_that_wants_a_token_says_so_in_one_sentence() -> None:
    """Ray says it in a traceback, within the text of another error."""
    from skillopt_es.adapters.executors.ray_cluster import not_connected

    error = ConnectionError("Failed to connect to Ray cluster at 10.0.0.1:6379")
    error.__cause__ = RuntimeError(TOLD)
    found = not_connected("10.0.0.1:6379", error)
    assert found.message == (
        "the Ray cluster at 10.0.0.1:6379 wants a token, and ours is missing or is not the right one"
    )
    assert "RAY_AUTH_TOKEN" in found.hint


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (f"Failed. Last error: {TRACEBACK}:\n  File a, line 1\nray.RpcError: no route", "ray.RpcError: no route"),
        ("Version mismatch: it has:\n    Ray: 2.50", "Version mismatch: it has: Ray: 2.50"),
        ("", "RuntimeError"),
    ],
)
def test_what_else_keeps_ray_from_connecting_is_one_sentence(told: str, said: str) -> None:
    """The end of a traceback, or all lines of a message in one."""
    from skillopt_es.adapters.executors.ray_cluster import not_connected

    assert not_connected("h:1", RuntimeError(told)).message == f"there is no Ray cluster at h:1: {said}"


TOLD = """Failed to connect to GCS. Last connection error: Traceback (most recent call last):
  File "ray/_private/node.py", line 996, in _init_gcs_client
    client = GcsClient(
ray.exceptions.AuthenticationError: RPC error: InvalidAuthToken: Authentication token is missing or incorrect. Ensure \
that the token for the cluster is available in a local file (e.g., ~/.ray/auth_token)
"""


@pytest.mark.parametrize("disturbed", ["head", "writer", "interrupt"])
def test_a_run_that_is_stopped_is_continued_anywhere(tmp_path: Path, nodes: Nodes, disturbed: str) -> None:
    """Its cluster is lost, its process is killed, or somebody types Ctrl-C: it goes on, here without a cluster."""
    # Workers that are there go on for a while without their head, so the run must not be over by then.
    endpoint = Endpoint(delay=1.0 if disturbed == "head" else 0.1)
    with endpoint.server, cluster(1) if disturbed == "head" else nullcontext(nodes) as made:
        project = Project(tmp_path, plain_config(endpoint.base_url)).set(train={"num_epochs": 1})
        desk = Desk(tmp_path, {KEY_NAME: KEY, "PYTHONWARNINGS": "ignore"})
        own = [f"ray.address={made.address}", "ray.cpus=0", f'ray.resources={{"{SEAT}": 1}}', "env.workers=2"]
        words = [word for each in ("env.executor=ray", *own) for word in ("--set", each)]
        with desk.start("run", "config.yaml", "--run", "one", "--quiet", *words) as running:
            running.until(lambda: len(endpoint.server.requests) > 4)
            if disturbed == "head":
                made.lose_head()
                done = running.wait()
                assert done.code == 1
                assert "the head of the Ray cluster" in done.err
            elif disturbed == "writer":
                running.kill()
            else:
                running.send(signal.SIGINT)
                assert running.wait().code == 130
        endpoint.delay = 0.0
        if disturbed != "writer":
            assert isinstance(events_of(project.run_folder())[-1], RunPaused)
        recorded, asked = request_ids(call_slots(project.run_folder())), endpoint.asked
        done = desk.run("resume", "one", "--quiet", "--set", "env.executor=local")
        assert done.code == 0, done.err
        assert not (endpoint.asked - asked) & recorded, "a recorded call was made again"
        assert verify(project.run_folder()).ok
