"""One line says how far the work is: in a terminal or a notebook, for training and for scoring, unless it is off."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import skillopt_es as so
from skillopt_es.door import progress as module
from skillopt_es.door.progress import is_looked_at
from skillopt_es.events.values import Json

CONFIG: Mapping[str, Json] = {
    "train": {"num_epochs": 1, "batch_size": 4},
    "optimizer": {"use_slow_update": False, "use_meta_skill": False},
}
TASKS = [{"id": f"t{number}", "input": f"say {number}", "expected": str(number)} for number in range(12)]


class Terminal(io.StringIO):
    """A stream that a person looks at."""

    def isatty(self) -> bool:
        """Always."""
        return True


def agent(task: so.AgentTask) -> str:
    """A target that is right once the skill asks for numbers."""
    return task.task.split()[-1] if "number" in task.skill.text else "?"


def teacher(request: so.ChatRequest) -> str:
    """An optimizer that has one idea."""
    edit = {"op": "append", "content": "Say the number."}
    return json.dumps({"reasoning": "numbers are missing", "edits": [edit], "patch": {"edits": [edit]}})


@pytest.fixture(autouse=True)
def stderr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """The terminal of a script, which works in a folder of its own and shows every moment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "_EVERY_SECONDS", 0.0)
    monkeypatch.setenv("COLUMNS", "160")
    terminal = Terminal()
    monkeypatch.setattr(module, "sys", SimpleNamespace(stderr=terminal))  # pytest puts its own stream in place
    return terminal


def train(**given: Any) -> so.Run:
    """A small run."""
    return so.train(CONFIG, name="own", tasks=TASKS, target=agent, optimizer=teacher, **given)


def test_training_and_scoring_show_one_line(stderr: Terminal) -> None:
    """It is written over, and what comes next begins below it."""
    run = train()
    said = stderr.getvalue()
    assert said.startswith("\r")
    assert said.count("\n") == 1
    assert said.endswith("\n")
    shown = [line.rstrip() for line in said.strip().split("\r")]
    assert any("step 1/1 · trying training items " in line for line in shown)
    assert any(" · hard: current 0.0000 best 0.0000 · " in line for line in shown)
    assert "best 1.0000" in shown[-1]
    so.evaluate(run, splits=["test"], target=agent)
    assert "scoring test 9/9 · 0 tokens · " in stderr.getvalue().removeprefix(said)
    assert stderr.getvalue().count("\n") == 2


def test_it_can_be_turned_off(stderr: Terminal) -> None:
    """By the same name everywhere."""
    run = train(progress=False)
    so.evaluate(run, splits=["test"], target=agent, progress=False)
    so.train_on(run, target=agent, optimizer=teacher, progress=False)
    assert stderr.getvalue() == ""


def test_a_function_gets_each_moment(stderr: Terminal) -> None:
    """In place of the line."""
    moments: list[so.Now] = []
    run = train(progress=moments.append)
    assert ("trying training items", 2) in [(now.stage, now.total) for now in moments]
    assert all(now.done <= now.total for now in moments)
    moments.clear()
    so.evaluate(run, splits=["test"], target=agent, progress=moments.append)
    assert [now.done for now in moments] == sorted(now.done for now in moments)
    assert (moments[-1].stage, moments[-1].done, moments[-1].total) == ("scoring test", 9, 9)
    assert stderr.getvalue() == ""


def test_a_function_that_raises_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """It is called once, and one warning says so."""
    times = 0

    def broken(now: so.Now) -> None:
        nonlocal times
        times += 1
        raise ValueError("no screen")

    with caplog.at_level(logging.WARNING, "skillopt_es"):
        run = train(progress=broken)
        assert times == 1
        [evaluated] = so.evaluate(run, splits=["test"], target=agent, progress=broken).results
    assert evaluated.score is not None
    assert times == 2
    assert [said for record in caplog.records if "raised" in (said := record.getMessage())] == [
        "progress raised ValueError: no screen; the work continues without it"
    ] * 2
    assert "no screen" in (run.folder / "logs.jsonl").read_text(encoding="utf-8")


def test_only_what_a_person_looks_at_gets_a_line() -> None:
    """A terminal and a notebook's cell; no file and no pipe."""
    notebook = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
    assert is_looked_at(Terminal())
    assert is_looked_at(notebook)
    assert not is_looked_at(io.StringIO())
