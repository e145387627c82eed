"""The demo of a folder of skills: it begins without any, and ends with one for each kind, tidied up."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.skill_world import of_type

import skillopt_es as so
from skillopt_es.events.catalog import CandidateBuilt, RolloutCompleted
from skillopt_es.skill.folders import ids_of, skills_in


@pytest.fixture
def run(skills_demo: Path) -> so.Run:
    """The demo, trained."""
    return so.open_run(skills_demo / "runs" / "demo")


def done_by(run: so.Run, op: str) -> list[str]:
    """The edits of a kind that were applied, by what they were about."""
    edits = {edit.id: edit for patch in run.events(["PatchProposed"]) for edit in patch.event.edits}  # type: ignore[attr-defined]
    reports = [report for event in of_type(run, CandidateBuilt) for report in event.reports]  # type: ignore[attr-defined]
    return [edits[each.edit].target or edits[each.edit].file for each in reports if each.status == f"applied_{op}"]


def test_it_ends_with_a_skill_for_each_kind(run: so.Run) -> None:
    """Without two that say the same, and at last without what no task needs."""
    best = run.skill("best")
    assert len(ids_of(best)) == 11  # the last step retires one, which is a tie
    assert len(ids_of(run.skill("current"))) == 10
    assert len(done_by(run, "merge")) >= 2
    assert done_by(run, "retire") == ["polite-phrases/SKILL.md"]


def test_each_skill_is_opened_for_its_kind(run: so.Run) -> None:
    """In the end every task with a rule opens one skill, and each kind always the same one."""
    opened: dict[str, set[tuple[str, ...]]] = {}
    for event in of_type(run, RolloutCompleted):
        if event.place == "final/test/best":  # type: ignore[attr-defined]
            opened.setdefault(event.task_type, set()).add(skills_in(event.viewed))  # type: ignore[attr-defined]
    assert opened.pop("place") == {()}
    assert {len(keys) for keys in opened.values()} == {1}
    assert {len(key) for keys in opened.values() for key in keys} == {1}
    assert len({key for keys in opened.values() for key in keys}) == len(opened) == 10


def test_lines_of_a_merged_skill_are_known_as_their_first_makers(run: so.Run) -> None:
    """The rule was written in the first step, by a question about failures."""
    best = run.blame().best
    path = "dates-in-answers/SKILL.md"
    rows = zip(best.skill.files[path].splitlines(), best.makers[path], strict=True)
    [rule] = [maker for line, maker in rows if line.startswith("- Write dates")]
    assert (rule.kind, rule.step) == ("edit", 1)
    assert rule.proposals[0].startswith("e1/s1/b0/failure-")
