"""What each skill was good for: routing, content and context told apart, from training attempts alone."""

from __future__ import annotations

from pathlib import Path

from support.skill_world import managing, trained
from support.skills import skill

from skillopt_es.audit.skill_table import Tally, skill_table


def test_the_table_tells_who_opened_what_and_what_came_of_it(tmp_path: Path) -> None:
    """A skill whose description leads others to it has less precision; one that is passed by, less recall."""
    skills = {
        "apple-tasks": skill("apple-tasks", "apple, and cedar perhaps.", "RULE apple elppa"),
        "birch-tasks": skill("birch-tasks", "birch.", "RULE birch wrong"),
        "idle": skill("idle", "Nothing."),
    }
    run = trained(tmp_path, optimizer=managing(), skills=skills, kinds=("apple", "birch", "cedar"), train=12)
    found = skill_table(run.events())
    rows = {row.name: row for row in found.rows}
    apple, birch, idle = rows["apple-tasks"], rows["birch-tasks"], rows["idle"]
    assert (apple.home, apple.opened, apple.alone) == (("apple", "cedar"), Tally(attempts=16, passed=8), apple.opened)
    assert (birch.home, birch.opened, birch.precision, birch.recall) == (
        ("birch",),
        Tally(attempts=8, passed=0),
        1.0,
        1.0,
    )
    assert (idle.home, idle.opened.attempts, idle.precision, idle.recall, idle.since) == ((), 0, None, None, 0)
    assert found.routing["cedar"] == {("apple-tasks",): Tally(attempts=8, passed=0)}
    assert found.listed == len(
        "- apple-tasks: apple, and cedar perhaps." + "- birch-tasks: birch." + "- idle: Nothing."
    )


def test_a_change_counts_for_the_skill_that_it_made(tmp_path: Path) -> None:
    """With what it came from; what is gone stays in the table."""
    skills = {
        "apple-tasks": skill("apple-tasks", "apple.", "RULE apple elppa"),
        "birch-tasks": skill("birch-tasks", "birch.", "RULE birch hcrib"),
    }
    text = "RULE birch hcrib\n\nRULE apple elppa"
    trees = {"name": "trees", "description": "apple and birch.", "content": text}
    bad = {"name": "worse", "description": "apple.", "content": "RULE apple nothing"}
    run = trained(
        tmp_path,
        optimizer=managing(
            {"kind": "merge", "skills": [*skills], "into": [bad], "why": "a"},
            {"kind": "merge", "skills": [*skills], "into": [trees], "why": "b"},
        ),
        skills=skills,
        kinds=("apple", "birch"),
    )
    rows = {row.name: row for row in skill_table(run.events()).rows}
    assert (rows["trees"].there, rows["trees"].taken, rows["trees"].since) == (True, 1, 6)
    assert rows["trees"].came_from == ("apple-tasks", "birch-tasks")
    assert (rows["apple-tasks"].there, rows["apple-tasks"].opened.attempts > 0) == (False, True)
    assert "worse" not in rows
