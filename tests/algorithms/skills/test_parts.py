"""A candidate of several changes that is refused as a whole: which of them stay, and what that costs."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest
from attrs import evolve
from support import skill_world as world
from support.crashes import KillAt, in_child
from support.logs import decisions_of
from support.params import parametrized
from support.skill_world import KINDS, of_type, trained
from support.skills import skill

import skillopt_es as so
from skillopt_es.algorithms.skills.state import WHOLE, Skills
from skillopt_es.audit.regating import regated
from skillopt_es.events.catalog import (
    CandidateBuilt,
    CandidateGated,
    EditsRanked,
    RolloutCompleted,
    RunPaused,
    TriesPlanned,
)
from skillopt_es.events.log import EventLog
from skillopt_es.events.places import Place
from skillopt_es.ports import CallFailed
from skillopt_es.projections.chains import chains
from skillopt_es.projections.fates import fates_of
from skillopt_es.projections.item_results import item_history
from skillopt_es.sessions.session import resume, start
from skillopt_es.skill.folders import ids_of
from skillopt_es.testing.algorithms import ALGORITHM_CHECKS, AlgorithmCase

RULES = {kind: f"RULE {kind} {'wrong' if kind == 'apple' else kind[::-1]}" for kind in KINDS}
FIRST = {f"{kind}-tasks": skill(f"{kind}-tasks", f"{kind}.", rule) for kind, rule in RULES.items()}
ONE_STEP: dict[str, object] = {"train.num_epochs": 1, "train.batch_size": 16}


def proposing(*rows: dict[str, str]) -> Callable[[so.ChatRequest], str]:
    """A teacher who proposes these, each in the first question that shows its skill."""
    left = list(rows)

    def answer(request: so.ChatRequest) -> str:
        if request.stage == "meta_skill":
            return '{"changes": []}'
        shown = request.messages[-1].content.partition("## Names")[0]
        now = [row for row in left if f"name: {row['skill']}" in shown]
        left[:] = [row for row in left if row not in now]
        return json.dumps({"edits": now})

    return answer


FIX = {"op": "replace", "skill": "apple-tasks", "target": "wrong", "content": "elppa"}
SPOIL = {"op": "replace", "skill": "birch-tasks", "target": "hcrib", "content": "spoilt"}


def verdict_of(run: so.Run) -> CandidateGated:
    """The run's only verdict."""
    [gated] = of_type(run, CandidateGated)
    assert isinstance(gated, CandidateGated)
    return gated


def ranked_of(run: so.Run) -> EditsRanked:
    """The run's only choice among changes."""
    [ranked] = of_type(run, EditsRanked)
    assert isinstance(ranked, EditsRanked)
    return ranked


def test_what_helps_stays_where_another_change_of_the_same_step_harms(tmp_path: Path) -> None:
    """No item notices both, so nothing is drawn in between; what stays is judged on draws of its own."""
    run = trained(tmp_path, optimizer=proposing(FIX, SPOIL), skills=FIRST, **{"skills.sentinels": 1, **ONE_STEP})
    best = run.skill("best").files
    assert "RULE apple elppa" in best["apple-tasks/SKILL.md"]
    assert best["birch-tasks/SKILL.md"] == FIRST["birch-tasks"]
    ranked, gated = ranked_of(run), verdict_of(run)
    assert [(each.effect > 0, each.items) for each in ranked.effects] == [(True, 2), (False, 2)]
    assert ranked.chosen == ranked.effects[0].edits
    assert ranked.together is not None
    assert (ranked.together.won, ranked.together.lost) == (("val0", "val4"), ("val1", "val5"))
    assert (gated.verdict.action, gated.verdict.won, gated.verdict.lost) == ("accept_new_best", ("val0", "val4"), ())
    assert of_type(run, TriesPlanned) == []
    algorithm = run.state().algorithm
    assert isinstance(algorithm, Skills)
    assert [each.why for each in algorithm.refused["birch-tasks",]] == ["tasks got worse with it, by 0.67 each"]
    chain = chains(run.events())[1]
    assert chain.taken
    [kept] = fates_of(chain, ranked.chosen[0])
    assert kept.reason == "taken"
    [fate] = fates_of(chain, ranked.effects[1].edits[0])
    assert (fate.reason, fate.detail) == ("ranked_out", "its effect is -0.67 an item; 2 items notice it")
    history = item_history("val1", run.events())
    assert [(each.step, each.how, each.action) for each in history.turned] == [(1, "lost", "reject")]


def test_what_was_not_even_in_the_candidate_says_why(tmp_path: Path) -> None:
    """Where some of the others are ranked out and some stay."""
    lost = {"op": "delete", "skill": "apple-tasks", "target": "what is not there"}
    settings: dict[str, object] = {"optimizer.ask_again": False, **ONE_STEP}
    run = trained(tmp_path, optimizer=proposing(FIX, SPOIL, lost), skills=FIRST, **settings)
    chain = chains(run.events())[1]
    [name] = chain.left_out
    [fate] = fates_of(chain, name)
    assert (fate.reason, fate.detail.partition(":")[0]) == ("not_applied", "skipped_delete_target_not_found")


def test_a_proposal_of_a_step_without_a_choice_has_its_fate_too(tmp_path: Path) -> None:
    run = trained(tmp_path, optimizer=proposing(FIX), skills=FIRST, **ONE_STEP)
    chain = chains(run.events())[1]
    assert chain.ranked is None
    assert [fates_of(chain, name)[0].reason for name in chain.proposals] == ["taken"]


def test_two_edits_of_one_skill_are_told_apart_by_draws_under_each(tmp_path: Path) -> None:
    """Every item that opens the skill notices both; which of them an item is tried under is recorded."""
    first = {"trees": skill("trees", "apple, birch, cedar and daisy.", "\n".join(RULES.values()))}
    good, bad = {**FIX, "skill": "trees"}, {**SPOIL, "skill": "trees"}
    worse = {"op": "replace", "skill": "trees", "target": "radec", "content": "spoilt"}
    many = KINDS * 3
    run = trained(tmp_path, optimizer=proposing(good, bad, worse), skills=first, kinds=many, **ONE_STEP)
    text = run.skill("best").files["trees/SKILL.md"]
    assert "RULE apple elppa" in text
    assert "spoilt" not in text
    [planned] = of_type(run, TriesPlanned)
    assert isinstance(planned, TriesPlanned)
    rows = {(row.place, row.item): row for row in of_type(run, RolloutCompleted) if row.purpose == "parts"}  # type: ignore[attr-defined]
    assert [*rows] == [(tries.place, item) for tries in planned.tries for item in tries.items]
    assert len({item for _, item in rows}) == len(rows) == 20
    assert all(0 < len(tries.edits) < 3 for tries in planned.tries)
    again = trained(tmp_path / "again", optimizer=proposing(good, bad, worse), skills=first, kinds=many, **ONE_STEP)
    assert of_type(again, TriesPlanned) == [planned]


def test_what_only_changes_the_list_is_noticed_by_whoever_comes_out_otherwise(tmp_path: Path) -> None:
    """A description spoils tasks that open neither it nor anything else that was changed."""

    def moody(request: so.ChatRequest) -> str | so.ChatReply:
        said = world.target(request)
        spoilt = "spoilt" in request.messages[0].content
        return "none" if spoilt and isinstance(said, str) and "cedar" in request.messages[1].content else said

    describe = {"op": "describe", "skill": "birch-tasks", "description": "birch, spoilt."}
    run = trained(tmp_path, agent=moody, optimizer=proposing(FIX, describe), skills=FIRST, **ONE_STEP)
    assert verdict_of(run).verdict.taken
    assert "RULE apple elppa" in run.skill("best").files["apple-tasks/SKILL.md"]
    assert run.skill("best").files["birch-tasks/SKILL.md"] == FIRST["birch-tasks"]


def test_where_every_change_harms_all_is_refused(tmp_path: Path) -> None:
    """There is nothing to keep, and nothing is drawn for it."""
    spoil = {"op": "replace", "skill": "cedar-tasks", "target": "radec", "content": "spoilt"}
    run = trained(tmp_path, optimizer=proposing(SPOIL, spoil), skills=FIRST, **ONE_STEP)
    assert (of_type(run, EditsRanked), of_type(run, TriesPlanned)) == ([], [])
    assert verdict_of(run).verdict.lost == ("val1", "val2", "val5", "val6")


def test_edits_that_need_each_other_are_one_change(tmp_path: Path) -> None:
    """One that changes what another one has written cannot be made alone."""
    longer = {"op": "append", "skill": "birch-tasks", "content": "Say it twice."}
    more = {"op": "replace", "skill": "birch-tasks", "target": "Say it twice.", "content": "Say it once."}
    run = trained(tmp_path, optimizer=proposing(FIX, longer, SPOIL, more), skills=FIRST, **ONE_STEP)
    assert [len(each.edits) for each in ranked_of(run).effects] == [1, 2, 1]


def test_changes_at_an_epochs_end_are_told_apart_too(tmp_path: Path) -> None:
    """A split that loses a rule and a merge that loses nothing come together; the merge stays."""
    first = {
        "apple-tasks": skill("apple-tasks", "apple.", "RULE apple elppa"),
        "birch-tasks": skill("birch-tasks", "birch.", "RULE birch hcrib"),
        "herbs": skill("herbs", "cedar and daisy.", "RULE cedar radec\n\nRULE daisy ysiad"),
    }
    merged = {"name": "trees", "description": "apple and birch.", "content": "RULE apple elppa\nRULE birch hcrib"}
    parts = [
        {"name": "cedars", "description": "cedar.", "content": "RULE cedar radec"},
        {"name": "daisies", "description": "daisy.", "content": "RULE daisy lost"},
    ]
    changes = [
        {"kind": "split", "skills": ["herbs"], "into": parts, "why": "two things"},
        {"kind": "merge", "skills": ["apple-tasks", "birch-tasks"], "into": [merged], "why": "one thing"},
    ]

    def manager(request: so.ChatRequest) -> str:
        return json.dumps({"changes": changes} if request.stage == "meta_skill" else {"edits": []})

    run = trained(tmp_path, optimizer=manager, skills=first, **{"train.num_epochs": 1})
    assert ids_of(run.skill("current")) == ("herbs", "trees")
    ranked, gated = ranked_of(run), verdict_of(run)
    assert [len(each.edits) for each in ranked.effects] == [3, 1]  # of a split all parts go together
    assert (gated.verdict.rule, gated.verdict.action, gated.verdict.lost) == ("not_worse", "accept", ())
    algorithm = run.state().algorithm
    assert isinstance(algorithm, Skills)
    assert [each.edit.op for each in algorithm.refused[WHOLE]] == ["split", "split", "retire"]


def test_a_change_that_sends_tasks_wrong_is_told_from_one_that_does_not(tmp_path: Path) -> None:
    """The trigger set counts as evidence: validation has nothing against a greedy description."""

    def agent(request: so.ChatRequest) -> str | so.ChatReply:
        kind, word = next(each.content for each in request.messages if each.role == "user").split()[-2:]
        have, late = world.opened(request), len("validation") <= int(request.messages[1].content.split()[-1][1:])
        fitting = [name for name, said in world.listed(request).items() if kind in said or (late and "all" in said)]
        if fitting and not have:
            return world.view(*fitting)
        return f"{word}-{kind[::-1]}" if (kind == "apple") == bool(have) else "wrong"

    greedy = {"name": "fruit", "description": "apple and all.", "content": ""}
    stones = {"name": "stones", "description": "pebbles.", "content": ""}
    changes = [
        {"kind": "describe", "skills": ["fruit"], "into": [greedy]},
        {"kind": "describe", "skills": ["stones"], "into": [stones]},
    ]

    def manager(request: so.ChatRequest) -> str:
        return json.dumps({"changes": changes} if request.stage == "meta_skill" else {"edits": []})

    first = {"fruit": skill("fruit", "apple."), "stones": skill("stones", "stones.")}
    settings: dict[str, object] = {"train.num_epochs": 1}
    run = trained(
        tmp_path, agent=agent, optimizer=manager, skills=first, kinds=("apple", "birch"), train=24, **settings
    )
    ranked = ranked_of(run)
    assert ranked.together is not None
    assert ranked.together.reason == "misrouted"
    best = run.skill("current").files
    assert "apple and all" not in best["fruit/SKILL.md"]
    assert "pebbles" in best["stones/SKILL.md"]


@parametrized("rule", ["strict", "paired"], by_default=1)
def test_a_step_takes_at_most_twice_a_gates_results(rule: str, tmp_path: Path) -> None:
    """Whatever the agent does: its answers are as good as drawn, and each step proposes three edits of what is open."""
    first = {"trees": skill("trees", "apple, birch, cedar and daisy.", "\n".join(RULES.values()))}
    given = [0]

    def chancy(request: so.ChatRequest) -> str | so.ChatReply:
        said = world.target(request)
        luck = sha256(f"{request.messages!r}".encode()).digest()[0]
        return "none" if isinstance(said, str) and luck < 70 else said

    def busy(request: so.ChatRequest) -> str:
        if request.stage == "meta_skill":
            return '{"changes": []}'
        given[0] += 1
        rows = [{"op": "append", "skill": "trees", "content": f"Idea {given[0]} {n}."} for n in range(2)]
        describe = {"op": "describe", "skill": "trees", "description": f"apple, birch, cedar, daisy {given[0]}."}
        return json.dumps({"edits": [*rows, describe]})

    run = trained(
        tmp_path,
        agent=chancy,
        optimizer=busy,
        skills=first,
        train=32,
        **{"evaluation.gate_rule": rule, "evaluation.gate_repeats": 3, "skills.triggers": 2},
    )
    draws = 1 if rule == "strict" else 5
    spent: dict[int, int] = {}
    for event in of_type(run, RolloutCompleted):
        place = Place(event.place)  # type: ignore[attr-defined]
        if place.step is not None and place.batch is None:
            spent[place.step] = spent.get(place.step, 0) + 1
    assert of_type(run, TriesPlanned)
    assert max(spent.values()) <= 2 * (8 * draws + 3 * 2)


def test_parts_of_which_too_many_cannot_be_measured_pause_the_run(tmp_path: Path) -> None:
    """What nobody measured is no evidence for or against a change."""
    first = {"trees": skill("trees", "apple, birch, cedar and daisy.", "\n".join(RULES.values()))}
    good, bad = {**FIX, "skill": "trees"}, {**SPOIL, "skill": "trees"}

    def down(request: so.ChatRequest) -> str | so.ChatReply:
        if "/parts/" in request.slot:
            raise CallFailed("server", "boom")
        return world.target(request)

    run = trained(tmp_path, agent=down, optimizer=proposing(good, bad), skills=first, **ONE_STEP)
    [paused] = of_type(run, RunPaused)
    assert isinstance(paused, RunPaused)
    assert paused.reason == "unmeasured"
    assert "at e1/s1/parts could not be measured" in paused.message


def test_another_rule_may_take_all_together(tmp_path: Path) -> None:
    """Then the step ends there, and what became of a part of it is another history's."""
    run = trained(tmp_path, optimizer=proposing(FIX, SPOIL), skills=FIRST, **ONE_STEP)
    with EventLog.open(run.folder) as log:
        found = regated(log, run.folder, ["evaluation.gate_rule=not_worse"])
    said = [(each.recorded, each.derived) for each in found.verdicts]
    assert said == [("reject", "accept"), ("keep", "keep")]


def test_without_a_gate_nothing_is_parted(tmp_path: Path) -> None:
    run = trained(tmp_path, optimizer=proposing(FIX, SPOIL), skills=FIRST, **{"evaluation.use_gate": False, **ONE_STEP})
    assert of_type(run, EditsRanked) == []
    assert len(of_type(run, CandidateBuilt)) == 1


def spoiling_and_splitting(request: so.ChatRequest) -> str:
    """Two edits of one skill, one of which harms; then a split that loses a rule beside a description that does not."""
    if request.stage != "meta_skill":
        edits = [{**FIX, "skill": "trees"}, {**SPOIL, "skill": "trees"}]
        return json.dumps({"edits": edits if request.slot.endswith("failure-0") else []})
    parts = [
        {
            "name": f"{kind}s",
            "description": f"{kind}.",
            "content": RULES[kind] if kind != "daisy" else "RULE daisy lost",
        }
        for kind in KINDS
    ]
    split = {"kind": "split", "skills": ["trees"], "into": parts}
    idle = {"name": "idle", "description": "Nothing at all.", "content": ""}
    return json.dumps({"changes": [split, {"kind": "describe", "skills": ["idle"], "into": [idle]}]})


def drawing_parts() -> AlgorithmCase:
    """A run whose step and whose epoch's end draw parts of a candidate."""
    first = {
        "trees": skill("trees", "apple, birch, cedar and daisy.", "\n".join(RULES.values())),
        "idle": skill("idle", "Nothing."),
    }
    return world.case(first, spoiling_and_splitting, kinds=KINDS * 3)


@pytest.mark.slow
def test_killed_around_its_parts_a_run_recovers(tmp_path: Path) -> None:
    """After each decision about them, and at the event before it; other events are killed in smaller runs."""
    case = drawing_parts()
    whole = case.trained(tmp_path / "whole")
    found = [seq for seq, event in enumerate(whole, start=1) if isinstance(event, EditsRanked | TriesPlanned)]
    for seq in sorted({*found, *(each - 1 for each in found)}):
        folder = tmp_path / str(seq)
        folder.mkdir()
        settings, session = case.config(folder, ()), evolve(case.session(), observers=(KillAt(event=seq),))
        run = partial(start, settings, folder / "run", session)
        assert in_child(lambda run=run: asyncio.run(run())) == signal.SIGKILL  # type: ignore[misc]
        asyncio.run(resume(folder / "run", case.session()))
        assert decisions_of(folder / "run")[1:] == decisions_of(tmp_path / "whole" / "run")[1:]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("the_same_answers_give_the_same_log", marks=pytest.mark.slow),
        "every_decision_follows_from_the_evidence",
        pytest.param("a_state_is_a_fold_of_its_events", marks=pytest.mark.slow),
        pytest.param("the_next_work_is_the_states_alone", marks=pytest.mark.slow),
    ],
)
def test_an_algorithm_that_draws_parts_passes_the_checks(name: str, tmp_path: Path) -> None:
    """Both of a step and of an epoch's end."""
    case = drawing_parts()
    ALGORITHM_CHECKS[name](case, tmp_path)
    found = case.trained(tmp_path / "more")
    assert [each.step for each in found if isinstance(each, EditsRanked)] == [1, 2]
    assert any(tries.edits for each in found if isinstance(each, TriesPlanned) for tries in each.tries)
