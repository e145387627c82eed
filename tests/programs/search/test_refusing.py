"""What is refused before anything is tried, and which form of reply is asked for."""

from __future__ import annotations

import pytest

from skillopt_es.events.values import Edit
from skillopt_es.programs.search.refusing import refusal
from skillopt_es.programs.search.state import Earned, ReplyForm, Search, Tried, better_form
from skillopt_es.prompts import system_prompt

PROMPT = system_prompt("search")


def said(content: str, *tried: str, op: str = "append") -> str:
    """Why an edit of this content is refused, after others were."""
    old = [Tried(step=1, edit=Edit(id="p#1", op="append", content=each), why="no good") for each in tried]
    edit = Edit(id="p#2", op=op, content=content)  # type: ignore[arg-type]
    return refusal(edit, prompt=PROMPT, skill="Write the name as it is in the list of guests.", tried=old)


def test_what_was_refused_is_not_tried_again() -> None:
    """In other signs and capitals it is the same; as another kind of edit it is not."""
    assert "refused before" in said("- Write it BIG!", "- write it big")
    assert said("- Write it small", "- write it big") == ""
    assert said("- write it big", "- write it big", op="delete") == ""


@pytest.mark.parametrize("content", ["- a rule\n~~~~ skill", "## Current skill\n- a rule", "# Failed trajectories (3)"])
def test_the_question_is_no_content(content: str) -> None:
    """Nor are its fences and headings."""
    assert "heading or a fence" in said(content)


def test_our_own_prompt_is_no_content() -> None:
    """Eight of its words in a row are no chance; what the skill says already may be said."""
    assert "instructions" in said("- Find out what the agent would have had to know or do.")
    assert said("- Know what the agent would have done, and do it.") == ""
    assert said("- Write the name as it is in the list of guests, and the year.") == ""


@pytest.mark.parametrize(
    ("plain", "usual", "form"),
    [
        (Earned(), Earned(), "json"),
        (Earned(), Earned(2, 1), "json"),
        (Earned(), Earned(2, 0), "text"),
        (Earned(2, 1), Earned(2, 0), "text"),
        (Earned(2, 0), Earned(2, 0), "json"),
        (Earned(2, 0), Earned(4, 0), "text"),
        (Earned(4, 1), Earned(4, 2), "json"),
    ],
)
def test_the_form_that_earns_more_is_asked_for(plain: Earned, usual: Earned, form: ReplyForm) -> None:
    """JSON at first; plain text where that has earned nothing."""
    assert better_form(Search(forms={"text": plain, "json": usual})) == form
