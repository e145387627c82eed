"""A whole skill comes out of a reply, without what models wrap it in."""

from __future__ import annotations

import json

import pytest

from skillopt_es.replies.json_reader import Unusable
from skillopt_es.replies.rewrites import read_rewrite
from skillopt_es.skill.regions import SLOW_END, SLOW_START


def rewritten(text: object) -> object:
    """Reads a rewrite."""
    return read_rewrite(json.dumps({"new_skill": text, "change_summary": ["a", "", 3, "b"]}))


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
