"""A sweep at work: what it does not begin at all (its processes are tried in tests/acceptance/test_sweep.py)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from attrs import evolve
from support.project import Project, plain_config

from skillopt_es.errors import ConfigError
from skillopt_es.sweeps.drive import Outside, drive
from skillopt_es.sweeps.facts import Fact, SweepPaused
from skillopt_es.sweeps.plan import SweepPlan, read_plan


@pytest.fixture
def plan(tmp_path: Path) -> SweepPlan:
    """Two seeds of one setting."""
    project = Project(tmp_path, plain_config("")).set(model={"backend": "simulated", "api_key_env": ""})
    file = project.folder / "sweep.yaml"
    file.write_text("config: config.yaml\nseeds: 2\n")
    return read_plan(file)


def stopped(plan: SweepPlan, folder: Path) -> list[Fact]:
    """The facts of a sweep that is asked to stop before it has begun anything."""
    told: list[Fact] = []
    outside = Outside(
        now=lambda: datetime(2026, 1, 1, tzinfo=UTC), tell=told.append, asked_to_stop=lambda: 1, sleep=lambda _: None
    )
    drive(plan, folder, outside)
    return told


def test_who_stops_it_at_once_has_begun_no_run(plan: SweepPlan, tmp_path: Path) -> None:
    """It is paused, and the same command goes on."""
    folder = tmp_path / "sweep"
    assert any(isinstance(fact, SweepPaused) for fact in stopped(plan, folder))
    assert not (folder / "runs").exists()
    assert any(isinstance(fact, SweepPaused) for fact in stopped(plan, folder))


@pytest.mark.parametrize("change", ["runs", "digest", "score"])
def test_a_sweep_keeps_the_plan_that_it_began_with(plan: SweepPlan, tmp_path: Path, change: str) -> None:
    """A table of two plans would compare what nobody planned."""
    stopped(plan, tmp_path / "sweep")
    first = plan.runs[0]
    changed = {
        "runs": (evolve(plan, runs=plan.runs[:1]), "it has other runs (1 run now, 2 then)"),
        "digest": (evolve(plan, runs=(evolve(first, digest="0"), *plan.runs[1:])), f"{first.name} has other settings"),
        "score": (evolve(plan, score="validation" if plan.score == "test" else "test"), "score is another"),
    }
    other, said = changed[change]
    with pytest.raises(ConfigError) as refused:
        stopped(other, tmp_path / "sweep")
    assert said in str(refused.value)
