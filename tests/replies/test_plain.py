"""Replies in plain text become the edits that JSON would have given."""

from __future__ import annotations

import json

from skillopt_es.replies.plain import as_json

REPLY = """The year is cut.

EDIT
FOR: train-1, train-2
WHY: the year has two digits
TEXT:
- Login name: last.f99
  (the "year" in two digits)

**EDIT**
**FOR:** train-3
IN PLACE OF: - Answer in capitals.
TEXT: - Answer as it stands.
"""


def edits(reply: str) -> list[dict[str, object]]:
    """The edits of a reply."""
    found = json.loads(as_json(reply))
    assert isinstance(found["edits"], list)
    return found["edits"]


def test_edits_are_read_block_by_block() -> None:
    """With quotes and line breaks as they stand, and a replaced line by its target."""
    first, second = edits(REPLY)
    assert first["items"] == ["train-1", "train-2"]
    assert first["hypothesis"] == "the year has two digits"
    assert (first["op"], first["content"]) == ("append", '- Login name: last.f99\n  (the "year" in two digits)')
    assert (second["op"], second["target"]) == ("replace", "- Answer in capitals.")
    assert (second["items"], second["content"]) == (["train-3"], "- Answer as it stands.")


def test_a_reply_without_any_of_the_words_is_one_rule() -> None:
    """Its fence is not part of it."""
    [edit] = edits("```\n- last name first\n- then the year\n```")
    assert (edit["op"], edit["content"], edit["items"]) == ("append", "- last name first\n- then the year", [])


def test_json_stays_json() -> None:
    """Some models answer so whatever they are asked for."""
    reply = '{"edits": []}'
    assert as_json(reply) == reply
