"""A run that people steered says so wherever its score is shown, and one that nobody steered does not."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve as replace
from engine.test_steering import Person, after_step
from support.asking import Asking
from support.in_process import Cli, called
from support.scripted import ScriptedWorld, config

from skillopt_es.events.catalog import CandidateBuilt, EvidenceRetracted, RunSteered
from skillopt_es.presenting.words import by_hand_words
from skillopt_es.projections.by_hand import ByHand, by_hand
from skillopt_es.sessions.session import start

WORDS = "1 candidate accepted, 1 hint given, 1 train task left out"


def _trained(folder: Path, *people: Person) -> None:
    made = config(folder.parent.parent / f"config-{folder.name}", ["train.num_epochs=2"])
    state = asyncio.run(start(made, folder, ScriptedWorld().session(observers=people)))
    assert state.completed is not None


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs, of which one was steered: a candidate, a hint and a task."""
    folder = tmp_path / "runs" / "steered"
    _trained(
        folder,
        Person(folder, lambda event, _: isinstance(event, CandidateBuilt), "take"),
        Person(folder, after_step(1), "hint", lambda state: "- ferns are plants"),
        Person(folder, after_step(1), "retract", lambda state: "t0"),
    )
    _trained(tmp_path / "runs" / "usual")
    return tmp_path / "runs"


@pytest.fixture
def cli(runs: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command in this process, over those runs."""
    run = called(capsys)
    return lambda *words: run(*words, "--dir", runs)


JSON = {
    "accepted": 1, "rejected": 0, "pinned": 0, "struck": 0, "hints": 1, "left_out": {"train": ["t0"]},
    "results_left_out": [],
}  # fmt: skip


def test_each_command_that_shows_a_score_says_so(cli: Cli) -> None:
    """In words, and for programs; a run that nobody steered has neither."""
    for command in (("status",), ("lineage",), ("report", "--out", "-")):
        name, *options = command
        assert WORDS in " ".join(cli(name, "steered", *options).out.split()), command
        assert "by hand" not in cli(name, "usual", *options).out, command
    for command in ("status", "lineage", "report"):
        assert cli(command, "steered", "--json").json["by_hand"] == JSON, command
        assert cli(command, "usual", "--json").json["by_hand"] is None, command
    assert WORDS in cli("compare", "usual", "steered").out
    assert [each["by_hand"] for each in cli("compare", "usual", "steered", "--json").json] == [None, JSON]
    listed = {line.split()[0]: line for line in cli("runs").out.splitlines()[1:]}
    assert "completed, steered" in listed["steered"]
    assert "steered" not in listed["usual"]
    assert {each["run"]: each["by_hand"] for each in cli("runs", "--json").json} == {"usual": None, "steered": JSON}
    assert cli("runs", "--json").json == cli("runs", "--json").json  # from what is kept, too


def test_a_skill_that_is_exported_or_installed_says_so(cli: Cli, tmp_path: Path) -> None:
    """In its provenance, without the names of tasks, and as it was at that moment; the log vouches for it."""
    numbers = {"accepted": 1, "rejected": 0, "pinned": 0, "struck": 0, "hints": 1, "left_out": {"train": 1}}
    say = ("--description", "what it is for")

    def steered(folder: Path) -> Any:
        return json.loads((folder / "PROVENANCE.json").read_text())["facts"]["run"]["by_hand"]

    assert cli("export", "steered", f"{tmp_path}/skill/", *say).code == 0
    assert steered(tmp_path / "skill") == {**numbers, "results_left_out": 0}
    done = cli("verify", "steered", "--export", tmp_path / "skill")
    assert (done.code, f"steered by hand: {WORDS}" in done.out) == (0, True)
    assert cli("export", "steered", f"{tmp_path}/early/", "--at", "seq", 2, *say).code == 0
    assert steered(tmp_path / "early") is None
    assert cli("verify", "steered", "--export", tmp_path / "early").code == 0
    assert cli("install", "usual", "--to", tmp_path / "skills", "--name", "usual", *say).code == 0
    assert steered(tmp_path / "skills" / "usual") is None
    assert cli("install", "steered", "--to", tmp_path / "skills", "--name", "steered", *say).code == 0
    assert steered(tmp_path / "skills" / "steered") == {**numbers, "results_left_out": 0}


def test_the_page_says_so_beside_its_answer(runs: Path) -> None:
    """On the run's own page, with its scores, in the list and where it is compared."""
    asking = Asking(directory=runs)
    for path in ("/run/steered", "/run/steered/scores", "/compare?run=usual&run=steered"):
        assert WORDS in asking.get(path, signed_in=True).text, path
    assert "steered by hand" in asking.get("/", signed_in=True).text
    assert "teered by hand" not in asking.get("/run/usual", signed_in=True).text


def test_a_session_ends_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Right below its steps."""
    run: Callable[..., object] = called(capsys)
    where = ("--dir", tmp_path / "runs")
    run("run", "--run", "r", "--quiet", "--max-calls", 200, *where)
    run("steer", "r", "hint", "- dates are ISO", "--why", "x", *where)
    done = called(capsys)("resume", "r", "--quiet", "--max-calls", 260, *where)
    assert "by hand     1 hint given" in done.out
    assert called(capsys)("resume", "r", "--quiet", "--max-calls", 261, "--json", *where).json["by_hand"]["hints"] == 1


def test_a_fork_without_a_test_task_says_so(cli: Cli) -> None:
    """It has fewer tasks to be judged by."""
    cli("retract", "usual", "--item", "x1", "--apply", "--reason", "wrong", "--name", "without")
    assert "1 test task left out" in cli("status", "without").out


def test_what_is_taken_back_counts_as_it_stands() -> None:
    """Of a candidate the last order counts; a pause or a budget is no such thing."""
    steered = RunSteered(name="a", order="take", by="me", why="x", text="c1")
    assert by_hand([steered, replace(steered, order="refuse")]) == ByHand(decided={"c1": "refuse"})
    assert not by_hand([replace(steered, order="pause"), replace(steered, order="budget")])
    result = EvidenceRetracted(items=("t1",), reason="x", by="me", place="e1/s1/b0")
    assert by_hand_words(by_hand([steered, result])) == "1 candidate accepted, 1 result left out"
