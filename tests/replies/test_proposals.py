"""Edits, suggestions and drafts become typed values; what cannot is refused in words that help the model."""

from __future__ import annotations

import json
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_es.events.values import Draft, Edit, SkillTree, Suggestion
from skillopt_es.replies.json_reader import Unusable
from skillopt_es.replies.proposals import (
    DRAFTS,
    EDITS,
    SUGGESTIONS,
    Kind,
    PatchReply,
    merge_schema,
    naming_files,
    not_empty,
    patch_schema,
    placed_in,
    read_merge,
    read_patch,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
KEYS = ("patch", "revise_suggestions", "skill_candidates", "new_skill", "type", "instruction", "from", "change_summary")
OBJECTS = st.dictionaries(
    st.sampled_from(KEYS), JSON | st.lists(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=4), max_size=3)
)


def patch(value: object, most: int = 4) -> object:
    """Reads a patch of a group of three failures."""
    return read_patch(json.dumps(value), patch="p", kind="failure", support=3, most=most)


def edits(*rows: object) -> dict[str, object]:
    """A patch reply."""
    return {"patch": {"reasoning": "r", "edits": list(rows)}}


def test_a_patch_gives_edits_with_their_ancestry() -> None:
    """Ids count within the patch; support is the real size of the group, not what the model claims."""
    reply = patch({"batch_size": "many", **edits({"op": "append", "content": "x"}, {"op": "delete", "target": "y"})})
    assert [edit.id for edit in reply.edits] == ["p#1", "p#2"]  # type: ignore[attr-defined]
    assert {(edit.support, edit.origins, edit.source) for edit in reply.edits} == {(3, ("p",), "failure")}  # type: ignore[attr-defined]


def test_a_patch_is_cut_to_the_number_of_edits_asked_for() -> None:
    """The model cannot propose more than its budget; a budget of 0 leaves none."""
    rows = [{"op": "append", "content": str(number)} for number in range(6)]
    assert len(patch(edits(*rows)).edits) == 4  # type: ignore[attr-defined]
    assert patch(edits(*rows), most=0).edits == ()  # type: ignore[attr-defined]


def test_failure_counts_stay_within_the_group() -> None:
    """A model's count is a claim: at least 1, at most the group's size."""
    rows = [{"failure_type": "a", "count": count, "description": ""} for count in (0, 99, "7", True, 2)]
    reply = patch({"failure_summary": rows, **edits()})
    assert [pattern.count for pattern in reply.patterns] == [1, 3, 1, 1, 2]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"patch": "none"}, "`patch` must be an object"),
        ({"patch": {}}, "`patch.edits` must be a list"),
        (edits("append x"), "each edit must be an object"),
        (edits({"op": "rewrite", "content": "x"}), "`op` must be one of append"),
    ],
)
def test_a_patch_that_cannot_be_used_says_why(value: object, why: str) -> None:
    """Each way to get it wrong has its own sentence."""
    found = patch(value)
    assert isinstance(found, Unusable)
    assert why in found.why


INPUTS = {
    "E1": Edit(id="a#1", op="append", content="x", support=3, source="success"),
    "E2": Edit(id="b#1", op="append", content="x", support=2, source="failure"),
}


def merged(*rows: object) -> tuple[Edit, ...]:
    """The edits of a merge of INPUTS."""
    reply = read_merge(json.dumps({"edits": list(rows)}), merge="m", inputs=INPUTS, source="failure")
    assert not isinstance(reply, Unusable)
    return reply.edits


def test_a_merge_that_throws_everything_away_cannot_be_used() -> None:
    """Whether the proposals help is for the gate to measure."""
    read = partial(read_merge, merge="m", inputs=INPUTS, source="failure")
    found = not_empty(read)('{"reasoning": "they differ", "edits": []}')
    assert isinstance(found, Unusable)
    assert "would throw every proposal away" in found.why


def test_a_merged_edit_keeps_the_edits_it_came_from() -> None:
    """Named labels become origins; unknown and repeated ones are dropped."""
    [edit] = merged({"op": "append", "content": "x", "from": ["E2", "E9", "E2", 5], "support_count": 2})
    assert (edit.origins, edit.origins_assumed, edit.support, edit.source) == (("b#1",), False, 2, "failure")


def test_a_merged_edit_without_named_sources_is_assumed_to_come_from_all() -> None:
    """And the event says that this was assumed."""
    [edit] = merged({"op": "append", "content": "x"})
    assert (edit.origins, edit.origins_assumed, edit.support) == (("a#1", "b#1"), True, 5)


@pytest.mark.parametrize(("said", "support"), [(99, 5), (0, 1), (-3, 1), (True, 5), ("4", 5), (4, 4)])
def test_support_stays_within_what_is_possible(said: object, support: int) -> None:
    """A merge cannot have more trajectories behind it than its inputs have together."""
    [edit] = merged({"op": "append", "content": "x", "from": ["E1", "E2"], "support_count": said})
    assert edit.support == support


def suggestions(*rows: object, most: int = 4) -> object:
    """Reads an analyst's suggestions."""
    text = json.dumps({"patch": {"reasoning": "r", "revise_suggestions": list(rows)}})
    return read_patch(text, of=SUGGESTIONS, patch="p", kind="failure", support=3, most=most)


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


@given(st.text())
def test_no_text_breaks_a_reader(text: str) -> None:
    """Whatever a model says is a value or Unusable."""
    read_patch(text, patch="p", kind="failure", support=1, most=1)
    read_merge(text, merge="m", inputs=INPUTS, source="failure")


# --- what all kinds share ------------------------------------------------------------------------------------------

ROWS = {
    "edits": {"op": "append", "content": "x"},
    "revise_suggestions": {"instruction": "x"},
    "skill_candidates": {"new_skill": "# A"},
}
KINDS = [pytest.param(kind, id=kind.rows) for kind in (EDITS, SUGGESTIONS, DRAFTS)]
NOTES = ["one"]


def parsed(value: object, of: Kind, *, most_notes: int = 0) -> PatchReply | Unusable:
    """Reads a patch of this kind."""
    return read_patch(json.dumps(value), of=of, patch="p", kind="failure", support=3, most=2, most_notes=most_notes)


def combined(rows: object, of: Kind) -> PatchReply | Unusable:
    """Reads a merge of two proposals of this kind."""
    return read_merge(json.dumps({of.rows: rows}), of=of, merge="m", inputs=INPUTS, source="success")


def said(found: object) -> str:
    """Why a reply cannot be used; nothing where it can."""
    return found.why if isinstance(found, Unusable) else ""


@pytest.mark.parametrize(("of", "result"), [(EDITS, "edits"), (SUGGESTIONS, "suggestions"), (DRAFTS, "draft")])
def test_a_reply_says_what_there_is_of_it(of: Kind, result: str) -> None:
    """Its proposals are of its own kind alone; without any there may be notes."""
    reply = parsed({of.rows: [ROWS[of.rows]]}, of)
    assert isinstance(reply, PatchReply)
    assert reply.result == result
    assert [len(each) for each in (reply.edits, reply.suggestions, reply.drafts)] == [
        int(of is each) for each in (EDITS, SUGGESTIONS, DRAFTS)
    ]
    for notes, nothing in ((NOTES, "notes"), ([], "nothing")):
        reply = parsed({of.rows: [], "appendix_notes": notes}, of, most_notes=1)
        assert isinstance(reply, PatchReply)
        assert reply.result == nothing


@pytest.mark.parametrize("of", KINDS)
def test_a_patch_and_a_merge_hold_a_list(of: Kind) -> None:
    """A whole skill is a list, too, of one; where something is no JSON at all, that is said first."""
    one, empty = (" with one object in it", " (an empty one if nothing should change)") if of.whole else ("", "")
    whole = " (an empty one if nothing should change)"
    assert said(parsed({of.rows: "x"}, of)) == f"`patch.{of.rows}` must be a list{one}{whole}"
    assert said(combined("x", of)) == f"`{of.rows}` must be a list{one}{empty}"
    for reply in (parsed("x", of), combined("x", of)):
        assert isinstance(reply, Unusable)
    assert "no JSON object" in said(read_patch("", of=of, patch="p", kind="failure", support=1, most=1))
    assert "no JSON object" in said(read_merge("", of=of, merge="m", inputs=INPUTS, source="failure"))


@pytest.mark.parametrize("of", KINDS)
def test_a_merge_of_rows_that_do_nothing_cannot_be_used(of: Kind) -> None:
    """An empty one is no such merge, but for whole skills: one of them has to be there."""
    assert said(combined([{"op": "append", "content": "…"}], of)) == of.useless
    assert said(combined([], of)) == ("`skill_candidates` must hold one draft" if of.whole else "")
    assert said(parsed({of.rows: [{}]}, of)) == (
        "no object of `patch.skill_candidates` has a `new_skill` with a text of its own" if of.whole else ""
    )


@pytest.mark.parametrize("of", [EDITS, SUGGESTIONS])
def test_a_merge_has_at_most_twice_as_many_as_were_proposed(of: Kind) -> None:
    """Each may name all of them."""
    rows = [{"op": "append", "content": str(number), "instruction": str(number)} for number in range(5)]
    assert said(combined(rows[:4], of)) == ""
    assert "merge them into fewer" in said(combined(rows, of))
    assert "5" in said(combined(rows, of))


def test_of_whole_skills_the_first_is_merged_of_any_number() -> None:
    """The others are not looked at, however many they are."""
    reply = combined([{"new_skill": f"# {number}"} for number in range(9)], DRAFTS)
    assert isinstance(reply, PatchReply)
    assert [each.text for each in reply.drafts] == ["# 0\n"]


def test_each_row_is_an_object() -> None:
    """Of whole skills the others are passed over."""
    assert "each edit must be an object" in said(combined(["x"], EDITS))
    assert "each suggestion must be an object" in said(parsed({"revise_suggestions": ["x"]}, SUGGESTIONS))
    assert parsed({"skill_candidates": ["x", ROWS["skill_candidates"]]}, DRAFTS) == parsed(
        {"skill_candidates": [ROWS["skill_candidates"]]}, DRAFTS
    )


@pytest.mark.parametrize(
    ("row", "stays"),
    [
        ({"op": "replace", "target": "x", "content": "x"}, False),
        ({"op": "replace", "target": "x", "content": "y"}, True),
        ({"op": "replace", "target": "x", "content": "…"}, True),
        ({"op": "replace"}, False),
        ({"op": "delete", "target": "x"}, True),
        ({"op": "append", "target": "x", "content": "…"}, False),
        ({"op": "append", "target": "x", "content": "x"}, True),
        ({"content": "x"}, True),
    ],
)
def test_an_edit_that_changes_nothing_is_left_out(row: dict[str, str], stays: bool) -> None:
    """What would be as it was, and what says nothing."""
    assert len(patch(edits(row)).edits) == stays  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("row", "source"),
    [
        ({"from": ["E1"]}, "success"),
        ({"from": ["E2"]}, "failure"),
        ({"from": ["E1", "E2"]}, "failure"),
        ({"from": [["E2"], "E1"]}, "success"),
        ({"from": ["E1"], "source_type": "failure"}, "failure"),
        ({"from": ["E2"], "source_type": "success"}, "success"),
        ({"from": ["E2"], "source_type": "both"}, "failure"),
    ],
)
def test_a_merged_proposal_is_of_failures_where_one_of_its_sources_is(row: dict[str, object], source: str) -> None:
    """Unless it says otherwise; of successes alone it is what the merge is of."""
    reply = combined([{"op": "append", "content": "x", **row}], EDITS)
    assert isinstance(reply, PatchReply)
    assert [each.source for each in reply.edits] == [source]


def test_an_edit_says_for_which_items_it_is_and_why() -> None:
    """In one line of at most 300 characters; items that were not shown are none of it."""
    row = {"op": "append", "content": "x", "items": ["a", "z", "a"], "hypothesis": f"so\n it {'is ' * 200}"}
    reply = read_patch(json.dumps(edits(row)), patch="p", kind="failure", support=3, most=4, claimable=("a", "b"))
    assert isinstance(reply, PatchReply)
    [edit] = reply.edits
    assert (edit.claims, edit.support, len(edit.hypothesis)) == (("a",), 1, 300)
    assert edit.hypothesis.startswith("so it is")


def test_notes_and_causes_are_read_where_one_note_is_asked_for() -> None:
    """And not where nothing is said of them."""
    value = {"failure_summary": [{"failure_type": "a", "cause": "lapse"}], "appendix_notes": NOTES, **edits()}
    asked, plain = parsed(value, EDITS, most_notes=1), patch(value)
    assert isinstance(asked, PatchReply)
    assert isinstance(plain, PatchReply)
    assert (asked.notes, asked.patterns[0].cause) == (("one",), "lapse")
    assert (plain.notes, plain.patterns[0].cause) == ((), "")


def test_patterns_have_a_name_of_their_own() -> None:
    """What has none, or is no object, is no pattern."""
    rows = ["x", {"count": 2}, {"failure_type": "a"}]
    reply = patch({"failure_summary": rows, **edits()})
    assert [pattern.type for pattern in reply.patterns] == ["a"]  # type: ignore[attr-defined]
    assert patch({"failure_summary": {"failure_type": "a"}, **edits()}).patterns == ()  # type: ignore[attr-defined]


# --- targets that are not there, and files ---------------------------------------------------------------------------

TREE = SkillTree(main="SKILL.md", files={"SKILL.md": "# A\n- keep\n"})


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([], ""),
        ([{"op": "delete", "target": "gone"}], "the skill does not contain 'gone', the `target` of a `delete`"),
        ([{"op": "replace", "content": "x"}], "the skill does not contain ''"),
        ([{"op": "delete", "target": "gone"}, {"op": "delete", "target": "- keep"}], ""),
        ([{"op": "delete", "target": "- keep"}, {"op": "delete", "target": "gone"}], ""),
        ([{"op": "append", "content": "x"}], ""),
        (["x"], "each edit must be an object"),
    ],
)
def test_a_patch_cannot_be_used_where_none_of_its_targets_is_in_the_skill(rows: list[object], why: str) -> None:
    """A single one that can be applied is enough; what cannot be read has its own reason."""
    read = placed_in(TREE, partial(read_patch, patch="p", kind="failure", support=3, most=4))
    found = read(json.dumps(edits(*rows)))
    assert said(found).startswith(why)
    assert isinstance(found, Unusable) == bool(why)
    if not why:
        assert len(found.edits) == len(rows)  # type: ignore[union-attr]


def test_a_merge_that_cannot_be_read_keeps_its_reason() -> None:
    """And one that holds something is what it was."""
    read = not_empty(partial(read_merge, merge="m", inputs=INPUTS, source="failure"))
    assert said(read("")) == "the reply contains no JSON object at all"
    assert len(read('{"edits": [{"content": "x"}]}').edits) == 1  # type: ignore[union-attr]


@pytest.mark.parametrize("of", KINDS)
def test_a_schema_has_what_the_reader_looks_for(of: Kind) -> None:
    """Of failures their patterns, with a cause where notes are asked for; a merge has no patch around its list."""
    failed, passed = patch_schema(of, "failure"), patch_schema(of, "success")
    assert [*failed["properties"]] == ["failure_summary", "patch"]  # type: ignore[misc]
    assert [*passed["properties"]] == ["success_patterns", "patch"]  # type: ignore[misc]
    for schema in (failed, passed):
        assert of.rows in json.dumps(schema)
        assert "cause" not in json.dumps(schema)
    noted = patch_schema(of, "failure", noted=True)
    assert [*noted["properties"]] == ["failure_summary", "patch", "appendix_notes"]  # type: ignore[misc]
    assert "EXECUTION_LAPSE" in json.dumps(noted)
    assert [*merge_schema(of)["properties"]] == ["reasoning", of.rows]  # type: ignore[misc]


def test_an_edit_names_its_file_where_there_are_several() -> None:
    """Each edit of a schema, first of all; anything else stays as it is, and so does the schema of a single file."""
    schema = patch_schema(EDITS, "failure")
    two = SkillTree(main="SKILL.md", files={"SKILL.md": "", "b.md": ""})
    assert naming_files(schema, TREE) == schema
    named = naming_files(schema, two)
    assert json.dumps(named).count('"file"') == 2  # a property, and required
    row = named["properties"]["patch"]["properties"]["edits"]["items"]  # type: ignore[index, call-overload]
    assert [*row["properties"]] == row["required"] == ["file", "op", "target", "content"]  # type: ignore[index, call-overload]
    without = json.loads(json.dumps(named).replace('"file": {"type": "string"}, ', "").replace('"file", ', ""))
    assert without == schema
    assert naming_files(patch_schema(SUGGESTIONS, "failure"), two) == patch_schema(SUGGESTIONS, "failure")
    assert naming_files({"enum": ["op", 1]}, two) == {"enum": ["op", 1]}
    assert [*naming_files({"properties": {"op": 1, "content": 1}}, two)["properties"]] == ["file", "op", "content"]  # type: ignore[misc]
