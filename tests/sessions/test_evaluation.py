"""What is scored of a run: its skills, by the settings that it has now."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.scripted import NOON, ScriptedWorld, config

from skillopt_es.events.errors import RunNotFound
from skillopt_es.events.writer import RunWriter
from skillopt_es.sessions.evaluation import scorable_run
from skillopt_es.sessions.forking import make_fork
from skillopt_es.sessions.session import start


def test_a_fork_is_scored_by_its_own_settings(tmp_path: Path) -> None:
    """Another target than its parent's is asked; the skills are the fork's."""
    folder = tmp_path / "run"
    asyncio.run(start(config(tmp_path, ["train.num_epochs=1"]), folder, ScriptedWorld().session()))
    fork = tmp_path / "fork"
    made = make_fork(folder, 1, fork, overrides=["model.target=another"], now=lambda: NOON)
    assert scorable_run(folder).config.target_model.model != "another"
    of = scorable_run(fork)
    assert of.config.target_model.model == "another"
    assert made.state.started is not None
    assert {of.skill(which).hash for which in ("best", "current", "initial")} == {made.state.started.skill.hash}


def test_a_run_that_never_began_has_no_skill(tmp_path: Path) -> None:
    """Its log is empty."""
    RunWriter.create(tmp_path / "run", run_id="x", name="run", now=lambda: NOON).close()
    with pytest.raises(RunNotFound, match="run stopped before it began, so it has no skill to score"):
        scorable_run(tmp_path / "run")
