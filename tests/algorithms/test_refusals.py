"""What cannot be done with an evaluation or an imported run is said by its algorithm, of old logs as of new ones."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from support.make_golden import GOLDEN
from support.scripted import NOON, ScriptedWorld, config

from skillopt_es.audit.calibrating import subject
from skillopt_es.audit.descent import Evidence
from skillopt_es.audit.erasing import erase_evidence
from skillopt_es.audit.regating import regated
from skillopt_es.audit.rescoring import rescored
from skillopt_es.audit.side_by_side import side
from skillopt_es.engine.algorithm import Deed
from skillopt_es.engine.algorithms import algorithm_named
from skillopt_es.errors import ConfigError, NotInRun
from skillopt_es.events.log import EventLog
from skillopt_es.runs.lookup import seq_of
from skillopt_es.sessions.evaluation import scorable_run
from skillopt_es.sessions.forking import make_fork
from skillopt_es.sessions.session import read_state, resume, start


def _regated(folder: Path) -> object:
    with EventLog.open(folder) as log:
        return regated(log, folder, ())


def _rescored(folder: Path) -> object:
    with EventLog.open(folder) as log:
        return asyncio.run(rescored(log, log, folder))


def _step(folder: Path) -> object:
    with EventLog.open(folder) as log:
        return seq_of(log, ("step", 1))


DEEDS: dict[Deed, Callable[[Path], object]] = {
    "resume": lambda folder: asyncio.run(resume(folder, ScriptedWorld().session())),
    "fork": lambda folder: make_fork(folder, 2, folder.parent / "fork", now=lambda: NOON),
    "score": scorable_run,
    "calibrate": lambda folder: subject(folder, folder.parent),
    "regate": _regated,
    "rescore": _rescored,
    "erase": lambda folder: erase_evidence(folder, Evidence("v0"), reason="private", by="me", now=lambda: NOON),
    "compare": side,
    "steps": _step,
}


def golden(name: str, tmp_path: Path) -> Path:
    """A copy of the log of a release."""
    return Path(shutil.copytree(GOLDEN / f"0.1.0-{name}" / "run", tmp_path / "run"))


def test_every_deed_is_tried_here() -> None:
    """A new one cannot be forgotten."""
    assert {"start", *DEEDS} == set(get_args(Deed))


@pytest.mark.parametrize(
    ("name", "deed"),
    [
        (name, deed)
        for name in ("evaluation", "imported")
        for deed in DEEDS
        if deed in algorithm_named(name).commands.refuses
    ],
)
def test_what_an_algorithm_refuses_is_refused_in_its_words(name: str, deed: Deed, tmp_path: Path) -> None:
    """The run is named, and what can be done instead."""
    folder, refusal = golden(name, tmp_path), algorithm_named(name).commands.refuses[deed]
    with pytest.raises((ConfigError, NotInRun)) as caught:
        DEEDS[deed](folder)
    assert caught.value.message.startswith("run")
    assert caught.value.message.endswith(f" {refusal.why}")
    assert caught.value.hint == refusal.hint


@pytest.mark.parametrize("name", ["classic", "evaluation", "imported"])
def test_an_algorithm_is_what_its_log_says(name: str, tmp_path: Path) -> None:
    """Found by name among the installed ones."""
    folder = (
        Path(shutil.copytree(GOLDEN / "0.1.0" / "run", tmp_path / "run"))
        if name == "classic"
        else golden(name, tmp_path)
    )
    started = read_state(folder).started
    assert started is not None
    assert started.algorithm == name == algorithm_named(name).name


def test_classic_refuses_nothing() -> None:
    """What is made by default can be done everything with."""
    assert algorithm_named("classic").commands.refuses == {}


@pytest.mark.parametrize(("name", "instead"), [("evaluation", "eval"), ("imported", "import")])
def test_no_training_begins_by_an_algorithm_that_trains_nothing(name: str, instead: str, tmp_path: Path) -> None:
    """What its runs are made by is said instead; nothing is written."""
    given = config(tmp_path, [f"train.algorithm={name}"])
    with pytest.raises(ConfigError, match=f"train.algorithm is '{name}', which (is|scores)") as caught:
        asyncio.run(start(given, tmp_path / "run", ScriptedWorld().session()))
    assert f"`skillopt-es {instead}`" in caught.value.hint
    assert not (tmp_path / "run").exists()
