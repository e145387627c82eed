"""Which config a command takes that is given none, and what was meant by a file that is not there."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from support.in_process import Cli

from skillopt_es.config.places import packaged

HERE = "config.yaml of this folder is used"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a config of one short epoch."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(packaged("demo"), tmp_path, dirs_exist_ok=True)
    (tmp_path / "config.yaml").write_text(
        "_base_: demo.yaml\ntrain: {num_epochs: 1, batch_size: 12}\n", encoding="utf-8"
    )
    return tmp_path


def test_the_config_of_the_folder_is_taken_and_said(cli: Cli, project: Path) -> None:
    """By the commands that take a config; JSON stays JSON."""
    doctor = cli("doctor")
    assert HERE in doctor.err
    assert "config       config.yaml" in doctor.out
    estimate = cli("estimate", "--json")
    assert HERE in estimate.err
    assert json.loads(estimate.out)["steps"] == 4
    assert HERE in cli("run", "--quiet", "--name", "one").err
    assert HERE in cli("eval", "--split", "val").err


def test_the_demo_is_taken_where_it_is_named_or_there_is_no_config(cli: Cli, project: Path) -> None:
    """As the first command of the README does."""
    for words in (("doctor", "--demo", "demo"), ("estimate", "--demo", "demo"), ("run", "--demo", "demo", "--dry-run")):
        assert HERE not in cli(*words).err
    assert "config       the bundled demo" in cli("doctor", "--demo", "demo").out
    assert "give a CONFIG or a --demo, not both" in cli("doctor", "config.yaml", "--demo", "demo").err
    (project / "config.yaml").unlink()
    assert "config       the bundled demo" in cli("doctor").out
    assert json.loads(cli("estimate", "--json").out)["steps"] == 12


@pytest.mark.parametrize("kind", ["pipe", "link to nowhere", "folder"])
def test_a_config_of_the_folder_that_cannot_be_read_is_an_error(cli: Cli, project: Path, kind: str) -> None:
    """The demo does not take its place."""
    (project / "config.yaml").unlink()
    if kind == "pipe":
        os.mkfifo(project / "config.yaml")
    elif kind == "folder":
        (project / "config.yaml").mkdir()
    else:
        (project / "config.yaml").symlink_to("gone.yaml")
    done = cli("run", "--quiet")
    assert done.code == 2
    assert "config.yaml of this folder is used" in done.err
    assert "error: " in done.err
    assert not (project / "runs").exists()


def test_an_unknown_model_key_names_the_page_that_lists_them(cli: Cli, project: Path) -> None:
    """There are some 300; where one is close, that one is named."""
    far, near = (cli("run", "--set", f"model.{key}=1").err for key in ("zzzqq", "optimiser"))
    assert "docs/config.md lists the keys of model" in far
    assert "did you mean model.optimizer?" in near


def test_a_link_to_itself_says_so(cli: Cli, project: Path) -> None:
    """Its permissions are not what is wrong."""
    (project / "loop.jsonl").symlink_to("loop.jsonl")
    done = cli("run", "--set", "env.data_path=loop.jsonl")
    assert done.code == 2
    assert "its symbolic links lead back to itself" in done.err


def test_a_misspelt_file_is_guessed(cli: Cli, project: Path) -> None:
    """The config, and the data that it names; where nothing is like it, what else to do."""
    assert "did you mean config.yaml?" in cli("run", "confg.yaml").err
    assert "did you mean tasks.jsonl?" in cli("run", "config.yaml", "--set", "env.data_path=task.jsonl").err
    assert "`skillopt-es init DIR` writes one" in cli("run", "nothing-like-it.yaml").err


def test_a_complete_run_is_trained_on_by_another_command(cli: Cli, project: Path) -> None:
    """`resume` names it where a setting is given, and a run that its budget completed ends with it."""
    done = cli("run", "--quiet", "--name", "b", "--set", "train.algorithm=search", "--max-calls", "150")
    assert done.code == 0
    assert "skillopt-es continue b --max-calls 200" in done.out
    assert "skillopt-es continue b --max-calls 200" in cli("status", "b").out
    refused = cli("resume", "b", "--max-calls", "300", "--set", "model.timeout_seconds=5")
    assert refused.code == 2
    assert "`skillopt-es continue b --set model.timeout_seconds=5 --max-calls 300` trains on" in refused.err
    assert cli("resume", "b").code == 0
    assert cli("continue", "b", "--max-calls", "300", "--quiet").code == 0


@pytest.mark.parametrize(("command", "flag"), [("replay", "--until"), ("blame", "--at")])
def test_a_moment_may_be_in_quotes_and_a_bare_number_is_none(command: str, flag: str, cli: Cli, demo_run: Path) -> None:
    """As it may be where it is an argument."""
    assert cli(command, demo_run, flag, "step 2").out == cli(command, demo_run, flag, "step", "2").out
    refused = cli(command, demo_run, flag, "4")
    assert refused.code == 2
    assert f"{flag} 4 is a number of what? Write {flag} step 4, epoch 4 or seq 4" in refused.err


def test_a_config_that_has_changed_is_not_used_by_resume_which_says_so(cli: Cli, project: Path) -> None:
    """With the keys; what was set beside the file is no change of it, and a file as it was says nothing."""
    config = project / "config.yaml"
    few = ("--set", "train.seed=3", "--max-calls", "60")
    assert cli("run", "config.yaml", "--quiet", "--name", "b", *few).code == 3
    assert "has changed" not in cli("resume", "b", "--max-calls", "70").err
    config.write_text(
        "_base_: demo.yaml\ntrain: {num_epochs: 1, batch_size: 12}\nevaluation: {gate_metric: soft}\n", encoding="utf-8"
    )
    done = cli("resume", "b", "--max-calls", "80")
    assert done.code == 3
    assert "config.yaml has changed since the run began, and is not used here: evaluation.gate_metric." in done.err
    assert "`skillopt-es fork b --set KEY=VALUE`" in done.err
    config.write_text("_base_: [\n", encoding="utf-8")
    assert "config.yaml cannot be read any more" in cli("resume", "b", "--max-calls", "90").err
    config.unlink()
    assert "config.yaml" not in cli("resume", "b", "--max-calls", "100").err


def test_what_follows_from_a_setting_beside_the_file_is_no_change_of_it(cli: Cli, project: Path) -> None:
    """An algorithm brings defaults of its own, and a limit that `resume` was given is not the file's."""
    config = project / "config.yaml"
    lines = "_base_: demo.yaml\ntrain: {algorithm: search}\n"
    config.write_text(lines, encoding="utf-8")
    classic = ("--set", "train.algorithm=classic")
    assert cli("run", "config.yaml", "--quiet", "--name", "b", *classic, "--max-calls", "20").code == 3
    config.write_text(lines + "evaluation: {gate_metric: soft}\n", encoding="utf-8")
    done = cli("resume", "b", "--set", "env.workers=3", "--max-calls", "25")
    assert done.code == 3
    assert "is not used here: evaluation.gate_metric. " in done.err
