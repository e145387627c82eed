"""The part of a page about a folder of skills."""

from __future__ import annotations

import re
from pathlib import Path

from support.asking import Asking
from support.skill_world import managing, trained
from support.skills import skill

from skillopt_es.report.facts import facts_of
from skillopt_es.report.folder import folder_section
from skillopt_es.report.page import page
from skillopt_es.runs.reading import Reading

BOTH = ("apple", "birch")


def test_views_credit_and_what_a_skill_came_from_are_on_the_page_and_in_the_ui(tmp_path: Path) -> None:
    """For a merged skill those that it was made of, which stay in the table as gone."""
    skills = {f"{kind}-tasks": skill(f"{kind}-tasks", f"{kind}.", f"RULE {kind} {kind[::-1]}") for kind in BOTH}
    merged = {"name": "trees", "description": "apple and birch.", "content": "RULE apple elppa\nRULE birch hcrib"}
    change = {"kind": "merge", "skills": [*skills], "into": [merged], "why": "one"}
    trained(tmp_path, optimizer=managing(change), skills=skills, kinds=BOTH)
    with Reading.of(tmp_path / "r") as reading:
        facts = facts_of(reading, tmp_path / "r")
    words = re.sub(r"<[^>]+>", " ", str(folder_section(facts)))
    assert re.search(r"trees\s+16\s+1\.0000\s+0\s", words)
    assert "apple-tasks and birch-tasks" in words
    assert "apple-tasks (gone)" in words
    assert re.search(r"apple\s+16\s+apple-tasks 8 \(8\), trees 8 \(8\)", words)
    assert 'href="#folder"' in page(facts)
    assert 'id="folder"' in Asking(directory=tmp_path).get("/run/r/skill").text


def test_a_run_of_one_skill_has_no_such_part(demo_run: Path) -> None:
    with Reading.of(demo_run) as reading:
        assert folder_section(facts_of(reading, demo_run)) is None
