"""`adopt` as a command: over the run's own skill_init."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.in_process import Cli

START = "# Answers\n\nAnswer from the text.\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> Path:
    """A folder with a skill and a run of the demo's tasks that began with it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "MINE.md").write_text(START, encoding="utf-8")
    settings = ("train.num_epochs=1", "train.batch_size=12", f"env.skill_init={tmp_path / 'MINE.md'}")
    sets = [word for each in settings for word in ("--set", each)]
    assert cli("run", "--name", "one", "--quiet", *sets).code == 0
    return tmp_path


def test_the_best_skill_takes_the_files_place_and_goes_again(cli: Cli, project: Path) -> None:
    """What was there comes back byte for byte."""
    best = (project / "runs/one/best/MINE.md").read_text(encoding="utf-8")
    assert best != START
    assert "adopted:" in cli("adopt", "one").out
    assert (project / "MINE.md").read_text(encoding="utf-8") == best
    assert "nothing to do" in cli("adopt", "one").out
    assert "put back:" in cli("adopt", "one", "--undo").out
    assert (project / "MINE.md").read_text(encoding="utf-8") == START


def test_a_file_that_was_changed_is_replaced_by_force_alone(cli: Cli, project: Path) -> None:
    """And is kept even then."""
    (project / "MINE.md").write_text("mine\n", encoding="utf-8")
    assert "somebody has changed it since" in cli("adopt", "one").err
    assert cli("adopt", "one", "--force").code == 0
    cli("adopt", "one", "--undo")
    assert (project / "MINE.md").read_text(encoding="utf-8") == "mine\n"


def test_a_file_that_begins_with_a_mark_of_its_byte_order_is_as_it_was(cli: Cli, project: Path) -> None:
    """A single document keeps the mark in the run as well."""
    marked = f"\ufeff{START}"
    (project / "MINE.md").write_text(marked, encoding="utf-8")
    sets = ("--set", "train.num_epochs=1", "--set", "train.batch_size=12", "--set", "env.skill_init=MINE.md")
    assert cli("run", "--name", "marked", "--quiet", *sets).code == 0
    assert "adopted:" in cli("adopt", "marked").out
    assert cli("adopt", "marked", "--undo").code == 0
    assert (project / "MINE.md").read_text(encoding="utf-8") == marked


def test_a_run_that_continues_another_takes_the_place_of_what_that_one_began_with(cli: Cli, project: Path) -> None:
    """Nobody has changed the file: the second run began with the best skill of the first."""
    assert cli("continue", "one", "--name", "more", "--quiet", "--set", "train.num_epochs=1").code == 0
    assert "adopted:" in cli("adopt", "more").out
    assert cli("adopt", "more", "--undo").code == 0
    assert (project / "MINE.md").read_text(encoding="utf-8") == START
    (project / "MINE.md").write_text("mine\n", encoding="utf-8")
    assert "somebody has changed it since" in cli("adopt", "more").err


def test_a_run_that_began_with_nothing_has_no_file_to_replace(cli: Cli, project: Path) -> None:
    """It says what to do instead."""
    cli("run", "--name", "two", "--quiet", "--set", "train.num_epochs=1", "--set", "env.skill_init=")
    assert "`skillopt-es export two SKILL.md`" in cli("adopt", "two").err
