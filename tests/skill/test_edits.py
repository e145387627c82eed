"""Edits: what each operation does to a text, and that protected blocks and every other character stay as they were."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skillopt_es.events.values import Edit, SkillTree
from skillopt_es.skill.edits import apply_edit, apply_edits
from skillopt_es.skill.regions import (
    APPENDIX_END,
    APPENDIX_START,
    MARKERS,
    SLOW_END,
    SLOW_START,
    clean_of_markers,
    protected_spans,
    slow_guidance,
    with_slow_guidance,
)

BODY = "# A\n\n- one\n- two\n"
BLOCK = f"{SLOW_START}\nguidance\n{SLOW_END}\n"


def edit(op: str, content: str = "", target: str = "") -> Edit:
    return Edit(id="e", op=op, content=content, target=target)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "change", "after", "status"),
    [
        (BODY, edit("append", "x"), "# A\n\n- one\n- two\n\nx\n", "applied_append"),
        ("", edit("append", "x"), "x\n", "applied_append"),
        (BODY, edit("append", "  "), BODY, "skipped_empty_content"),
        (
            BODY + "\n" + BLOCK,
            edit("append", "x"),
            f"# A\n\n- one\n- two\n\nx\n\n{BLOCK}",
            "applied_append_before_protected_region",
        ),
        (BODY, edit("insert_after", "y", "- one"), "# A\n\n- one\n\ny\n\n- two\n", "applied_insert_after"),
        (
            BODY,
            edit("insert_after", "y", "absent"),
            "# A\n\n- one\n- two\n\ny\n",
            "applied_insert_after_fallback_append",
        ),
        (BODY, edit("insert_after", "y"), "# A\n\n- one\n- two\n\ny\n", "applied_insert_after_fallback_append"),
        (BODY, edit("insert_after", "", "- one"), BODY, "skipped_empty_content"),
        (BODY, edit("replace", "three", "two"), "# A\n\n- one\n- three\n", "applied_replace"),
        (BODY, edit("replace", "two", "two"), BODY, "skipped_no_change"),
        (BODY, edit("replace", "x"), BODY, "skipped_replace_missing_target"),
        (BODY, edit("replace", "x", "absent"), BODY, "skipped_replace_target_not_found"),
        (BODY, edit("delete", target="- one\n"), "# A\n\n- two\n", "applied_delete"),
        (BODY, edit("delete"), BODY, "skipped_delete_missing_target"),
        (BODY, edit("append", "- two"), BODY, "skipped_already_there"),
        (BODY, edit("append", "- tw"), "# A\n\n- one\n- two\n\n- tw\n", "applied_append"),
        (BODY, edit("insert_after", "- two", "- one"), BODY, "skipped_already_there"),
        (
            "<!-- SLOW_UPxDATE_START -->\n",
            edit("delete", target="x"),
            "<!-- SLOW_UPxDATE_START -->\n",
            "skipped_forms_marker",
        ),
        (BODY, edit("delete", target="absent"), BODY, "skipped_delete_target_not_found"),
        (BODY, edit("replace", "# B", "# A"), "# B\n\n- one\n- two\n", "applied_replace"),
        (BODY, edit("delete", target="# A\n\n"), "- one\n- two\n", "applied_delete"),
        (BODY, edit("insert_after", "y", "# A"), "# A\n\ny\n\n\n- one\n- two\n", "applied_insert_after"),
        (BLOCK, edit("append", "x"), f"x\n\n{BLOCK}", "applied_append_before_protected_region"),
        (BLOCK, edit("delete", target=SLOW_START), BLOCK, "skipped_protected_region"),
        (f"{BLOCK.rstrip()}>>\n", edit("delete", target=">>"), BLOCK, "applied_delete"),
    ],
)
def test_an_edit_does_what_its_operation_says(text: str, change: Edit, after: str, status: str) -> None:
    """Each operation and each reason for skipping one, on a small text."""
    applied = apply_edit(text, change)
    assert (applied.text, applied.status) == (after, status)


@pytest.mark.parametrize("op", ["replace", "delete", "insert_after"])
@pytest.mark.parametrize(
    "target", ["guidance", SLOW_START, f"- two\n\n{SLOW_START}", f"idance\n{SLOW_END}", "two\n\n<!-- SLOW"]
)
def test_a_target_that_reaches_into_a_protected_block_is_refused(op: str, target: str) -> None:
    """Also a target that starts outside the block, which upstream lets through."""
    text = f"{BODY}\n{BLOCK}"
    applied = apply_edit(text, edit(op, "x", target))
    assert (applied.text, applied.status) == (text, "skipped_protected_region")


def test_a_target_that_stands_inside_and_outside_is_changed_outside_only() -> None:
    """The first occurrence is protected, the second one is not."""
    text = f"{BLOCK}\nmore guidance\n"
    applied = apply_edit(text, edit("replace", "advice", "guidance"))
    assert applied.text == f"{BLOCK}\nmore advice\n"


def test_inserting_after_the_line_before_a_block_lands_before_the_block() -> None:
    """Content never lands inside a protected block."""
    text = f"- two {SLOW_START}\nguidance\n{SLOW_END}\n"
    applied = apply_edit(text, edit("insert_after", "y", "- two"))
    assert slow_guidance(applied.text) == "guidance"
    assert applied.text.index("y") < applied.text.index(SLOW_START)


def test_inserting_beside_a_block_lands_where_it_stays_what_it_is() -> None:
    """Behind a block that is closed on the target's line; and far from one that is never closed, behind the target."""
    closed = f"- two {SLOW_START}g{SLOW_END}"
    assert apply_edit(closed, edit("insert_after", "y", "- two")).text == f"{closed}\ny\n\n"
    never = f"- two\n{SLOW_START}\ng"
    assert apply_edit(f"- one\n{never}", edit("insert_after", "y", "- one")).text == f"- one\n\ny\n\n{never}"


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (edit("insert_after", "y", "absent"), "the target text is not in the skill"),
        (edit("insert_after", "y", " "), "no target was named"),
        (edit("insert_after", "y", "- one"), ""),
    ],
)
def test_what_stands_elsewhere_than_was_asked_says_why(change: Edit, note: str) -> None:
    """An edit that went where it was to go needs no note."""
    assert apply_edit(BODY, change).note == note


def test_edits_apply_in_order_and_each_is_reported() -> None:
    """An earlier edit can make a later target appear or vanish."""
    tree = SkillTree(files={"SKILL.md": BODY})
    edits = [
        Edit(id="a", op="append", content="- three"),
        Edit(id="b", op="replace", target="three", content="3"),
        Edit(id="c", op="delete", target="three"),
        Edit(id="d", op="append", content="x", file="other.md"),
        Edit(id="e", op="append", content="- four"),
    ]
    after, reports = apply_edits(tree, edits)
    assert after.text == f"{BODY}\n- 3\n\n- four\n"
    assert [(report.edit, report.status) for report in reports] == [
        ("a", "applied_append"),
        ("b", "applied_replace"),
        ("c", "skipped_delete_target_not_found"),
        ("d", "skipped_unknown_file"),
        ("e", "applied_append"),
    ]


pieces = st.lists(st.sampled_from(["- one\n", "two ", "\n", "guidance", *MARKERS, "x"]), max_size=12).map("".join)


ops = st.sampled_from(["append", "insert_after", "replace", "delete"])


@given(text=pieces, op=ops, content=pieces, target=pieces, close_gaps=st.booleans())
@example(text=f"two {SLOW_START}", op="insert_after", content="- one", target="two ", close_gaps=False)
def test_no_edit_changes_a_protected_block(text: str, op: str, content: str, target: str, close_gaps: bool) -> None:
    """Whatever text, markers and targets come, the protected blocks read the same afterwards."""
    applied = apply_edit(text, edit(op, content, target), close_gaps=close_gaps)
    before = [text[span.start : span.end] for span in protected_spans(text)]
    after = [applied.text[span.start : span.end] for span in protected_spans(applied.text)]
    assert before == after


@given(pieces)
def test_cleaned_text_holds_no_marker(text: str) -> None:
    """Also none that removing another marker would form."""
    assert not any(marker in clean_of_markers(text) for marker in MARKERS)
    assert not any(marker in clean_of_markers(f"<!-- SLOW_{SLOW_END}UPDATE_END -->{text}") for marker in MARKERS)


def test_guidance_replaces_what_is_in_the_block_and_nothing_else() -> None:
    """The body is kept byte for byte, also its empty lines; markers inside the guidance are removed."""
    assert with_slow_guidance("# A\n\n\n\nb\n", " g ") == f"# A\n\n\n\nb\n\n{SLOW_START}\ng\n{SLOW_END}\n"
    inside = f"# A\n\n\n\n{SLOW_START}\nold\n{SLOW_END}\n\n\n\nb  \n\n"
    assert with_slow_guidance(inside, "new") == inside.replace("old", "new")
    assert with_slow_guidance(inside, "old") == inside
    disorder = f"# A\n{SLOW_END}\n{SLOW_START}\nx\n{SLOW_END}\nb\n{SLOW_START}\n"
    assert with_slow_guidance(disorder, "g") == f"# A\n\n\nb\n\n{SLOW_START}\ng\n{SLOW_END}\n"
    once = with_slow_guidance(BODY, f"first {SLOW_END} tail")
    assert slow_guidance(once) == "first  tail"
    assert slow_guidance(with_slow_guidance(once, "second")) == "second"
    assert with_slow_guidance(once, "second").count(SLOW_START) == 1


def test_the_appendix_is_protected_too() -> None:
    """Both kinds of block stop an edit."""
    text = f"{BODY}\n{APPENDIX_START}\n- note\n{APPENDIX_END}\n"
    assert apply_edit(text, edit("delete", target="- note")).status == "skipped_protected_region"
