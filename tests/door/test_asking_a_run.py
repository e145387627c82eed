"""What can be asked of a run from Python: what led to a step, another way from a moment, its skill as files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.command import command

import skillopt_es as so


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of the demo: one as it was planned, and one that its target ended after a step."""
    folder = tmp_path_factory.mktemp("asked")
    so.train(settings={"train.num_epochs": 1}, name="whole", runs=folder / "runs")
    so.train(settings={"train.num_epochs": 3, "train.target_score": 0.25}, name="ended", runs=folder / "runs")
    return folder / "runs"


def test_a_step_that_an_ended_run_never_had_is_told_by_the_last_one(runs: Path) -> None:
    """Not by how many were planned, in Python as on the command line."""
    run = so.open_run(runs / "ended")
    assert (run.status, run.state().steps_done) == ("completed", 1)
    said = "ended has no step 99: it ended after step 1"
    with pytest.raises(so.NotInRun, match=said):
        run.state("step 99")
    with pytest.raises(so.NotInRun, match=said):
        run.explain(99)
    with pytest.raises(so.NotInRun, match="ended has no step 2: it ended after step 1"):
        run.state("step 2")
    for words in (("replay", "ended", "--until", "step", "99"), ("explain", "ended", "step", "99")):
        done = command(*words, cwd=runs.parent)
        assert (done.code, said in done.err) == (2, True)
    with pytest.raises(so.NotInRun, match="whole has no step 99: it is a run of"):
        so.open_run(runs / "whole").state("step 99")
    assert run.state("step 1").steps_done == 1


def test_a_step_is_explained_as_the_command_does(runs: Path) -> None:
    """The same facts, as a dict."""
    explained = so.open_run(runs / "whole").explain(1)
    done = command("explain", "whole", "step", "1", "--json", cwd=runs.parent)
    assert explained["step"] == 1
    assert json.loads(json.dumps(explained)).items() <= done.json.items()


def test_runs_are_compared(runs: Path) -> None:
    """By their names, folders or as they are."""
    whole = so.open_run(runs / "whole")
    first, second = so.compare(whole, runs / "ended")
    assert (first.name, second.name, second.step) == ("whole", "ended", 1)
    assert first.test_best == whole.test_score()


def test_a_run_is_forked_and_continued(runs: Path, tmp_path: Path) -> None:
    """From a moment, with another value of a setting that decides."""
    whole = so.open_run(runs / "whole")
    fork = whole.fork("step 1", settings={"evaluation.gate_metric": "soft"}, name="softer")
    assert (fork.folder.parent, fork.status, fork.state().steps_done) == (whole.folder.parent, "running", 1)
    assert so.resume(fork).status == "completed"
    with pytest.raises(so.ConfigError, match="complete"):
        whole.fork()


def test_a_skill_is_exported(runs: Path, tmp_path: Path) -> None:
    """As a folder that says where it comes from, and never over another one."""
    run = so.open_run(runs / "whole")
    written = run.export(tmp_path / "triage")
    assert {file.name for file in written} == {"SKILL.md", "PROVENANCE.json"}
    assert run.skill().text in (tmp_path / "triage" / "SKILL.md").read_text(encoding="utf-8")
    done = command("verify", "--export", tmp_path / "triage", "whole", cwd=runs.parent)
    assert done.code == 0, done.err
    with pytest.raises(so.SkillOptError, match="exists already"):
        run.export(tmp_path / "triage")


def test_what_names_no_run_is_an_error_of_ours(runs: Path) -> None:
    """And a run names itself."""
    run = so.open_run(runs / "whole")
    assert so.open_run(run) is run
    with pytest.raises(so.ConfigError, match="run is 3, but must be a Run"):
        so.open_run(3)  # type: ignore[arg-type]
