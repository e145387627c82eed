"""Replies become typed values; what cannot is refused in words that help the model."""

from __future__ import annotations

import json
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillopt_es.events.values import Edit
from skillopt_es.replies.answers import read_epoch_text, read_ranking
from skillopt_es.replies.json_reader import Unusable
from skillopt_es.replies.proposals import not_empty, read_merge, read_patch


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


def test_a_ranking_takes_valid_indices_once_up_to_the_budget() -> None:
    """Booleans are no indices; out of range, repeated and surplus ones are dropped."""
    reply = read_ranking('{"selected_indices": [true, 7, 2, 2, -1, 0, "1", 1]}', pool=3, budget=2)
    assert reply.chosen == (2, 0)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "text", ['{"selected_indices": []}', '{"selected_indices": [9]}', '{"selected_indices": 1}', "[0]"]
)
def test_a_ranking_without_a_valid_index_is_unusable(text: str) -> None:
    """There is no silent choice."""
    assert isinstance(read_ranking(text, pool=3, budget=2), Unusable)


def test_advice_must_not_be_empty() -> None:
    """A blank guidance is no guidance."""
    assert isinstance(read_epoch_text('{"k": "  "}', key="k"), Unusable)
    assert isinstance(read_epoch_text('{"k": 5}', key="k"), Unusable)
    assert read_epoch_text('{"k": " do "}', key="k").content == "do"  # type: ignore[union-attr]


@given(st.text())
def test_no_reply_makes_a_reader_raise(text: str) -> None:
    """Whatever a model says is a value or Unusable."""
    read_patch(text, patch="p", kind="failure", support=1, most=1)
    read_merge(text, merge="m", inputs=INPUTS, source="failure")
    read_ranking(text, pool=2, budget=1)
    read_epoch_text(text, key="k")
