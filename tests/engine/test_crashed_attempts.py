"""Attempts that crash: tried again twice, then not measured, or 0 where that is asked for."""

from __future__ import annotations

import json
import random
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.command import command
from support.logs import decisions_of, events_of
from support.params import parametrized

import skillopt_es as so
from skillopt_es.events.catalog import RolloutCompleted, SkillScored
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import Failed, Measured

KINDS = ("red", "green", "blue", "grey")
SETTINGS = {"train.num_epochs": 2, "train.batch_size": 6, "model.target_backoff_seconds": 0.0001}
AGENT = """
import itertools, random, sys, threading

LOCK, LUCK = threading.Lock(), random.Random(5)
TRIED = {}

def answer(task):
    kind, word = task.task.split()[-2:]
    with LOCK:
        TRIED[task.item] = TRIED.get(task.item, 0) + 1
        crashes = CRASHES(task)
    if crashes:
        raise RuntimeError("upstream 503")
    return f"{word}-{kind}" if f"RULE {kind}" in task.skill.text else "none"
"""


def teaches(request: so.ChatRequest) -> str:
    """One rule for each kind that fails."""
    failed = request.messages[-1].content.partition("## Failed trajectories")[2]
    kinds = [kind for kind in KINDS if f"Task {kind} " in failed]
    edits = [
        {"op": "append", "target": "", "content": f"RULE {kind}", "from": [], "items": [], "hypothesis": "no rule"}
        for kind in kinds
    ]
    return json.dumps({"reasoning": "seen", "edits": edits, "patch": {"edits": edits}})


def project(folder: Path, crashes: str, algorithm: str = "search", **model: object) -> dict[str, Any]:
    """A config with tasks, and an agent in a file that crashes where this says so."""
    folder.mkdir(exist_ok=True)
    rows = []
    for split, many in (("train", 16), ("val", 12), ("test", 4)):
        for number in range(many):
            kind, word = KINDS[number % 4], f"{split}{number}"
            row = {"id": word, "split": split, "input": f"Task {kind} {word}", "type": kind}
            rows.append({**row, "expected": f"{word}-{kind}"})
    (folder / "tasks.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (folder / "SKILL.md").write_text("# Skill\n")
    (folder / "agent.py").write_text(AGENT.replace("CRASHES(task)", crashes))
    return {
        "model": {"target_backend": f"python:{folder}/agent.py:answer", **model},
        "env": {
            "name": "tasks",
            "data_path": str(folder / "tasks.jsonl"),
            "split_mode": "field",
            "skill_init": str(folder / "SKILL.md"),
        },
        "train": {"algorithm": algorithm},
    }


def trained(folder: Path, config: Mapping[str, Any], **settings: object) -> so.Run:
    """A run of it."""
    return so.train(dict(config), name="one", runs=folder, optimizer=teaches, settings={**SETTINGS, **settings})


def outcomes(run: so.Run, item: str) -> list[Measured | Failed]:
    """What came of each attempt at an item."""
    rows = [event for event in events_of(run.folder) if isinstance(event, RolloutCompleted) and event.item == item]
    return [row.outcome for row in rows if isinstance(row.outcome, Measured | Failed)]


def crashed_in(run: so.Run) -> list[list[dict[str, Any]]]:
    """The failed tries of each call of the target that had some."""
    with EventLog.open(run.folder) as log:
        rows = [json.loads(row.call.tries) for row in Journal(log.reader).read() if row.call.role == "target"]
    return [row for row in rows if any(each["kind"] == "crash" for each in row)]


@parametrized("algorithm", ["classic", "search"], by_default=1)
def test_an_agent_that_crashes_now_and_then_can_be_trained(tmp_path: Path, algorithm: str) -> None:
    """In one of ten attempts: each is tried again, and is measured then."""
    run = trained(tmp_path, project(tmp_path / "p", "LUCK.random() < 0.1", algorithm))
    assert run.status == "completed"
    crashed = crashed_in(run)
    assert crashed
    assert all(
        each["kind"] == "crash" and "agent.py:13, in answer" in each["message"] for row in crashed for each in row
    )
    rows = [event.outcome for event in events_of(run.folder) if isinstance(event, RolloutCompleted)]
    assert sum(isinstance(outcome, Failed) for outcome in rows) < len(crashed)
    assert command("replay", "one", "--check", "--dir", tmp_path, cwd=tmp_path).code == 0


@parametrized(
    ("algorithm", "item"),
    [("search", "val3"), ("search", "train5"), ("classic", "val3"), ("classic", "train5")],
    by_default=2,
)
def test_a_task_on_which_the_agent_always_crashes_stops_nothing(tmp_path: Path, algorithm: str, item: str) -> None:
    """It is not measured, after three tries; the next resume would meet the same."""
    run = trained(tmp_path, project(tmp_path / "p", f"task.item == '{item}'", algorithm))
    assert run.status == "completed"
    found = outcomes(run, item)
    assert found
    assert all(isinstance(outcome, Failed) and outcome.kind == "crash" for outcome in found)
    assert command("replay", "one", "--check", "--dir", tmp_path, cwd=tmp_path).code == 0
    if item == "val3":
        scores = [event.score for event in events_of(run.folder) if isinstance(event, SkillScored)]
        assert any(score.unmeasured == 1 for score in scores)


@parametrized("algorithm", ["search", "classic"], by_default=1)
def test_a_crash_scores_zero_where_that_is_asked_for(tmp_path: Path, algorithm: str) -> None:
    """After the same three tries; the log says what was behind the 0."""
    made = project(tmp_path / "p", "task.item in ('val1', 'val2', 'val3', 'val4', 'val5')", algorithm)
    run = trained(tmp_path, made, **{"rollout.crashed": "zero"})
    assert run.status == "completed"
    rows = [event for event in events_of(run.folder) if isinstance(event, RolloutCompleted) and event.item == "val4"]
    assert rows
    assert all(row.outcome == Measured(0.0, 0.0) and row.failure == "crash" for row in rows)
    assert all("upstream 503 (agent.py:13, in answer)" in row.detail for row in rows)


@pytest.mark.parametrize(("crashes", "lost"), [("task.item == 'train5'", True), ("False", False)])
def test_the_end_of_a_run_says_how_many_attempts_were_not_measured(tmp_path: Path, crashes: str, lost: bool) -> None:
    """No pause says it where the agent crashes on a single task."""
    run = trained(tmp_path, project(tmp_path / "p", crashes, "classic"))
    found = [event.outcome for event in events_of(run.folder) if isinstance(event, RolloutCompleted)]
    missing = sum(isinstance(outcome, Failed) for outcome in found)
    assert (missing > 0) == lost
    shown = command("resume", "one", "--dir", tmp_path, cwd=tmp_path)
    assert (f"unmeasured  {missing} of {len(found)} attempts; " in shown.out) == lost
    as_json = command("resume", "one", "--dir", tmp_path, "--json", cwd=tmp_path).json
    assert (as_json["attempts"], as_json["unmeasured"]) == (len(found), missing)


def test_too_many_crashes_pause_and_name_what_decides(tmp_path: Path) -> None:
    """Four of twelve at the first evaluation; resumed with the setting it goes on."""
    run = trained(tmp_path, project(tmp_path / "p", "task.item in ('val0', 'val1', 'val2', 'val3')", "classic"))
    assert run.status == "paused"
    shown = command("status", "one", "--dir", tmp_path, cwd=tmp_path).out
    assert "--set rollout.crashed=zero" in shown
    assert "--set rollout.max_failed_share=N" in shown
    resumed = so.resume(run, optimizer=teaches, settings={"rollout.crashed": "zero"})
    assert resumed.status == "completed"


def test_each_try_is_another_draw(tmp_path: Path) -> None:
    """An agent whose chance is in its seed is not bound to crash three times."""
    crashes = "random.Random(task.seed).random() < 0.3"
    run = trained(tmp_path, project(tmp_path / "p", crashes, "classic"))
    again = trained(tmp_path / "again", project(tmp_path / "p", crashes, "classic"))
    assert run.status == "completed"
    rows = [event.outcome for event in events_of(run.folder) if isinstance(event, RolloutCompleted)]
    assert sum(isinstance(outcome, Failed) for outcome in rows) < 0.1 * len(rows)
    assert decisions_of(run.folder)[1:] == decisions_of(again.folder)[1:]


def test_a_run_that_is_stopped_between_tries_goes_on(tmp_path: Path) -> None:
    """The attempt is made from its beginning, and all is decided as without the stop."""
    crashes = "TRIED[task.item] % 3 == 1"
    whole = trained(tmp_path / "whole", project(tmp_path / "p", crashes, "classic", target_backoff_seconds=0.0001))
    asked = 0

    def stopping() -> bool:
        nonlocal asked
        asked += 1
        return asked > 60

    folder = tmp_path / "cut"
    with pytest.raises(so.Interrupted):
        so.train(
            project(tmp_path / "p", crashes, "classic"),
            name="one",
            runs=folder,
            optimizer=teaches,
            settings=SETTINGS,
            watch=so.Watch(stopping=stopping),
        )
    assert so.resume(folder / "one", optimizer=teaches).status == "completed"
    assert decisions_of(folder / "one") == decisions_of(whole.folder)


def test_a_budget_counts_each_try(tmp_path: Path) -> None:
    """It is never exceeded by trying again."""
    made = project(tmp_path / "p", "True", "classic")
    run = trained(tmp_path, made, **{"budget.max_calls": 7, "env.workers": 2})
    assert run.status == "paused"
    assert "budget.max_calls is 7" in run.pause
    assert run.usage().usage.total.tries == 7


COMMAND = """
import json, random, sys
task = json.load(sys.stdin)
kind, word = task["task"].split()[-2:]
if random.Random(task["seed"]).random() < 0.2:
    sys.exit(3)
print(json.dumps({"answer": f"{word}-{kind}" if f"RULE {kind}" in task["skill"]["text"] else "none"}))
"""


def over_http(body: bytes) -> tuple[int, bytes]:
    """The same agent behind an address."""
    task = json.loads(body)
    kind, word = task["task"].split()[-2:]
    if random.Random(task["seed"]).random() < 0.2:
        return 500, b"upstream 503"
    answer = f"{word}-{kind}" if f"RULE {kind}" in task["skill"]["text"] else "none"
    return 200, json.dumps({"answer": answer}).encode()


def as_function() -> Callable[[so.ChatRequest], str]:
    """The same agent as a function that is handed over."""

    def target(request: so.ChatRequest) -> str:
        kind, word = request.messages[-1].content.split()[-2:]
        if random.Random(request.seed).random() < 0.2:
            raise RuntimeError("upstream 503")
        return f"{word}-{kind}" if f"RULE {kind}" in request.messages[0].content else "none"

    return target


class _Address(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        """One attempt."""
        status, body = over_http(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing: a test prints no requests."""


@pytest.fixture
def address() -> Iterator[str]:
    """Where the agent is."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Address)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/answer"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("how", "algorithm"),
    [
        ("command", "search"),
        ("http", "classic"),
        ("function", "search"),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in (("command", "classic"), ("function", "classic"))),
    ],
)
def test_it_holds_however_the_agent_is_reached(tmp_path: Path, address: str, how: str, algorithm: str) -> None:
    """A program, an address, a function that was handed over."""
    made = project(tmp_path / "p", "False", algorithm)
    (tmp_path / "p" / "agent_program.py").write_text(COMMAND)
    made["model"] = {
        "command": {
            "target_backend": "command",
            "target_command": [sys.executable, str(tmp_path / "p/agent_program.py")],
        },
        "http": {"target_backend": "http", "target_url": address},
        "function": {},
    }[how]
    given = {"target": as_function()} if how == "function" else {}
    run = so.train(made, name="one", runs=tmp_path, optimizer=teaches, settings=SETTINGS, **given)
    assert run.status == "completed"
    assert crashed_in(run)
