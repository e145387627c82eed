"""A change of what is listed meets training items of which it is known what they should open."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.skill_world import listed, managing, of_type, opened, trained, view
from support.skills import skill

import skillopt_es as so
from skillopt_es.algorithms.skills.candidate import Routing
from skillopt_es.algorithms.skills.state import Key
from skillopt_es.events.catalog import CandidateGated, RolloutCompleted, TriesPlanned

ROUTING = Routing(
    old=frozenset({"trees", "stone"}),
    new=frozenset({"apple", "birch", "stone"}),
    became={"trees": ("apple", "birch")},
)


@pytest.mark.parametrize(
    ("before", "kind", "after", "right"),
    [
        (("trees",), "should", ("birch",), True),
        (("trees",), "should", ("apple", "water"), True),
        (("trees",), "should", (), False),
        (("trees",), "should", ("stone",), False),
        (("stone", "water"), "should", ("stone",), True),
        (("water",), "should-not", ("water",), True),
        (("water",), "should-not", (), True),
        (("water",), "should-not", ("apple", "water"), False),
        ((), "none", (), True),
        ((), "none", ("water",), True),
        ((), "none", ("stone",), False),
    ],
)
def test_what_was_opened_before_says_what_should_be(before: Key, kind: str, after: Key, right: bool) -> None:
    """What opened a changed skill opens what became of it; everything else leaves what is new alone."""
    assert ROUTING.kind(before) == kind
    assert ROUTING.right(before, after) is right


def agent(request: so.ChatRequest) -> str | so.ChatReply:
    """Needs its skill for apples and no skill for birches; promised everything, it opens it for later tasks, too."""
    kind, word = next(each.content for each in request.messages if each.role == "user").split()[-2:]
    have = opened(request)
    fitting = [
        name
        for name, said in listed(request).items()
        if kind in said or ("everything" in said and int(word[1:]) >= len("validation"))
    ]
    if fitting and not have:
        return view(*fitting)
    return f"{word}-{kind[::-1]}" if (kind == "apple") == bool(have) else "wrong"


def described(folder: Path, said: str, **settings: object) -> so.Run:
    """A run whose manager describes its one skill anew; validation tasks are too few to notice every description."""
    change = {"kind": "describe", "skills": ["fruit"], "into": [{"name": "fruit", "description": said, "content": ""}]}
    skills = {"fruit": skill("fruit", "apple.")}
    return trained(folder, agent=agent, optimizer=managing(change), skills=skills, kinds=("apple", "birch"), **settings)


def test_a_description_that_draws_tasks_away_that_need_no_skill_is_refused(tmp_path: Path) -> None:
    """Validation says nothing against it. The set is drawn from training items by what they opened when they passed."""
    run = described(tmp_path, "apple and everything.")
    [gated], [planned] = of_type(run, CandidateGated), of_type(run, TriesPlanned)
    assert isinstance(gated, CandidateGated)
    assert isinstance(planned, TriesPlanned)
    assert (gated.verdict.action, gated.verdict.reason, gated.verdict.lost) == ("reject", "misrouted", ())
    before = {row.item: row for row in of_type(run, RolloutCompleted) if row.place.endswith("/b0")}  # type: ignore[attr-defined]
    assert {tries.place.rpartition("/")[2]: len(tries.items) for tries in planned.tries} == {"should": 4, "none": 4}
    for tries in planned.tries:
        keys = {before[item].viewed for item in tries.items if item in before}  # type: ignore[attr-defined]
        assert keys <= {("fruit/SKILL.md",) if tries.place.endswith("should") else ()}


def test_a_description_that_sends_all_where_they_should_go_is_taken(tmp_path: Path) -> None:
    run = described(tmp_path, "apple, of all kinds.")
    [gated] = of_type(run, CandidateGated)
    assert isinstance(gated, CandidateGated)
    assert gated.verdict.taken
    assert len(of_type(run, TriesPlanned)) == 1


@pytest.mark.parametrize(("settings", "sets"), [({"skills.misrouted": None}, 1), ({"skills.triggers": 0}, 0)])
def test_both_the_set_and_what_it_forbids_can_be_left_out(
    settings: dict[str, object], sets: int, tmp_path: Path
) -> None:
    run = described(tmp_path, "apple and everything.", **settings)
    [gated] = of_type(run, CandidateGated)
    assert isinstance(gated, CandidateGated)
    assert gated.verdict.taken
    assert len(of_type(run, TriesPlanned)) == sets


def test_a_candidate_that_validation_refuses_meets_no_set(tmp_path: Path) -> None:
    run = described(tmp_path, "Nothing in particular.")
    assert len(of_type(run, CandidateGated)) == 1
    assert of_type(run, TriesPlanned) == []
