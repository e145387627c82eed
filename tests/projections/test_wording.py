"""Where a merge does not say what it used, each proposal goes to one that is worded like it, or to none."""

from __future__ import annotations

from skillopt_es.events.values import Draft, Edit, Suggestion
from skillopt_es.projections.wording import by_wording, same_words


def adds(name: str, content: str, *, op: str = "append", target: str = "") -> Edit:
    """An edit that adds something."""
    return Edit(id=name, op=op, content=content, target=target)  # type: ignore[arg-type]


def test_the_same_words_match_first_wherever_they_stand() -> None:
    """White space and the place of insertion do not matter; the first of two outputs of the same words counts."""
    inputs = [adds("a", "- Give dates as  YYYY-MM-DD."), adds("b", "- Say it.", op="insert_after", target="# Rules")]
    outputs = [adds("x", "- Say it."), adds("y", "- Give dates as YYYY-MM-DD."), adds("z", "- Say it.")]
    assert by_wording(inputs, outputs) == {"a": "y", "b": "x"}


def test_other_words_match_by_the_rare_ones() -> None:
    """What nearly all proposals say tells nothing; what few say does."""
    inputs = [
        adds("a", "- Always answer dates in the form YYYY-MM-DD"),
        adds("b", "- Always answer amounts in the form of the question, with the currency"),
        adds("c", "- Always answer names in the form given name, family name"),
    ]
    outputs = [
        adds("x", "- Answer with the currency where amounts are asked for"),
        adds("y", "- Write all dates as YYYY-MM-DD"),
    ]
    assert by_wording(inputs, outputs) == {"a": "y", "b": "x"}


def test_what_shares_too_little_matches_nothing() -> None:
    """One word in common is no origin."""
    inputs = [adds("a", "- Round percentages to one decimal"), adds("b", "- Keep quotation marks in titles")]
    assert by_wording(inputs, [adds("x", "- Think twice about what one was asked and read it again")]) == {}


def test_what_removes_is_never_taken_for_what_adds() -> None:
    """However much the words agree."""
    gone = Edit(id="a", op="delete", target="- Round percentages to one decimal")
    assert by_wording([gone], [adds("x", "- Round percentages to one decimal")]) == {}
    assert by_wording([gone], [adds("x", "-"), Edit(id="y", op="delete", target=gone.target)]) == {"a": "y"}


def test_suggestions_and_drafts_match_as_edits_do() -> None:
    """Each by what it says."""
    suggestions = [Suggestion("a", "add_rule", "Say dates as YYYY-MM-DD", title="dates")]
    merged = [Suggestion("x", "add_rule", "Be brief"), Suggestion("y", "revise_rule", "All dates: YYYY-MM-DD")]
    assert by_wording(suggestions, merged) == {"a": "y"}
    assert by_wording([Draft("a", "# Skill\n\n- one\n")], [Draft("x", "# Skill\n\n- one\n- two\n")]) == {"a": "x"}
    assert same_words(Draft("a", "# S\n")) == same_words(Draft("b", "#  S"))
