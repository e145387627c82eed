"""`adopt` as a command: over the run's own skill_init."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from support.event_runs import forge
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


@pytest.mark.slow
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


def train(cli: Cli, name: str, skill: str) -> None:
    """A short run of the demo's tasks that begins with this skill."""
    sets = ("--set", "train.num_epochs=1", "--set", "train.batch_size=12", "--set", f"env.skill_init={skill}")
    assert cli("run", "--name", name, "--quiet", *sets).code == 0


@pytest.fixture
def linked(project: Path, cli: Cli) -> Path:
    """SKILL.md, a link to real/orig.md, and a run that began with it."""
    (project / "real").mkdir()
    (project / "real/orig.md").write_text(START, encoding="utf-8")
    (project / "SKILL.md").symlink_to("real/orig.md")
    train(cli, "linked", "SKILL.md")
    return project


def refused(cli: Cli, project: Path, *words: object) -> str:
    """The sentence of a command that changes no file."""
    before = contents(project)
    done = cli(*words)
    assert (done.code, done.out) == (2, "")
    assert {path: text for path, text in contents(project).items() if "runs" not in path.parts} == {
        path: text for path, text in before.items() if "runs" not in path.parts
    }
    return done.err


def test_of_a_link_the_file_that_it_leads_to_is_changed(cli: Cli, linked: Path) -> None:
    """As an editor does it; the skill has the link's name, and the link stays."""
    best = (linked / "runs/linked/best/SKILL.md").read_text(encoding="utf-8")
    assert f"adopted: {linked / 'SKILL.md'}" in cli("adopt", "linked").out
    assert (linked / "SKILL.md").readlink() == Path("real/orig.md")
    assert (linked / "real/orig.md").read_text(encoding="utf-8") == best != START
    assert sorted(path.name for path in (linked / "real").iterdir()) == ["orig.md"]
    assert "put back:" in cli("adopt", "linked", "--undo").out
    assert (linked / "SKILL.md").readlink() == Path("real/orig.md")
    assert (linked / "real/orig.md").read_text(encoding="utf-8") == START


@pytest.mark.slow
def test_a_link_that_became_a_file_or_leads_elsewhere_is_what_has_to_be_as_it_was(cli: Cli, linked: Path) -> None:
    """It is the named file that counts, not the one that the link led to."""
    (linked / "SKILL.md").unlink()
    (linked / "SKILL.md").write_text("mine\n", encoding="utf-8")
    assert f"{linked / 'SKILL.md'} is not what the run began with" in refused(cli, linked, "adopt", "linked")
    (linked / "SKILL.md").unlink()
    (linked / "there").mkdir()
    (linked / "there/other.md").write_text("of somebody else\n", encoding="utf-8")
    (linked / "SKILL.md").symlink_to("there/other.md")
    assert f"{linked / 'SKILL.md'} is not what the run began with" in refused(cli, linked, "adopt", "linked")
    (linked / "SKILL.md").unlink()
    (linked / "SKILL.md").write_text(START, encoding="utf-8")
    assert cli("adopt", "linked").code == 0
    assert (linked / "real/orig.md").read_text(encoding="utf-8") == START


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_what_is_no_plain_file_any_more_is_refused(
    cli: Cli, project: Path, tmp_path_factory: pytest.TempPathFactory, force: tuple[str, ...]
) -> None:
    """A folder, a link that leads nowhere, nothing at all: whatever the options."""
    outside = tmp_path_factory.mktemp("outside")
    mine = project / "MINE.md"
    mine.unlink()
    assert f"{mine} is not there any more" in refused(cli, project, "adopt", "one", *force)
    mine.mkdir()
    assert f"{mine} is not a plain file any more" in refused(cli, project, "adopt", "one", *force)
    mine.rmdir()
    mine.symlink_to(outside / "new.md")
    said = refused(cli, project, "adopt", "one", *force)
    assert f"{mine} is a link that leads to no plain file" in said
    assert "`skillopt-es export RUN FILE`" in said
    assert not list(outside.iterdir())


def test_backups_are_not_written_through_links(
    cli: Cli, project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Neither through the folder of all of them, nor through one below it, nor by a draft's name."""
    outside = tmp_path_factory.mktemp("outside")
    store = project / ".skillopt-es"
    for link in (store, store / "adopted", store / "adopted/MINE.md", store / "adopted/MINE.md/before"):
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(outside)
        assert f"{link} is a link" in refused(cli, project, "adopt", "one")
        link.unlink()
    (outside / "theirs").write_text("theirs", encoding="utf-8")
    (project / ".MINE.md.new").symlink_to(outside / "theirs")
    assert cli("adopt", "one").code == 0
    assert not (project / "MINE.md").is_symlink()
    assert contents(outside) == {outside / "theirs": b"theirs"}


@pytest.mark.slow
def test_a_folder_of_a_skill_that_is_none_any_more_is_refused(
    cli: Cli, project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Nothing is written beside it, in its place, or where its files' links lead."""
    outside = tmp_path_factory.mktemp("outside")
    folder = project / "skill"
    folder.mkdir()
    (folder / "SKILL.md").write_text(START, encoding="utf-8")
    train(cli, "folder", "skill")
    (folder / "SKILL.md").rename(outside / "moved.md")
    assert "is not there any more" in refused(cli, project, "adopt", "folder")
    (folder / "SKILL.md").symlink_to(outside / "moved.md")
    assert f"is a link that leads out of {folder}" in refused(cli, project, "adopt", "folder", "--force")
    (folder / "SKILL.md").unlink()
    folder.rmdir()
    folder.write_text(START, encoding="utf-8")
    assert f"{folder} is not the folder any more" in refused(cli, project, "adopt", "folder")


def test_a_damaged_log_and_a_cut_one_are_not_adopted(cli: Cli, project: Path) -> None:
    """The file stays as it is, and the sentence names the damage."""
    run = project / "runs/one"
    cut, short = (shutil.copytree(run, project / "runs" / name) for name in ("cut", "short"))
    forge(cut, "delete from events where seq > 20")
    os.truncate(short / "log.db", (short / "log.db").stat().st_size // 2)
    forge(run, "update events set data = '{}' where seq = 5")
    for name in ("one", "cut", "short"):
        done = cli("adopt", name, "--force")
        assert (done.code, done.out) == (1, ""), (name, done)
    assert "event 5" in cli("adopt", "one").err
    assert (project / "MINE.md").read_text(encoding="utf-8") == START
