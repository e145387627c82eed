"""Proposals, fates and looks at sealed items in a few words."""

from __future__ import annotations

from typing import get_args

import pytest

from skillopt_es.events.catalog import SealedTestOpened
from skillopt_es.events.values import Draft, Edit, PatchSource, Proposal, Suggestion
from skillopt_es.presenting.words import looks_words, names, proposal_words, short, source_words, unsaid_words
from skillopt_es.projections.seal import Looks


def test_looks_are_counted_and_named() -> None:
    """Nobody, once, and more often."""
    final = SealedTestOpened(look=1, by="final")
    by_hand = SealedTestOpened(look=2, by="eval", skill="0123456789")
    assert looks_words(Looks(opened=())).startswith("closed")
    assert looks_words(Looks(opened=(final,))) == "the test items were looked at once: final evaluation"
    assert looks_words(Looks(opened=(final, by_hand))).endswith("2 times: final evaluation, eval of skill 01234567")


def test_long_texts_and_lists_are_cut() -> None:
    """A text is put on one line first."""
    assert short("a\n  b") == "a b"
    assert short("x" * 20, 10) == "x" * 9 + "…"
    assert names(["a", "b"], 2) == "a, b"
    assert names(["a", "b", "c"], 2) == "a, b and 1 more"


@pytest.mark.parametrize(
    ("proposal", "said"),
    [
        (Edit("e", op="append", content="be kind"), "append “be kind”"),
        (Edit("e", op="insert_after", target="one", content="two"), "insert after “one”: “two”"),
        (Edit("e", op="replace", target="one", content="two"), "replace “one” by “two”"),
        (Edit("e", op="delete", target="one"), "delete “one”"),
        (Draft("d", text="all new", title="a title"), "a whole text: a title"),
        (Suggestion("s", kind="add_rule", instruction="say why"), "add rule: say why"),
    ],
)
def test_a_proposal_is_one_line(proposal: Proposal, said: str) -> None:
    """Each kind in its own words."""
    assert proposal_words(proposal) == said


def test_merges_that_do_not_say_are_counted() -> None:
    """One note for all."""
    assert unsaid_words(1).startswith("The merge did not say")
    assert unsaid_words(3).startswith("3 merges")


@pytest.mark.parametrize(
    ("source", "one", "many"),
    [
        ("failure", "1 failure", "2 failures"),
        ("success", "1 success", "2 successes"),
        ("examples", "1 worked example", "2 worked examples"),
        ("pruning", "1 line-removal task", "2 line-removal tasks"),
    ],
)
def test_what_proposals_come_from_is_counted(source: PatchSource, one: str, many: str) -> None:
    """The words of the log are not always nouns."""
    assert (source_words(source, 1), source_words(source, 2)) == (one, many)


def test_every_source_has_its_words() -> None:
    """One that the catalogue gets later, too."""
    assert all(source_words(source, 1) for source in get_args(PatchSource))
