"""What optimizers reply about reminder notes: typed, within limits, and only where it was asked for."""

from __future__ import annotations

import json

import pytest

from skillopt_es.replies.json_reader import Unusable
from skillopt_es.replies.notes import ConsolidationReply, read_consolidation
from skillopt_es.replies.proposals import PatchReply, read_patch
from skillopt_es.skill.appendix import MOST_CHARACTERS

EDIT = {"op": "append", "target": "", "content": "- x"}


def patch(reply: object, *, most_notes: int = 3) -> PatchReply | Unusable:
    """An analyst's reply, read."""
    return read_patch(json.dumps(reply), patch="p", kind="failure", support=2, most=4, most_notes=most_notes)


@pytest.mark.parametrize(
    ("said", "notes"),
    [
        (["one", "two"], ("one", "two")),
        ("one", ("one",)),
        ([{"note": "one"}, {"content": " two "}], ("one", "two")),
        (["", "  ", "one"], ("one",)),
        (["1", "2", "3", "4"], ("1", "2", "3")),
        (["\ud800x"], ("\ufffdx",)),
        (None, ()),
        ([], ()),
    ],
)
def test_notes_are_read_from_what_models_write(said: object, notes: tuple[str, ...]) -> None:
    """A list, one text, or objects; blank ones are left out."""
    reply = patch({"patch": {"edits": [EDIT]}, "appendix_notes": said})
    assert isinstance(reply, PatchReply)
    assert reply.notes == notes
    assert len(reply.edits) == 1


@pytest.mark.parametrize("said", [[7], [None], [["one"]], [{"text": "one"}], {"a": 1}, True, 7])
def test_notes_that_are_no_texts_make_a_reply_unusable(said: object) -> None:
    """So that the analyst is asked again, with the reason."""
    reply = patch({"patch": {"edits": [EDIT]}, "appendix_notes": said})
    assert isinstance(reply, Unusable)
    assert "appendix_notes" in reply.why


def test_a_reply_of_notes_alone_is_one() -> None:
    """Without a patch, with an empty one, and with the notes inside it."""
    alone = ["one"]
    for reply in (
        {"appendix_notes": alone},
        {"patch": None, "appendix_notes": alone},
        {"patch": {}, "appendix_notes": alone},
        {"patch": {"appendix_notes": alone}},
    ):
        found = patch(reply)
        assert isinstance(found, PatchReply)
        assert (found.notes, found.edits) == (("one",), ())
    assert isinstance(patch({"appendix_notes": []}), Unusable)
    assert isinstance(patch({"patch": None, "appendix_notes": alone}, most_notes=0), Unusable)


def test_the_cause_of_a_finding_is_read_in_other_words() -> None:
    """And is empty when it is none of the two."""
    causes = ["SKILL_DEFECT", "execution lapse", "a defect", "", 7, None]
    rows = [{"failure_type": "t", "count": 1, "description": "d", "cause": cause} for cause in causes]
    reply = patch({"failure_summary": rows, "patch": {"edits": []}})
    assert isinstance(reply, PatchReply)
    assert [pattern.cause for pattern in reply.patterns] == ["defect", "lapse", "defect", "", "", ""]


def test_what_was_not_asked_for_is_not_read() -> None:
    """Neither notes nor causes, whatever they are."""
    row = {"failure_type": "t", "count": 1, "description": "d", "cause": "EXECUTION_LAPSE"}
    reply = patch({"failure_summary": [row], "patch": {"edits": []}, "appendix_notes": [7]}, most_notes=0)
    assert isinstance(reply, PatchReply)
    assert (reply.notes, reply.patterns[0].cause) == ((), "")


BEFORE = ("one", "two", "three")


@pytest.mark.parametrize("said", [["- One", "one.", "<!-- APPENDIX_END -->two"], "One and two", [{"note": "x"}]])
def test_a_consolidated_list_is_cleaned(said: object) -> None:
    """As every note is; what is left are fewer notes."""
    reply = read_consolidation(json.dumps({"reasoning": "r", "appendix_notes": said}), before=BEFORE)
    assert isinstance(reply, ConsolidationReply)
    assert 0 < len(reply.notes) < len(BEFORE)
    assert "APPENDIX" not in "".join(reply.notes)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ([], "fewer notes"),
        (["…", "# "], "fewer notes"),
        (["a", "b", "c"], "fewer notes"),
        (["x" * (MOST_CHARACTERS + 1)], "characters"),
        ([3], "list of texts"),
        (None, "fewer notes"),
    ],
)
def test_a_list_that_is_no_shorter_cannot_be_used(said: object, why: str) -> None:
    """The reason is one for the model."""
    reply = read_consolidation(json.dumps({"appendix_notes": said}), before=BEFORE)
    assert isinstance(reply, Unusable)
    assert why in reply.why
