"""One walk finds where a candidate's lines come from, after edits and after a rewrite."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from skillopt_es.events.values import Edit, EditReport, Rewrite, SkillTree
from skillopt_es.skill.alignment import Origin, align, carried, changes, lines_of
from skillopt_es.skill.appendix import with_appendix
from skillopt_es.skill.edits import apply_edits

WORDS = st.sampled_from(["- a", "- b", "# c", "- d\n- e", ""])
EDITS = st.builds(
    lambda op, content, target: (op, content, target),
    st.sampled_from(["append", "insert_after", "replace", "delete"]),
    WORDS,
    WORDS,
)


def tree(text: str) -> SkillTree:
    """A skill of one file."""
    return SkillTree(files={"SKILL.md": text})


@given(st.lists(WORDS, max_size=6).map("\n".join), st.lists(EDITS, max_size=4))
def test_the_walk_over_edits_ends_at_the_candidate(text: str, rows: list[tuple[str, str, str]]) -> None:
    """Each applied edit is a change from one text to the next; every line has one maker."""
    edits = [Edit(id=f"p#{at}", op=op, content=content, target=target) for at, (op, content, target) in enumerate(rows)]  # type: ignore[arg-type]
    parent = tree(text)
    candidate, reports = apply_edits(parent, edits)
    walked = changes(parent, candidate, Origin(reports=reports, proposals={edit.id: edit for edit in edits}))
    place, makers = parent.text, tuple("initial" for _ in lines_of(parent.text))
    for change in walked:
        assert change.before == place
        makers = carried(makers, change, change.made_by[0])
        place = change.after
    assert place == candidate.text
    assert len(makers) == len(lines_of(candidate.text))


def test_kept_lines_keep_their_maker_and_new_ones_get_one() -> None:
    """An edit and a rewrite are told in the same terms."""
    parent = tree("# A\n- one\n")
    edit = Edit(id="e", op="append", content="- two")
    edited, reports = apply_edits(parent, [edit])
    (change,) = changes(parent, edited, Origin(reports=reports, proposals={"e": edit}))
    makers = carried(("initial", "initial"), change, "e")
    assert makers == ("initial", "initial", "e", "e")
    rewritten = tree("# A\n- three\n- two\n")
    rewrite = Rewrite(kept=align(edited.text, rewritten.text))
    origin = Origin(
        reports=(EditReport("s", "applied_rewrite"),), proposals={}, rewrite=rewrite, written=rewritten.text
    )
    (change,) = changes(edited, rewritten, origin)
    assert change.made_by == ("s",)
    assert carried(makers, change, "s") == ("initial", "s", "e")


def test_what_changed_nothing_is_no_change() -> None:
    """A rewrite that gave the same text back made no line."""
    same = tree("# A\n")
    rewrite = Rewrite(kept=align(same.text, same.text))
    origin = Origin(reports=(EditReport("s", "skipped_no_change"),), proposals={}, rewrite=rewrite, written=same.text)
    assert changes(same, same, origin) == ()


def test_notes_are_a_change_of_their_own_after_a_rewrite() -> None:
    """Their lines come from those who wrote them."""
    parent, written = tree("# A\n"), "# B\n"
    rewritten = tree(with_appendix(written, ["mind the rule"]))
    origin = Origin(
        reports=(EditReport("s", "applied_rewrite"),),
        proposals={},
        rewrite=Rewrite(kept=align(parent.text, written)),
        written=written,
        noted_by=("p",),
    )
    first, second = changes(parent, rewritten, origin)
    assert (first.after, first.made_by, second.made_by) == (written, ("s",), ("p",))
    assert carried(("s",), second, "p") == ("s", "p", "p", "p", "p", "p")
