"""What is refused before anything is tried, and which form of reply is asked for."""

from __future__ import annotations

import pytest
from attrs import evolve as replace

from skillopt_es.algorithms.search.refusing import refusal, refused_before
from skillopt_es.algorithms.search.state import Earned, ReplyForm, Search, Tried, better_form, names_type
from skillopt_es.events.values import Edit
from skillopt_es.prompts import system_prompt

PROMPT = system_prompt("search")


SKILL = "Write the name as it is in the list of guests."


def said(content: str) -> str:
    """Why an edit of this content is no rule."""
    return refusal(Edit(id="p#2", op="append", content=content), prompt=PROMPT, skill=SKILL)


OLD = Edit(id="p#1", op="append", content="- Write it as `a;b`.")


@pytest.mark.parametrize(
    ("edit", "again"),
    [
        (OLD, True),
        (replace(OLD, id="p#9", content="* Write it as  `a;b`"), True),
        (replace(OLD, op="insert_after", target="# Rules"), True),
        (replace(OLD, content="- Write it as `a,b`."), False),
        (replace(OLD, content="- Write it as `A;b`."), False),
        (replace(OLD, op="replace", target="- Write it."), False),
        (replace(OLD, op="delete", target=OLD.content, content=""), False),
        (replace(OLD, file="notes.md"), False),
    ],
    ids=["the same", "another list sign", "elsewhere", "another sign", "another case", "replaces", "deletes", "file"],
)
def test_what_was_refused_is_not_tried_again(edit: Edit, *, again: bool) -> None:
    """Wherever it would stand; of a form each sign counts."""
    assert bool(refused_before(edit, [Tried(step=1, edit=OLD, why="no good")])) == again


def test_an_edit_is_given_a_second_chance_and_no_third() -> None:
    """For other tasks than those that it was tried on, or where the gate refused it in company."""
    tried = Tried(step=1, edit=replace(OLD, claims=("t1", "t2")), why="no good")
    assert refused_before(replace(OLD, claims=("t2",)), [tried])
    other = replace(OLD, claims=("t2", "t3"))
    assert not refused_before(other, [tried])
    assert refused_before(other, [tried, replace(tried, edit=other)])
    in_company = replace(tried, alone=False)
    assert not refused_before(tried.edit, [in_company])
    assert refused_before(tried.edit, [in_company, in_company])


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


@pytest.mark.parametrize(
    ("content", "kind", "named"),
    [
        ("Give a date as ISO.", "date", True),
        ("Date: ISO.", "date", True),
        ("Update the list.", "date", False),
        ("Say what the candidate wants.", "date", False),
        ("Grant an early refund.", "early_refund", True),
        ("Grant a refund early.", "early_refund", False),
        ("Anything.", "", False),
        ("Anything.", "--", False),
    ],
)
def test_an_edit_names_a_type_by_whole_words(content: str, kind: str, *, named: bool) -> None:
    """A type that is a piece of another word is not meant."""
    assert names_type(content, kind) == named
