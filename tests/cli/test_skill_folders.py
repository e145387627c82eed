"""What the command does with a run that trained a folder of skills: every skill has its own folder, file and lines."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support.command import command
from support.params import parametrized


@pytest.fixture
def desk(skills_demo: Path) -> Path:
    """A folder with the trained demo."""
    return skills_demo


def test_each_skill_is_exported_verified_and_installed(desk: Path) -> None:
    """With where it comes from; a changed one is noticed, also where others of its folder are not at hand."""
    done = command("export", "demo", "out/", cwd=desk)
    assert done.code == 0, done.err
    assert len(list(desk.glob("out/*/SKILL.md"))) == 11
    assert command("verify", "--export", "out/amounts", "demo", cwd=desk).code == 0
    (desk / "out" / "amounts" / "SKILL.md").write_text("- nothing\n")
    changed = command("verify", "--export", "out/amounts", "demo", cwd=desk)
    assert (changed.code, "SKILL.md was changed after it was exported" in changed.out) == (1, True)
    done = command("install", "demo", "--to", "./agent", "--json", cwd=desk)
    assert len(json.loads(done.out)) == len(list(desk.glob("agent/*/SKILL.md"))) == 11
    assert command("uninstall", "--all", "--to", "./agent", cwd=desk).out.count("removed: ") == 11
    assert not list((desk / "agent").iterdir())
    done = command("install", "out/lists", "--to", "./other", cwd=desk)
    assert (done.code, [path.parent.name for path in desk.glob("other/*/SKILL.md")]) == (0, ["lists"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("export", "demo", "SKILL.md"), "what was trained is a folder of skills"),
        (("export", "demo", "-"), "name a folder: skills/"),
        (("export", "demo", "more/", "--name", "x"), "--name and --description are for one skill"),
        (("blame", "demo"), "which file of the folder of skills?"),
        (("blame", "demo", "nothing/SKILL.md"), "the skill has no file nothing/SKILL.md"),
    ],
)
def test_what_is_for_one_skill_is_refused_in_a_sentence(words: tuple[str, ...], said: str, desk: Path) -> None:
    """With what to do instead."""
    done = command(*words, cwd=desk)
    assert (done.code, said in done.err) == (2, True), done.err


@parametrized(
    ("words", "said"),
    [
        (("status", "demo"), "trains      a folder of 0 skills on tasks"),
        (("status", "demo"), "skillopt-es export demo skills/"),
        (("blame", "demo", "dates-in-answers/SKILL.md"), "step 1"),
        (("diff", "demo", "step 2", "step 3"), "+++ dates-in-answers/SKILL.md"),
        (("explain", "demo", "step", "3"), "merge dates and writing-dates into dates-in-answers"),
        (("lineage", "demo"), "step 9"),
        (("replay", "demo", "--check"), "ok:"),
        (("verify", "demo"), "demo: ok"),
        (("regate", "demo"), "as recorded"),
        (("report", "demo"), "report.html"),
        (("estimate",), "total"),
        (("skills", "demo"), "step 3, from dates and writing-dates"),
    ],
    by_default=5,
)
def test_what_reads_runs_reads_this_one(words: tuple[str, ...], said: str, desk: Path) -> None:
    """As any other."""
    done = command(*words, cwd=desk)
    assert (done.code, said in done.out) == (0, True), done.out + done.err


def test_the_table_of_skills_is_there_for_programs_too(desk: Path) -> None:
    """And a run that trains one skill has none."""
    found = json.loads(command("skills", "demo", "--json", cwd=desk).out)
    assert {row["recall"] for row in found["skills"] if row["there"]} == {1.0}
    assert {tuple(row["opened"]) for row in found["routing"] if row["kind"] == "place"} == {()}
    assert command("run", "--run", "one", "--set", "train.num_epochs=1", cwd=desk).code == 0
    done = command("skills", "one", cwd=desk)
    assert (done.code, "one has no folder of skills" in done.err) == (2, True), done.err


def test_a_fork_goes_on(desk: Path) -> None:
    """With the folder as it was then."""
    done = command("fork", "demo", "--until", "step", "3", "--name", "fork", cwd=desk)
    assert done.code == 0, done.err
    done = command("resume", "fork", cwd=desk)
    assert done.code == 0, done.err
    assert "completed" in done.out


def names(folder: Path) -> set[str]:
    """The skills that agents find there."""
    return {path.parent.name for path in folder.glob("*/SKILL.md")}


def test_what_the_folder_has_no_more_is_not_left_where_agents_look(desk: Path) -> None:
    """A merged skill beside its parts, or one that was retired, would be a folder that nobody has measured."""
    for to in (("install", "demo", "--to", "./late"), ("export", "demo", "--force", "late-files/")):
        place = desk / to[-1]
        command(*to, "--at", "step", "2", cwd=desk)
        assert {"dates", "writing-dates", "polite-phrases"} <= names(place)
        (place / "somebodys").mkdir()
        (place / "somebodys" / "SKILL.md").write_text("theirs\n")
        done = command(*to, cwd=desk)
        assert (done.code, "dates; the folder has it no more" in done.out) == (0, True), done.err
        assert names(place) == {*names(desk / "runs/demo/best"), "somebodys"}


def test_an_exported_folder_is_verified_and_installed_as_a_whole(desk: Path) -> None:
    """By the place that it was exported to; not where a skill is missing that was measured with the others."""
    command("export", "demo", "whole/", cwd=desk)
    done = command("verify", "--export", "whole", "demo", cwd=desk)
    assert (done.code, done.out.count(": ok")) == (0, 11), done.out
    assert command("install", "whole", "--to", "./from-files", cwd=desk).code == 0
    assert names(desk / "from-files") == names(desk / "whole")
    shutil.copytree(desk / "whole" / "lists", desk / "demo" / "lists")  # a run's name is the run
    assert command("install", "demo", "--to", "./from-run", cwd=desk).code == 0
    assert names(desk / "from-run") == names(desk / "whole")
    shutil.rmtree(desk / "demo")
    shutil.rmtree(desk / "whole" / "lists")
    done = command("verify", "--export", "whole", cwd=desk)
    assert (done.code, "the folder was measured with lists, too" in done.out) == (1, True)
    assert json.loads(command("verify", "--export", "whole", "--json", cwd=desk).out)["ok"] is False
    done = command("install", "whole", "--to", "./in-part", cwd=desk)
    assert (done.code, names(desk / "in-part")) == (2, set())


def test_of_a_folder_all_skills_are_installed_or_none(desk: Path) -> None:
    """One that was changed, or is somebody's own, keeps all of them as they are."""
    (desk / "mixed" / "lists").mkdir(parents=True)
    (desk / "mixed" / "lists" / "SKILL.md").write_text("theirs\n")
    done = command("install", "demo", "--to", "./mixed", cwd=desk)
    assert (done.code, names(desk / "mixed")) == (2, {"lists"})
    (desk / "written" / "lists").mkdir(parents=True)
    (desk / "written" / "lists" / "SKILL.md").write_text("theirs\n")
    assert command("export", "demo", "written/", cwd=desk).code == 2
    assert names(desk / "written") == {"lists"}


def test_skills_of_another_runs_folder_are_told(desk: Path) -> None:
    """Nobody has measured both together; they stay, for nobody knows that they are not wanted."""
    command("run", "--demo", "skills", "--quiet", "--name", "other", "--set", "train.num_epochs=1", cwd=desk)
    assert command("install", "other", "--to", "./both", cwd=desk).code == 0
    done = command("install", "demo", "--to", "./both", cwd=desk)
    assert "nobody has measured them together with these" in done.err
    assert names(desk / "both") > names(desk / "runs/demo/best")


@pytest.mark.slow
def test_a_folder_is_adopted_and_trained_again(desk: Path) -> None:
    """What is kept beside the skills is none of them."""
    command("export", "demo", "mine/", "--at", "step", "2", cwd=desk)
    sets = ("--set", "env.skill_init=mine/", "--set", "train.num_epochs=2")
    assert command("run", "--demo", "skills", "--quiet", "--name", "again", *sets, cwd=desk).code == 0
    done = command("adopt", "again", cwd=desk)
    assert (done.code, "taken away: " in done.out) == (0, True), done.err
    assert names(desk / "mine") == names(desk / "runs/again/best")
    assert command("run", "--demo", "skills", "--quiet", "--name", "third", *sets, cwd=desk).code == 0
    assert command("adopt", "again", "--undo", cwd=desk).code == 0
    assert {"dates", "writing-dates"} <= names(desk / "mine")
