"""What has become of a sweep's run is told by what its process left behind."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from attrs import evolve

from skillopt_es.config import load_config
from skillopt_es.events.catalog import SkillScored
from skillopt_es.events.log import EventLog
from skillopt_es.sweeps.children import another_run, has_begun, result_of, run_folder
from skillopt_es.sweeps.plan import PlannedRun, deciding_digest


def planned(digest: str = "") -> PlannedRun:
    """A run called `one`."""
    return PlannedRun(
        name="one", setting="usual", seed=47, config="config.yaml", overrides=(), digest=digest, endpoints=()
    )


@pytest.fixture
def sweep(tmp_path: Path, demo_run: Path) -> Path:
    """A sweep's folder in which the run is complete."""
    shutil.copytree(demo_run, run_folder(tmp_path, planned()))
    return tmp_path


def test_a_complete_run_has_its_scores_and_what_it_used(sweep: Path) -> None:
    """From its own log, whatever its process said."""
    run = planned(deciding_digest(load_config(None).resolved))
    assert has_begun(run_folder(sweep, run))
    ended = result_of(sweep, run, None)
    with EventLog.open(run_folder(sweep, run)) as log:
        scored = [each.event for each in log.read() if isinstance(each.event, SkillScored)]
    [best] = [each.score.hard for each in scored if each.place == "final/test/best"]
    assert (ended.outcome, ended.test, ended.cost, ended.message) == ("completed", best, None, "")
    assert ended.calls is not None
    assert ended.calls > len(scored)


def test_a_run_of_other_settings_is_not_taken_for_the_planned_one(sweep: Path) -> None:
    """It is named, with what to do."""
    ended = result_of(sweep, planned("other"), 0)
    assert ended == another_run(run_folder(sweep, planned()), planned("other"))
    assert ended.outcome == "failed"
    assert "its settings are not those that were planned" in ended.message


@pytest.mark.parametrize(
    ("code", "said", "outcome", "message"),
    [
        (None, None, "killed", "its process ended"),
        (-9, {"error": {"message": "late", "hint": None}}, "killed", "its process ended by signal 9"),
        (1, None, "failed", "its process ended with exit code 1"),
        (2, {"error": {"message": "no such file", "hint": "name it"}}, "failed", "no such file (name it)"),
        (2, ["no", "document"], "failed", "its process ended with exit code 2"),
    ],
)
def test_a_process_that_left_no_run_says_why_itself(
    tmp_path: Path, code: int | None, said: object, outcome: str, message: str
) -> None:
    """One that was killed has said nothing that counts."""
    (tmp_path / "output").mkdir()
    if said is not None:
        (tmp_path / "output" / "one.json").write_text(json.dumps(said), encoding="utf-8")
    ended = result_of(tmp_path, evolve(planned(), name="one"), code)
    assert (ended.outcome, ended.message) == (outcome, message)
