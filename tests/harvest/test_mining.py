"""Which requests become candidates, in which groups, with which checks; what a correction is good for."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from skillopt_es.harvest.mining import Candidate, candidates
from skillopt_es.ports import Conversation, ToolUse, Turn

NOTE = "Write a release note for version 2.0 of the billing service"


def mined(*talks: Sequence[tuple[str, str]], tools: tuple[str, ...] = ()) -> tuple[Candidate, ...]:
    """The candidates of conversations of (asked, answered)."""
    used = tuple(ToolUse(name=name) for name in tools)
    return candidates(
        Conversation(
            agent="claude",
            id=str(number),
            folder="",
            when="",
            turns=tuple(Turn(asked=asked, answered=answered, tools=used) for asked, answered in talk),
        )
        for number, talk in enumerate(talks)
    )


def test_a_request_that_was_answered_is_a_candidate() -> None:
    """Accepted, where the person went on without a correction."""
    [found] = mined([(NOTE, "# 2.0"), ("thanks, perfect", "You're welcome.")])
    assert (found.asked, found.answered, found.accepted, found.rubric) == (NOTE, "# 2.0", True, ())
    assert [(seen.agent, seen.conversation, seen.turn) for seen in found.seen] == [("claude", "0", 1)]


def test_a_correction_becomes_a_line_of_the_rubric() -> None:
    """And the answer that counts is the one after it."""
    [found] = mined([(NOTE, "# 2.0"), ("No, you forgot the heading 'Fixed'", "# 2.0\n## Fixed")])
    assert (found.accepted, found.answered) == (False, "# 2.0\n## Fixed")
    assert found.rubric == ("No, you forgot the heading 'Fixed'",)
    assert found.checks == ({"check": "section_contains", "section": "Fixed"},)


@pytest.mark.parametrize(
    "asked",
    [
        "yes, do it",
        "/clear",
        "go on",
        "commit this",
        "Fix it",
        "and now do the same for the other file",
        "thanks a lot!",
    ],
)
def test_small_talk_and_what_leans_on_something_before_is_none(asked: str) -> None:
    """Nobody could do it as a task of its own."""
    assert [found.asked for found in mined([(NOTE, "# 2.0"), (asked, "Done.")])] == [NOTE]


def test_a_request_without_an_answer_is_none() -> None:
    """It was broken off."""
    assert mined([(NOTE, "")]) == ()


def test_requests_alike_are_of_one_kind() -> None:
    """Those asked most often first; the very same words are one candidate, seen twice."""
    other = "Translate the menu of the canteen into French"
    found = mined([(other, "Le menu")], [(NOTE, "a")], [(NOTE.replace("2.0", "2.1"), "b")], [(NOTE, "c")])
    assert [(each.kind, len(each.seen)) for each in found] == [
        ("release-note-version", 2),
        ("release-note-version", 1),
        ("translate-menu-canteen", 1),
    ]


@pytest.mark.parametrize(
    ("asked", "checks"),
    [
        (
            'List the risks, begin with "Risks:" and mention "budget"',
            [("starts_with", "Risks:"), ("contains", "budget")],
        ),
        ('Write a polite answer and do not use the word "unfortunately"', [("lacks", "unfortunately")]),
        ("Summarize the meeting in at most 50 words please", [("at_most", 50)]),
        ("Give me the address as JSON with street and town", [("is_json", None)]),
        ("Draft the minutes with an Actions section at the end", [("section_contains", "Actions")]),
        ("Explain how tides work to a child", []),
    ],
)
def test_checks_are_what_the_wording_asks_for(asked: str, checks: list[tuple[str, object]]) -> None:
    """In so many words; nothing is guessed."""
    [found] = mined([(asked, "…")])
    names = ("text", "section", "count")
    said = [(each["check"], next((each[name] for name in names if name in each), None)) for each in found.checks]
    assert said == checks


def test_a_tool_that_was_called_every_time_is_a_check() -> None:
    """Once is no evidence."""
    assert mined([(NOTE, "a")], tools=("search",))[0].checks == ()
    [twice] = mined([(NOTE, "a")], [(NOTE, "b")], tools=("search",))
    assert twice.checks == ({"check": "tool_called", "name": "search"},)


def test_nothing_private_is_left_in_a_candidate() -> None:
    """Neither in the request nor in the answer nor in a correction."""
    [found] = mined([(f"{NOTE}, mail it to a@b.cc", "sent to a@b.cc"), ("No, to c@d.ee please", "sent to c@d.ee")])
    assert "@" not in repr(found)
    assert found.private == {"email": 3}
