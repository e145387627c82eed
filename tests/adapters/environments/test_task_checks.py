"""The grader `checks`: each kind met and not met, partial credit, and what is refused."""

from __future__ import annotations

import asyncio

import pytest

from skillopt_es.adapters.environments.tasks.checks import read_checks
from skillopt_es.adapters.environments.tasks.verdicts import Attempt, Verdict
from skillopt_es.events.values import Json

NOTE = "# 2.0\n\nShort.\n\n## Fixed\n\n- the login\n\n## Known issues\n\n**Thanks**\nto all\n"


def graded(answer: str, *checks: dict[str, Json], steps: tuple[dict[str, Json], ...] = ()) -> Verdict:
    """The verdict on an answer."""

    async def nobody(*words: object, **more: object) -> object:
        raise AssertionError

    attempt = Attempt(answer=answer, ask=nobody, trajectory=steps)  # type: ignore[arg-type]
    return asyncio.run(read_checks([*checks])(attempt))


@pytest.mark.parametrize(
    ("check", "note"),
    [
        ({"check": "contains", "text": "THE  login"}, ""),
        ({"check": "contains", "text": "logout"}, "'logout' is missing"),
        ({"check": "lacks", "text": "log"}, ""),
        ({"check": "lacks", "text": "short"}, "it says 'short'"),
        ({"check": "starts_with", "text": "# 2.0"}, ""),
        ({"check": "starts_with", "text": "Short"}, "it does not begin with 'Short'"),
        ({"check": "ends_with", "text": "all"}, ""),
        ({"check": "ends_with", "text": "."}, "it does not end with '.'"),
        ({"check": "section_contains", "section": "fixed"}, ""),
        ({"check": "section_contains", "section": "Thanks", "text": "to all"}, ""),
        ({"check": "section_contains", "section": "2.0", "text": "login"}, ""),
        ({"check": "section_contains", "section": "Fixed", "text": "to all"}, "the section 'Fixed' lacks 'to all'"),
        ({"check": "section_contains", "section": "Added"}, "the section 'Added' is missing"),
        ({"check": "at_most", "count": 15, "of": "words"}, ""),
        ({"check": "at_most", "count": 6, "of": "lines"}, "it has 7 lines, and 6 are allowed"),
        ({"check": "at_least", "count": 6, "of": "lines"}, ""),
        ({"check": "at_least", "count": 99, "of": "words"}, "it has 14 words, and 99 are needed"),
        ({"check": "matches", "pattern": "## F[a-z]+d"}, ""),
        ({"check": "matches", "pattern": "[0-9]{4}"}, "nothing in it matches '[0-9]{4}'"),
        ({"check": "matches", "pattern": "(o+)+x"}, "nothing in it matches '(o+)+x'"),
        ({"check": "is_json"}, "it is not JSON"),
        ({"check": "tool_called", "name": "Read"}, "Read was not called"),
    ],
)
def test_a_check_is_met_or_says_what_is_wrong(check: dict[str, Json], note: str) -> None:
    """Case and spacing do not count where words are looked for."""
    assert graded(NOTE, check) == Verdict(float(not note), float(not note), note)


def test_a_heading_with_nothing_below_it_is_no_section() -> None:
    """It is said to be empty."""
    assert graded("## Fixed\n\n## Added\n- x", {"check": "section_contains", "section": "Fixed"}).note == (
        "the section 'Fixed' is empty"
    )


@pytest.mark.parametrize("answer", ['{"a": 1}', '```json\n{"a": 1}\n```', "[]"])
def test_json_may_stand_in_a_fence(answer: str) -> None:
    """Alone."""
    assert graded(answer, {"check": "is_json"}).hard == 1


def test_an_agents_steps_say_which_tools_it_called() -> None:
    """What it says is no call."""
    called, said = {"kind": "tool", "text": 'Read {"path": "a"}'}, {"kind": "message", "text": "I would Read it"}
    check: dict[str, Json] = {"check": "tool_called", "name": "Read"}
    assert graded("x", check, steps=(called,)).hard == 1
    assert graded("x", check, steps=(said,)).hard == 0


def test_partial_credit_is_the_share_of_checks_that_are_met() -> None:
    """And solved is all of them."""
    yes: dict[str, Json] = {"check": "contains", "text": "login"}
    no: dict[str, Json] = {"check": "contains", "text": "logout"}
    assert graded(NOTE, yes, no, yes, yes) == Verdict(0.0, 0.75, "'logout' is missing")


@pytest.mark.parametrize(
    ("checks", "said"),
    [
        (None, "must be a list of checks"),
        ([], "must be a list of checks"),
        ([{"check": "nothing"}], "must be checks of these kinds: contains"),
        ([{"check": "contains"}], "has a contains whose text is not a text"),
        ([{"check": "contains", "text": "a", "words": 1}], "has a contains with 'words', which it does not know"),
        ([{"check": "at_most", "count": 0, "of": "words"}], "count is not a whole number above 0"),
        ([{"check": "at_most", "count": 5, "of": "pages"}], "has an at_most of none of these: words"),
    ],
)
def test_what_is_no_check_is_refused(checks: Json, said: str) -> None:
    """Before anything is asked."""
    with pytest.raises(ValueError, match=said):
        read_checks(checks)
