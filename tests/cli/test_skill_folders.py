"""What the command does with a run that trained a folder of skills: every skill has its own folder, file and lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.command import command


@pytest.fixture
def desk(skills_demo: Path) -> Path:
    """A folder with the trained demo."""
    return skills_demo


def test_each_skill_is_exported_verified_and_installed(desk: Path) -> None:
    """With where it comes from; a changed one is noticed, also where others of its folder are not at hand."""
    done = command("export", "demo", "out/", cwd=desk)
    assert done.code == 0, done.err
    assert len(list(desk.glob("out/*/SKILL.md"))) == 10
    assert command("verify", "--export", "out/amounts", "demo", cwd=desk).code == 0
    (desk / "out" / "amounts" / "SKILL.md").write_text("- nothing\n")
    changed = command("verify", "--export", "out/amounts", "demo", cwd=desk)
    assert (changed.code, "SKILL.md was changed after it was exported" in changed.out) == (1, True)
    done = command("install", "demo", "--to", "./agent", "--json", cwd=desk)
    assert len(json.loads(done.out)) == len(list(desk.glob("agent/*/SKILL.md"))) == 10
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


@pytest.mark.parametrize(
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
