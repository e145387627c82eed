"""Proposals, fates and looks at sealed items in a few words."""

from __future__ import annotations

from typing import get_args

import pytest
from attrs import evolve

from skillopt_es.algorithms.search.algorithm import SEARCH
from skillopt_es.engine.algorithms import hand_over
from skillopt_es.events.catalog import Event, RunResumed, RunStarted, RunSteered, SealedTestOpened
from skillopt_es.events.values import Draft, Edit, PatchSource, Proposal, Setting, SkillTree, SplitIds, Suggestion
from skillopt_es.presenting.words import (
    looks_words,
    names,
    progress_words,
    proposal_words,
    short,
    source_words,
    unsaid_words,
)
from skillopt_es.projections.seal import Looks
from skillopt_es.projections.summary import summarize


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
        ("failure", "1 failed task", "2 failed tasks"),
        ("success", "1 solved task", "2 solved tasks"),
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


def progress_of(algorithm: str, *later: Event, most: int | None = None) -> str:
    """What is told of a run of twelve planned steps that has not begun its first."""
    started = RunStarted(
        software="",
        config={"budget": {"max_calls": most}},
        folder="",
        skill=SkillTree(files={}),
        splits=SplitIds((), (), (), {}),
        steps_per_epoch=4,
        total_steps=12,
        algorithm=algorithm,
    )
    return progress_words(summarize([started, *later]))


def test_a_run_that_ends_by_its_calls_is_of_no_number_of_steps() -> None:
    """Whatever its algorithm is called, and whenever the limit was given."""
    hand_over(evolve(SEARCH, name="thrifty"))
    limit, none = Setting(key="budget.max_calls", value=90), Setting(key="budget.max_calls", value=None)
    resumed = RunResumed(software="", overrides=(limit,))
    steered = RunSteered(name="o1", order="budget", by="anna", why="", settings=(none,))
    planned = "step 0 of 12, epoch 0 of 3"
    assert progress_of("thrifty") == planned
    assert progress_of("thrifty", most=60) == "step 0"
    assert progress_of("thrifty", resumed) == "step 0"
    assert progress_of("thrifty", resumed, steered) == planned
    assert progress_of("classic", most=60) == planned
    assert progress_of("not-installed", most=60) == planned
