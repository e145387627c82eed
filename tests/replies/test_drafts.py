"""Suggestions, drafts and rewrites become typed values; what cannot is refused in words that help the model."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_es.events.values import Draft, Suggestion
from skillopt_es.replies.json_reader import Unusable
from skillopt_es.replies.proposals import DRAFTS, SUGGESTIONS, read_merge, read_patch
from skillopt_es.replies.rewrites import read_rewrite
from skillopt_es.skill.regions import SLOW_END, SLOW_START

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
KEYS = ("patch", "revise_suggestions", "skill_candidates", "new_skill", "type", "instruction", "from", "change_summary")
OBJECTS = st.dictionaries(
    st.sampled_from(KEYS), JSON | st.lists(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=4), max_size=3)
)


def suggestions(*rows: object, most: int = 4) -> object:
    """Reads an analyst's suggestions."""
    text = json.dumps({"patch": {"reasoning": "r", "revise_suggestions": list(rows)}})
    return read_patch(text, of=SUGGESTIONS, patch="p", kind="failure", support=3, most=most)


def rewritten(text: object) -> object:
    """Reads a rewrite."""
    return read_rewrite(json.dumps({"new_skill": text, "change_summary": ["a", "", 3, "b"]}))


def test_a_suggestion_keeps_what_was_said_and_where_it_comes_from() -> None:
    """Without a type it adds a rule; an unknown priority is a medium one."""
    reply = suggestions({"instruction": "Say so.", "title": "t", "priority_hint": "urgent"})
    assert reply.suggestions == (  # type: ignore[attr-defined]
        Suggestion(id="p#1", kind="add_rule", instruction="Say so.", title="t", support=3, origins=("p",)),
    )


def test_what_says_nothing_or_was_said_uses_up_no_budget() -> None:
    """The budget counts useful suggestions."""
    said = {"type": "clarify", "instruction": "Say so."}
    reply = suggestions({"instruction": "…"}, said, said, {"instruction": "More."}, {"instruction": "Most."}, most=2)
    assert [each.instruction for each in reply.suggestions] == ["Say so.", "More."]  # type: ignore[attr-defined]


def test_an_unknown_type_of_suggestion_is_refused_with_those_there_are() -> None:
    """So that the model can mend it."""
    reply = suggestions({"type": "append", "instruction": "x"})
    assert isinstance(reply, Unusable)
    assert "add_rule, remove_rule, merge_rules, reorganize, compress, clarify" in reply.why


def test_merged_suggestions_name_their_sources() -> None:
    """Support stays within what stands behind them; who names none comes from all."""
    inputs = {f"E{n}": Suggestion(id=f"p#{n}", kind="add_rule", instruction="x", support=n) for n in (1, 2)}
    rows = [{"instruction": "one", "from": ["E2"], "support_count": 9}, {"instruction": "two", "from": ["E7"]}]
    reply = read_merge(
        json.dumps({"revise_suggestions": rows}), of=SUGGESTIONS, merge="m", inputs=inputs, source="failure"
    )
    found = [(each.origins, each.support, each.origins_assumed) for each in reply.suggestions]  # type: ignore[union-attr]
    assert found == [(("p#2",), 2, False), (("p#1", "p#2"), 3, True)]


def test_the_first_usable_draft_counts() -> None:
    """What comes before it has no text of its own."""
    rows = ["x", {"new_skill": " "}, {"new_skill": "# A  \n\n", "change_summary": "one"}, {"new_skill": "# B"}]
    reply = read_patch(json.dumps({"skill_candidates": rows}), of=DRAFTS, patch="p", kind="success", support=2, most=0)
    assert reply.drafts == (  # type: ignore[union-attr]
        Draft(id="p#1", text="# A\n", changes=("one",), support=2, source="success", origins=("p",)),
    )


def test_an_analyst_may_have_no_draft_and_a_merger_may_not() -> None:
    """An empty list would throw away what was drafted."""
    text = '{"skill_candidates": []}'
    assert read_patch(text, of=DRAFTS, patch="p", kind="success", support=2, most=4).drafts == ()  # type: ignore[union-attr]
    inputs = {"E1": Draft(id="p#1", text="# A\n")}
    assert isinstance(read_merge(text, of=DRAFTS, merge="m", inputs=inputs, source="failure"), Unusable)


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("# A", "# A\n"),
        ("# A\r\n- b\r\n", "# A\n- b\n"),
        ("```markdown\n# A\n```\n", "# A\n"),
        ("```\ncode\n```\nand\n```\nmore\n```", "```\ncode\n```\nand\n```\nmore\n```\n"),
    ],
    ids=["plain", "line ends", "in a fence", "begins and ends with code"],
)
def test_a_new_skill_is_taken_out_of_its_wrapping(written: str, text: str) -> None:
    """One line break at its end."""
    reply = rewritten(written)
    assert (reply.text, reply.changes) == (text, ("a", "b"))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "written",
    ["", "…", None, ["# A"], f"{SLOW_START}\nall\n{SLOW_END}", "---\nname: a\n---\n", "```md\n---\na: b\n---\n```"],
)
def test_a_new_skill_needs_a_text_of_its_own(written: object) -> None:
    """Beside parts that it may not write."""
    assert isinstance(rewritten(written), Unusable)


@given(OBJECTS)
def test_no_reply_breaks_a_reader(value: object) -> None:
    """Whatever JSON it is."""
    text = json.dumps(value)
    some = {"E1": Suggestion(id="p#1", kind="add_rule", instruction="x")}
    drafts = {"E1": Draft(id="p#1", text="# A\n")}
    read_patch(text, of=SUGGESTIONS, patch="p", kind="failure", support=1, most=2)
    read_merge(text, of=SUGGESTIONS, merge="m", inputs=some, source="failure")
    read_patch(text, of=DRAFTS, patch="p", kind="failure", support=1, most=2)
    read_merge(text, of=DRAFTS, merge="m", inputs=drafts, source="failure")
    read_rewrite(text)
