"""Lines that somebody has spoken of."""

from __future__ import annotations

from skillopt_es.events.values import Edit, SkillTree
from skillopt_es.skill.edits import SKIPPED_PINNED, apply_edits
from skillopt_es.skill.pins import file_of, lost_pins, without_line
from skillopt_es.skill.regions import SLOW_END, SLOW_START

TEXT = f"# Skill\n\n- one\n- two\n\n{SLOW_START}\n- guided\n{SLOW_END}\n"
SKILL = SkillTree(files={"SKILL.md": TEXT, "more.md": "- three\n- one\n"})


def test_a_line_is_found_whole_and_outside_protected_parts() -> None:
    """The main file comes first."""
    assert file_of(SKILL, "- one") == "SKILL.md"
    assert file_of(SKILL, "- three") == "more.md"
    for nowhere in ("one", "- guided", "", "- four", SLOW_START):
        assert file_of(SKILL, nowhere) == ""


def test_a_line_is_taken_out_once_and_nothing_else_changes() -> None:
    """Also the last one of a file that does not end its line."""
    left = without_line(SKILL, "- one")
    assert left.files == {"SKILL.md": TEXT.replace("- one\n", ""), "more.md": "- three\n- one\n"}
    assert without_line(left, "- one").files["more.md"] == "- three\n"
    assert without_line(SkillTree(files={"SKILL.md": "a\nb"}), "b").text == "a\n"
    assert without_line(SKILL, "- guided") == SKILL


def test_an_edit_that_takes_a_pinned_line_away_is_skipped() -> None:
    """Also one that only rewords it; others are applied."""
    edits = (
        Edit(id="a", op="replace", target="one", content="uno"),
        Edit(id="b", op="delete", target="- two"),
        Edit(id="c", op="append", content="- four"),
    )
    alone = SkillTree(files={"SKILL.md": TEXT})
    after, reports = apply_edits(alone, edits, pins=("- one", "- of another text"))
    assert [report.status for report in reports][:2] == [SKIPPED_PINNED, "applied_delete"]
    assert reports[0].note == "- one"
    assert "- one" in after.text
    assert "- two" not in after.text
    assert "- four" in after.text
    assert lost_pins(alone, after, ("- one", "- two")) == ("- two",)
