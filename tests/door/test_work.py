"""Training from Python: with one's own functions, inside a running loop, stopped and gone on with."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest
from attrs import evolve
from support.ready import PATIENCE

import skillopt_es as so
from skillopt_es.algorithms.classic.algorithm import CLASSIC
from skillopt_es.door import offered
from skillopt_es.events.values import Failed, Json
from skillopt_es.version import software_version

SMALL: Mapping[str, Json] = {
    "env": {"name": "tasks", "data_path": "tasks.jsonl", "grader": "exact"},
    "train": {"num_epochs": 1, "batch_size": 4},
    "optimizer": {"use_slow_update": False, "use_meta_skill": False},
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with twelve tasks, which is where the work is done."""
    monkeypatch.chdir(tmp_path)
    rows = [{"id": f"t{number}", "input": f"say {number}", "expected": str(number)} for number in range(12)]
    Path("tasks.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return tmp_path


def knows(task: so.AgentTask) -> str:
    """A target that says the number once the skill asks for numbers."""
    return task.task.split()[-1] if "number" in task.skill.text else "?"


def knows_as_a_model(request: so.ChatRequest) -> str:
    """The same target, asked as a chat model is."""
    return request.messages[-1].content.split()[-1] if "number" in request.messages[0].content else "?"


def teaches(request: so.ChatRequest) -> str:
    """An optimizer that has one idea."""
    edit = {"op": "append", "content": "Say the number."}
    return json.dumps({"reasoning": "numbers are missing", "edits": [edit], "patch": {"edits": [edit]}})


async def knows_slowly(task: so.AgentTask) -> dict[str, object]:
    """The same target, as a coroutine with an answer that has more to say."""
    await asyncio.sleep(0)
    step = {"tool": "split", "input": task.task, "output": task.task.split()}
    return {"answer": knows(task), "steps": [step], "usage": {"input": 3, "output": 1}}


def test_a_function_is_told_the_named_fields_of_an_item(folder: Path) -> None:
    """As any agent of one's own; `fields` has nothing else of the item."""
    rows = [{"id": f"t{n}", "input": "?", "expected": "x", "language": "de", "gold": "x"} for n in range(6)]
    Path("tasks.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    told: list[Mapping[str, Json]] = []

    def agent(task: so.AgentTask) -> str:
        told.append(task.fields)
        return "x"

    so.train(SMALL, settings={"env.agent_fields": ["language"]}, target=agent, optimizer=teaches)
    assert told
    assert all(each == {"language": "de"} for each in told)


def test_functions_train_like_models(folder: Path) -> None:
    """The log names them, and the run learns what the one teaches the other."""
    run = so.train(SMALL, name="own", target=knows, optimizer=teaches)
    assert run.status == "completed"
    assert run.skill().text.strip() == "Say the number."
    started = run.state().started
    assert started is not None
    model = started.config["model"]
    assert isinstance(model, Mapping)
    assert model["target_backend"] == "python"
    assert str(model["target"]).endswith("knows")
    assert run.verify().ok


def test_a_running_loop_is_no_obstacle(folder: Path) -> None:
    """As in a notebook: the plain function waits, the async one is awaited, and both write the same decisions."""

    async def both() -> tuple[so.Run, so.Run]:
        waited = so.train(SMALL, name="waited", target=knows, optimizer=teaches)
        return waited, await so.atrain(SMALL, name="awaited", target=knows_slowly, optimizer=teaches)

    waited, awaited = asyncio.run(both())
    assert waited.skill() == awaited.skill()
    assert waited.usage().usage.total.calls == awaited.usage().usage.total.calls


def test_what_a_function_raises_is_one_items_failure(folder: Path) -> None:
    """The others count; where nothing that comes back is an answer, the run pauses."""

    def moody(task: so.AgentTask) -> str:
        if "say 3" in task.task:
            raise KeyError("three")
        return knows(task)

    settings = {"rollout.max_failed_share": 0.5, "rollout.max_failed_share_train": 0.5}
    run = so.train(SMALL, settings=settings, name="moody", target=moody, optimizer=teaches)
    assert run.status == "completed"
    failures = [row.event.outcome for row in run.events(["RolloutCompleted"]) if row.event.item == "t3"]  # type: ignore[attr-defined]
    assert failures
    assert all(isinstance(failure, Failed) and "KeyError: 'three'" in failure.message for failure in failures)
    wrong = so.train(SMALL, name="wrong", target=lambda task: 7, optimizer=teaches)
    assert wrong.status == "paused"
    assert "7 is neither a text nor an object with `answer`" in wrong.pause
    with pytest.raises(so.BackendError, match="returned int, not text"):
        so.train(SMALL, name="optimizer", target=knows, optimizer=lambda request: 7)  # type: ignore[arg-type,return-value]


def test_a_run_that_was_stopped_goes_on(folder: Path) -> None:
    """Interrupted says where it is; resume needs the same functions and comes to the same skill."""
    calls = 0

    def counted(task: so.AgentTask) -> str:
        nonlocal calls
        calls += 1
        return knows(task)

    watch = so.Watch(stopping=lambda: calls >= 3)
    with pytest.raises(so.Interrupted) as stopped:
        so.train(SMALL, name="cut", target=counted, optimizer=teaches, watch=watch)
    assert stopped.value.__notes__ == ["the run is in runs/cut"]
    run = so.open_run("cut")
    assert run.status == "paused"
    assert "stopped as asked" in run.pause
    with pytest.raises(so.ConfigError, match=r"a Python function, tests.+counted"):  # nobody handed it over
        so.resume("cut")
    assert so.resume(run, target=counted, optimizer=teaches).status == "completed"
    assert run.skill().text.strip() == "Say the number."


def test_ctrl_c_finishes_the_calls_in_flight(folder: Path) -> None:
    """A script is told where the run is, everything that was answered is recorded, and it can be resumed."""
    script = f"""
import os, signal
import skillopt_es as so

calls = 0

def agent(task):
    global calls
    calls += 1
    if calls == 3:
        os.kill(os.getpid(), signal.SIGINT)
    return task.task.split()[-1]

try:
    so.train({dict(SMALL)!r}, settings={{"env.workers": 1}}, name="cut", target=agent, optimizer=lambda request: "{{}}")
except so.Interrupted as stopped:
    print(stopped.__notes__, so.open_run("cut").status)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.stdout == "['the run is in runs/cut'] paused\n", done.stderr
    assert so.resume("cut", target=knows, optimizer=teaches).status == "completed"


def test_an_interrupt_while_the_work_is_begun_leaves_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that was started by then ends without any work."""
    begun: list[Interrupted] = []

    class Interrupted(threading.Thread):
        def start(self) -> None:
            super().start()
            begun.append(self)
            raise KeyboardInterrupt

    monkeypatch.setattr(offered.threading, "Thread", Interrupted)
    with pytest.raises(so.Interrupted, match="before anything began"):
        so.train(SMALL, name="cut", target=knows, optimizer=teaches)
    begun[0].join(PATIENCE)
    assert not begun[0].is_alive()
    assert not (folder / "runs").exists()


def test_an_interrupt_before_the_call_waits_is_the_first_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call stays until the work has stopped."""
    interrupts = iter([KeyboardInterrupt])

    class Event(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            if threading.current_thread() is threading.main_thread():
                for interrupt in interrupts:
                    raise interrupt
            return super().wait(timeout)

    events = SimpleNamespace(Event=Event, Thread=threading.Thread)
    monkeypatch.setattr(offered, "threading", events)
    with pytest.raises(so.Interrupted) as stopped:
        so.train(SMALL, name="cut", target=knows_slowly, optimizer=teaches)
    assert stopped.value.__notes__ == ["the run is in runs/cut"]
    assert so.open_run("cut").status == "paused"


def test_an_algorithm_that_is_handed_over_trains(folder: Path) -> None:
    """This process reads its runs, too; the name of an installed one is taken."""
    run = so.train(SMALL, name="mine", target=knows, optimizer=teaches, algorithm=evolve(CLASSIC, name="mine"))
    started = run.state().started
    assert started is not None
    assert (run.status, started.algorithm) == ("completed", "mine")
    with pytest.raises(so.ConfigError, match="installed already"):
        so.train(SMALL, target=knows, optimizer=teaches, algorithm=evolve(CLASSIC))


def test_a_lambda_grades(folder: Path) -> None:
    """A function that no config could name is named in the log all the same."""
    run = so.train(
        SMALL, name="own", target=knows, optimizer=teaches, grader=lambda answer, item: answer == item["expected"]
    )
    started = run.state().started
    assert started is not None
    assert "<lambda>" in str(started.config["env"])
    assert run.status == "completed"


@pytest.mark.parametrize("what", ["target", "optimizer", "environment", "grader", "algorithm"])
def test_what_is_of_the_wrong_kind_is_told_before_a_run_begins(folder: Path, what: str) -> None:
    """Not by a run that measures nothing."""
    with pytest.raises(so.ConfigError, match=f"{what} is 3, but must be"):
        so.train(SMALL, **{what: 3})  # type: ignore[arg-type]
    assert not (folder / "runs").exists()


def test_what_cannot_be_is_said_before_anything_is_paid_for(folder: Path) -> None:
    """A grader for an environment that grades for itself, a moment that has not been, a run that is not there."""
    with pytest.raises(so.ConfigError, match="grades for itself"):
        so.train(settings={"env.name": "searchqa"}, name="x", target=knows, optimizer=teaches, grader=lambda a, i: True)
    with pytest.raises(so.RunNotFound):
        so.open_run("nobody")
    run = so.train(SMALL, name="own", target=knows, optimizer=teaches)
    with pytest.raises(so.NotInRun, match="no moment"):
        run.state("lunch")
    with pytest.raises(so.NotInRun, match="no event of type Nope"):
        list(run.events(["Nope"]))
    with pytest.raises(so.NotInRun, match="no step 9"):
        run.state("step 9")


def test_a_run_can_be_looked_at_at_any_moment(folder: Path) -> None:
    """States, events and rows are of the log; following a complete run ends with it."""
    run = so.train(SMALL, name="own", target=knows, optimizer=teaches)
    assert run.state(1).status == "running"
    assert run.skill(at=1).text == ""
    assert [recorded.seq for recorded in run.follow(sleep=lambda seconds: None)] == [
        row["seq"] for row in run.rows("events")
    ]
    assert {row["item"] for row in run.rows("items")} == {f"t{number}" for number in range(12)} - _untested(run)
    assert [row["step"] for row in run.rows("steps")] == list(range(1, run.state().steps_done + 1))
    assert run.blame().best.skill == run.skill()
    assert so.estimate(SMALL, target=knows, optimizer=teaches).calls.low > 0


def _untested(run: so.Run) -> set[object]:
    started = run.state().started
    assert started is not None
    splits = started.splits
    return {f"t{number}" for number in range(12)} - {*splits.train, *splits.val, *splits.test}


def test_every_name_of_the_door_opens() -> None:
    """And says in a docstring what it is, where it is ours to say."""
    assert sorted(so.__all__) == so.__all__
    assert set(dir(so)) == {*so.__all__, "__version__"}
    assert so.__version__ in software_version()
    for name in so.__all__:
        assert getattr(so, name).__doc__, name
    with pytest.raises(AttributeError, match="nothing_such"):
        _ = so.nothing_such  # type: ignore[attr-defined]
