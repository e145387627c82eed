"""
Which validation items a candidate meets: those that open what was edited and a few others, or all.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import skill_world as world
from support.params import parametrized
from support.skill_world import KINDS, of_type, trained
from support.skills import skill

import skillopt_es as so
from skillopt_es.events.catalog import CandidateGated, EditsRanked, RolloutCompleted, SkillScored
from skillopt_es.testing.algorithms import ALGORITHM_CHECKS

FIRST = {
    f"{kind}-tasks": skill(f"{kind}-tasks", f"{kind}.", f"RULE {kind} {'wrong' if kind == 'apple' else kind[::-1]}")
    for kind in KINDS
}


def fixing(request: so.ChatRequest) -> str:
    """Corrects the one rule that is wrong."""
    if "RULE apple wrong" not in request.messages[-1].content.partition("## Names")[0]:
        return '{"edits": [], "changes": []}'
    return json.dumps({"edits": [{"op": "replace", "skill": "apple-tasks", "target": "wrong", "content": "elppa"}]})


def gate_of(run: so.Run) -> tuple[list[RolloutCompleted], SkillScored, CandidateGated]:
    """The first verdict, its score, and the results that it rests on."""
    gated = of_type(run, CandidateGated)[0]
    assert isinstance(gated, CandidateGated)
    [scored] = [
        event
        for event in of_type(run, SkillScored)
        if isinstance(event, SkillScored) and event.skill == gated.candidate and event.purpose == "selection"
    ]
    rows = [event for event in of_type(run, RolloutCompleted) if isinstance(event, RolloutCompleted)]
    return [event for event in rows if event.place == scored.place], scored, gated


def test_an_edit_is_judged_by_those_that_open_the_skill_and_a_fixed_sample(tmp_path: Path) -> None:
    """The others have the results that they had; the verdict is the one that all items give."""
    few = trained(tmp_path / "few", optimizer=fixing, skills=FIRST, **{"skills.sentinels": 2})
    every = trained(tmp_path / "every", optimizer=fixing, skills=FIRST, **{"skills.sentinels": 0})
    rows, scored, gated = gate_of(few)
    assert {row.item for row in rows if row.viewed == ("apple-tasks/SKILL.md",)} == {"val0", "val4"}
    assert len(rows) <= 4
    assert len(scored.carried) == 8 - len(rows)
    all_rows, all_scored, all_gated = gate_of(every)
    assert (len(all_rows), all_scored.carried) == (8, ())
    assert (scored.score, scored.by_type) == (all_scored.score, all_scored.by_type)
    assert (gated.verdict.won, gated.verdict.lost) == (all_gated.verdict.won, all_gated.verdict.lost)
    assert gated.verdict.candidate_value == all_gated.verdict.candidate_value == 1.0


def test_where_one_of_the_sample_moves_all_items_are_tried(tmp_path: Path) -> None:
    """An agent for whom an edit changes more than it should: it opens the skill for other tasks, too."""

    def straying(request: so.ChatRequest) -> str | so.ChatReply:
        corrected = "elppa" in "".join(message.content for message in request.messages)
        if request.tools and not world.opened(request) and straying.after:  # type: ignore[attr-defined]
            return world.view("apple-tasks")
        straying.after = straying.after or corrected  # type: ignore[attr-defined]
        return world.target(request)

    straying.after = False  # type: ignore[attr-defined]
    settings = {"skills.sentinels": 4, "env.workers": 1}
    run = trained(tmp_path, agent=straying, optimizer=fixing, skills=FIRST, **settings)
    rows, scored, _ = gate_of(run)
    assert (len(rows), scored.carried) == (8, ())


def test_a_new_description_meets_all_items(tmp_path: Path) -> None:
    """It may move any of them."""

    def describing(request: so.ChatRequest) -> str:
        row = {"op": "describe", "skill": "apple-tasks", "description": "apple, and apple alone."}
        return json.dumps({"edits": [*json.loads(fixing(request))["edits"], row], "changes": []})

    run = trained(tmp_path, optimizer=describing, skills=FIRST, **{"skills.sentinels": 2})
    rows, scored, _ = gate_of(run)
    assert (len(rows), scored.carried) == (8, ())


def helping_and_harming(request: so.ChatRequest) -> str:
    """Corrects one skill and spoils another one."""
    if request.stage == "meta_skill":
        return '{"changes": []}'
    shown = request.messages[-1].content.partition("## Names")[0]
    edits = json.loads(fixing(request))["edits"]
    if "RULE birch hcrib" in shown:
        edits.append({"op": "replace", "skill": "birch-tasks", "target": "hcrib", "content": "spoilt"})
    return json.dumps({"edits": edits})


@parametrized(("most", "taken"), [(None, True), (2, True), (1, False)], by_default=2)
def test_a_candidate_may_not_draw_too_many_away_from_what_it_leaves_alone(
    most: int | None, taken: bool, tmp_path: Path
) -> None:
    """An agent that opens one skill only: a greedy new description takes birch's tasks, and the score still rises."""

    def opening_one(request: so.ChatRequest) -> str | so.ChatReply:
        kind = request.messages[1].content.split()[-2]
        fitting = sorted(name for name, said in world.listed(request).items() if kind in said)
        return world.target(request) if world.opened(request) or not fitting else world.view(fitting[0])

    def greedy(request: so.ChatRequest) -> str:
        if request.stage == "meta_skill":
            return '{"changes": []}'
        edits = json.loads(fixing(request))["edits"]
        more = [
            {"op": "describe", "skill": "apple-tasks", "description": "apple, and birch."},
            {"op": "append", "skill": "apple-tasks", "content": "RULE birch hcrib"},
        ]
        return json.dumps({"edits": [*edits, *more] if edits else []})

    settings = {"skills.recall_loss": most, "train.num_epochs": 1, "train.batch_size": 16}
    run = trained(tmp_path, agent=opening_one, optimizer=greedy, skills=FIRST, **settings)
    [gated] = of_type(run, CandidateGated)
    assert isinstance(gated, CandidateGated)
    assert (gated.verdict.taken, gated.verdict.won, gated.verdict.lost) == (True, ("val0", "val4"), ())
    together = [event.together for event in of_type(run, EditsRanked) if isinstance(event, EditsRanked)]
    assert [verdict and verdict.reason for verdict in together] == ([] if taken else ["lost_recall"])
    assert ("apple, and birch." in run.skill("best").files["apple-tasks/SKILL.md"]) == taken


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("the_same_answers_give_the_same_log", marks=pytest.mark.slow),
        "every_decision_follows_from_the_evidence",
        "a_state_is_a_fold_of_its_events",
        pytest.param("the_next_work_is_the_states_alone", marks=pytest.mark.slow),
    ],
)
def test_an_algorithm_with_carried_results_passes_the_checks(name: str, tmp_path: Path) -> None:
    """They are as much a fold of the log as any."""

    case = world.case(FIRST, helping_and_harming, **{"skills.sentinels": 2})
    ALGORITHM_CHECKS[name](case, tmp_path)
    assert any(event.carried for event in case.trained(tmp_path / "more") if isinstance(event, SkillScored))
