"""`adopt` as a command: over the run's own skill_init."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.in_process import Cli

from skillopt_es.config.places import packaged

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


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The configs that come with the package, as they are: a copy that a failing test may overwrite."""
    copy = Path(shutil.copytree(packaged(), tmp_path / "package"))
    monkeypatch.setattr("skillopt_es.config.places.packaged", lambda name="": copy / name)
    monkeypatch.setattr("skillopt_es.config.layers.packaged", lambda name="": copy / name)
    return copy


def contents(folder: Path) -> dict[Path, bytes]:
    """Each file's bytes."""
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_the_packages_own_files_are_never_written_to(
    cli: Cli, package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither by `adopt` of a run of the demo, nor by another command, nor through a link."""
    monkeypatch.chdir(tmp_path)
    few = ("--quiet", "--set", "train.num_epochs=1", "--set", "train.batch_size=12")
    assert cli("run", "--name", "demo", *few).code == 0
    (tmp_path / "link").symlink_to(package / "demo")
    (tmp_path / "LINK.md").symlink_to(package / "demo" / "SKILL.md")
    for number, place in enumerate(("link/SKILL.md", "LINK.md")):
        assert cli("run", "--name", f"link{number}", *few, "--set", f"env.skill_init={tmp_path / place}").code == 0
    before = contents(package)
    for words in (
        ("adopt", "demo"),
        ("adopt", "demo", "--force"),
        ("adopt", "demo", "--undo"),
        ("adopt", "link0", "--force"),
        ("adopt", "link1", "--force"),
        ("export", "demo", "link/SKILL.md", "--force"),
        ("export", "demo", package / "demo" / "new.md"),
        ("export", "demo", f"{package}/demo/"),
        ("replay", "demo", "--out", "link/replayed"),
        ("report", "demo", "--out", "link/report.html"),
        ("freeze", "demo", "--out", "link/a.cassette"),
        ("install", "demo", "--to", "./link", "--name", "mine"),
        ("init", package / "init", "--force"),
        ("new-environment", "mine", package / "new"),
        ("harvest", "scan", "--home", tmp_path, "--out", "link/harvest.jsonl"),
    ):
        done = cli(*words)
        assert done.code == 2, (words, done)
        assert "belongs to the installed skillopt-es" in done.err, (words, done.err)
    assert "`skillopt-es export RUN SKILL.md`" in cli("adopt", "demo").err
    assert contents(package) == before
