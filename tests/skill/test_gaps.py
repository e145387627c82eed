"""Gaps that edits would leave are closed; an author's blank lines stay, and so does everything else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_es.events.values import Edit, SkillTree
from skillopt_es.skill.alignment import lines_of
from skillopt_es.skill.edits import apply_edit, apply_edits


def delete(target: str) -> Edit:
    """An edit that removes this."""
    return Edit(id="e", op="delete", target=target)


def insert(content: str, target: str) -> Edit:
    """An edit that puts lines after this."""
    return Edit(id="e", op="insert_after", content=content, target=target)


LIST = "# A\n\n- one\n- two\n- three\n\nEnd.\n"
WIDE = "# A\n\n\nText.\n\n- one\n\n\n# B\n"


@pytest.mark.parametrize(
    ("text", "change", "after"),
    [
        (LIST, delete("- two"), "# A\n\n- one\n- three\n\nEnd.\n"),
        (LIST, delete("- two\n"), "# A\n\n- one\n- three\n\nEnd.\n"),
        (LIST, delete("\n- two"), "# A\n\n- one\n- three\n\nEnd.\n"),
        (LIST, delete("- three"), "# A\n\n- one\n- two\n\nEnd.\n"),
        (LIST, delete("- three\n"), "# A\n\n- one\n- two\n\nEnd.\n"),
        (LIST, delete("- one\n- two\n- three"), "# A\n\nEnd.\n"),
        (LIST, delete("End."), "# A\n\n- one\n- two\n- three\n"),
        (LIST, delete("# A"), "- one\n- two\n- three\n\nEnd.\n"),
        (LIST, delete("two"), "# A\n\n- one\n- \n- three\n\nEnd.\n"),
        (LIST, delete(LIST.rstrip()), ""),
        (WIDE, delete("- one"), "# A\n\n\nText.\n\n\n# B\n"),
        (WIDE, delete("Text."), "# A\n\n\n- one\n\n\n# B\n"),
        ("- a\n  - b\n  - c\n", delete("- b"), "- a\n  - c\n"),
        ("a  \n\nb\n\n    code\n", delete("b"), "a  \n\n    code\n"),
        (LIST, insert("- new", "- one"), "# A\n\n- one\n\n- new\n\n- two\n- three\n\nEnd.\n"),
        (LIST, insert("New.", "- three"), "# A\n\n- one\n- two\n- three\n\nNew.\n\nEnd.\n"),
        (LIST, insert("Last.", "End."), f"{LIST}\nLast.\n"),
        (WIDE, insert("New.", "- one"), "# A\n\n\nText.\n\n- one\n\nNew.\n\n\n# B\n"),
        ("a", insert("b", "a"), "a\n\nb\n"),
        (LIST, Edit(id="e", op="replace", target="- two", content="  "), "# A\n\n- one\n- three\n\nEnd.\n"),
        (LIST, Edit(id="e", op="replace", target="- two", content="- 2"), "# A\n\n- one\n- 2\n- three\n\nEnd.\n"),
    ],
)
def test_no_gap_is_left(text: str, change: Edit, after: str) -> None:
    """Of two runs of blank lines that meet, the longer one stays; a removed line leaves none of its own."""
    assert apply_edit(text, change, close_gaps=True).text == after


def test_without_the_rule_an_edit_leaves_what_the_original_leaves() -> None:
    """So that recorded runs are what they were."""
    assert apply_edit(LIST, delete("- two")).text == "# A\n\n- one\n\n- three\n\nEnd.\n"
    assert apply_edit(LIST, insert("New.", "- three")).text == "# A\n\n- one\n- two\n- three\n\nNew.\n\n\nEnd.\n"


def test_many_edits_leave_no_run_of_blank_lines() -> None:
    """Rules come and go, and the text is as dense as it was."""
    tree = SkillTree(files={"SKILL.md": "# Skill\n\nYou answer questions.\n"})
    came = [Edit(id=f"a{at}", op="append", content=f"- rule {at}") for at in range(60)]
    went = [delete(f"- rule {at}\n" if at % 3 else f"- rule {at}") for at in range(50)]
    kept = apply_edits(tree, [*came, *went])[0].text
    closed = apply_edits(tree, [*came, *went], close_gaps=True)[0].text
    assert "\n\n\n" in kept
    assert "\n\n\n" not in closed
    assert [line for line in lines_of(kept) if line] == [line for line in lines_of(closed) if line]


pieces = st.lists(st.sampled_from(["- one\n", "two ", "\n", "  ", "x"]), max_size=12).map("".join)


@given(text=pieces, target=pieces, content=pieces, op=st.sampled_from(["insert_after", "replace", "delete"]))
def test_only_blank_lines_differ(text: str, target: str, content: str, op: str) -> None:
    """The rule changes no word and no status; and it never makes a text longer."""
    change = Edit(id="e", op=op, target=target, content=content)  # type: ignore[arg-type]
    kept, closed = apply_edit(text, change), apply_edit(text, change, close_gaps=True)
    assert kept.status == closed.status
    assert [line for line in kept.text.split("\n") if line.strip()] == [
        line for line in closed.text.split("\n") if line.strip()
    ]
    assert len(closed.text) <= len(kept.text) + 1  # a file ends with a line break
