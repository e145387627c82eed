"""The gate, the sums and the merge tree, decided on tables."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
from support.logs import events_of
from support.scripted import KINDS, ScriptedEnvironment, ScriptedModel, ScriptedWorld, config, optimizer_reply

from skillopt_es.algorithms.classic.jobs import MergeJob
from skillopt_es.algorithms.classic.planner import merge_plan
from skillopt_es.algorithms.classic.state import StepState
from skillopt_es.audit.check import check
from skillopt_es.events.catalog import (
    BestPromoted,
    CandidateBuilt,
    CandidateGated,
    EditsRanked,
    Event,
    PatchesMerged,
    PatchProposed,
    RunCompleted,
    SkillScored,
    SlowUpdateApplied,
    StepSkipped,
)
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.places import Place
from skillopt_es.events.values import Edit, Measured, Minibatch, Score
from skillopt_es.ports import ChatRequest
from skillopt_es.presenting.event_lines import milestone
from skillopt_es.projections.persistent import Ledger
from skillopt_es.sessions.session import start
from skillopt_es.skill.regions import SLOW_START


def train(folder: Path, *overrides: str, world: ScriptedWorld | None = None) -> list[Event]:
    """The events of a scripted run."""
    asyncio.run(start(config(folder, overrides), folder / "run", (world or ScriptedWorld()).session()))
    return events_of(folder / "run")


def test_scores_that_are_no_numbers_are_refused() -> None:
    """NaN would make every later comparison false."""
    for bad in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="finite"):
            Measured(bad, 0)
        with pytest.raises(ValueError, match="finite"):
            Score(hard=bad, soft=0, measured=1)


def step_with(failures: int, successes: int) -> StepState:
    """A step whose analysts each proposed one edit."""
    from skillopt_es.events.catalog import PatchProposed

    groups, patches = [], Ledger[str, PatchProposed]()
    for kind, count in (("failure", failures), ("success", successes)):
        for index in range(count):
            name = f"b0/{kind}-{index}"
            groups.append(Minibatch(id=name, kind=kind, place="b0", items=("i",)))  # type: ignore[arg-type]
            edit = Edit(id=f"{name}#1", op="append", content="x")
            patch = PatchProposed(patch=name, step=1, kind=kind, items=("i",), result="edits", edits=(edit,))  # type: ignore[arg-type]
            patches = patches.put(name, patch)
    return StepState(number=1, batches=(), groups=tuple(groups), patches=patches)


def merged_all(step: StepState, size: int) -> tuple[list[list[MergeJob]], str]:
    """All rounds of merges, each done before the next is planned; and the node that remains."""
    rounds = []
    while True:
        jobs, top = merge_plan(step, Place("m"), size)
        if not jobs:
            return rounds, top
        rounds.append([job for job in jobs if isinstance(job, MergeJob)])
        merges = step.merges
        for job in rounds[-1]:
            edit = Edit(id=f"{job.merge}#1", op="append", content="x")
            done = PatchesMerged(
                merge=job.merge, step=1, group=job.group, level=job.level, inputs=job.inputs, edits=(edit,)
            )
            merges = merges.put(job.merge, done)
        step = StepState(number=1, batches=(), groups=step.groups, patches=step.patches, merges=merges)


def test_merges_go_level_by_level_and_both_groups_side_by_side() -> None:
    """Nine failures and three successes in batches of four: a singleton passes through, the final merge comes last."""
    rounds, top = merged_all(step_with(9, 3), 4)
    assert [[(job.merge, len(job.inputs)) for job in jobs] for jobs in rounds] == [
        [("m/merge/failure-1-0", 4), ("m/merge/failure-1-1", 4), ("m/merge/success-1-0", 3)],
        [("m/merge/failure-2-0", 3)],
        [("m/merge/final", 2)],
    ]
    assert rounds[1][0].inputs == ("m/merge/failure-1-0", "m/merge/failure-1-1", "b0/failure-8")
    assert rounds[2][0].inputs == ("m/merge/failure-2-0", "m/merge/success-1-0")
    assert top == "m/merge/final"


@pytest.mark.parametrize(
    ("failures", "successes", "rounds", "top"),
    [
        (0, 0, 0, ""),
        (1, 0, 0, "b0/failure-0"),
        (0, 1, 0, "b0/success-0"),
        (1, 1, 1, "m/merge/final"),
        (2, 0, 1, "m/merge/failure-1-0"),
    ],
)
def test_what_needs_no_merge_is_not_merged(failures: int, successes: int, rounds: int, top: str) -> None:
    """One patch is taken as it is."""
    made, last = merged_all(step_with(failures, successes), 8)
    assert (len(made), last) == (rounds, top)


def test_a_budget_of_zero_applies_nothing(tmp_path: Path) -> None:
    """No edit slips through, and no call is made to rank."""
    events = train(tmp_path, "optimizer.learning_rate=0", "optimizer.min_learning_rate=0")
    assert not any(isinstance(event, CandidateBuilt) for event in events)
    assert all(event.chosen == () for event in events if isinstance(event, EditsRanked))


NO_ADVICE = ("optimizer.use_slow_update=false", "optimizer.use_meta_skill=false")


@pytest.mark.parametrize("mode", ["fixed", "autonomous", "none"])
def test_without_a_learning_rate_nobody_is_asked(mode: str, tmp_path: Path) -> None:
    """Steps measure the training items, and that is all; each says why it changed nothing."""
    world = ScriptedWorld()
    zero = ("optimizer.learning_rate=0", "optimizer.min_learning_rate=0", f"optimizer.lr_control_mode={mode}")
    events = train(tmp_path, *zero, *NO_ADVICE, world=world)
    assert world.optimizer.asked == []
    skipped = [event for event in events if isinstance(event, StepSkipped)]
    assert {(event.reason, event.detail) for event in skipped} == {
        ("no_edit_chosen", "the budget is 0: no analyst was asked")
    }
    assert [event.purpose for event in events if isinstance(event, SkillScored)].count("train") == len(skipped) == 9
    check_all(tmp_path)


def test_a_schedule_that_ends_at_zero_asks_nobody_in_its_last_step(tmp_path: Path) -> None:
    """The budget of the step counts, not the highest one."""
    world = ScriptedWorld()
    low = ("optimizer.min_learning_rate=0", "optimizer.lr_scheduler=linear", "train.num_epochs=1")
    events = train(tmp_path, *low, *NO_ADVICE, world=world)
    assert any(slot.startswith("e1/s1/") for slot in world.optimizer.asked)
    assert not any(slot.startswith("e1/s3/") for slot in world.optimizer.asked)
    assert isinstance(events[-1], RunCompleted)


def check_all(folder: Path) -> None:
    """Every decision of the run follows from its evidence."""
    with EventLog.open(folder / "run") as log:
        assert asyncio.run(check(log, Journal(log.reader), folder / "run")).mismatch is None


@pytest.mark.parametrize("gate", ["true", "false"])
def test_guidance_that_says_the_same_again_costs_nothing(gate: str, tmp_path: Path) -> None:
    """The text is the current one: no evaluation, no new origin."""

    def same(request: ChatRequest) -> str:
        if request.stage == "analyst":
            return '{"patch": {"edits": []}}'
        return '{"slow_update_content": "the same"}' if request.stage == "slow_update" else optimizer_reply(request)

    world = ScriptedWorld(optimizer=ScriptedModel("scripted optimizer", same))
    events = train(tmp_path, f"optimizer.slow_update_gate_with_selection={gate}", "train.num_epochs=4", world=world)
    applied = {event.epoch: event.verdict.action for event in events if isinstance(event, SlowUpdateApplied)}
    again = ("reject", "reject") if gate == "true" else ("unchanged", "unchanged")
    assert (applied[3], applied[4]) == again
    selections = [event.skill for event in events if isinstance(event, SkillScored) and event.purpose == "selection"]
    assert len(selections) == len(set(selections)), "a text was measured twice"
    check_all(tmp_path)


def test_an_edit_that_changes_nothing_costs_nothing(tmp_path: Path) -> None:
    """The step is skipped as unchanged, without an evaluation."""

    def useless(request: ChatRequest) -> str:
        return re.sub(r'"content": "[^"]*"', f'"content": "{SLOW_START}"', optimizer_reply(request))

    world = ScriptedWorld(optimizer=ScriptedModel("scripted optimizer", useless))
    events = train(tmp_path, "optimizer.use_slow_update=false", world=world)
    skipped = [event for event in events if isinstance(event, StepSkipped)]
    assert skipped[0].reason == "unchanged"
    assert "skipped_empty_content" in skipped[0].detail
    assert not any(isinstance(event, SkillScored) and event.place.endswith("/gate") for event in events)


def test_edits_without_a_place_in_the_skill_are_asked_for_again(tmp_path: Path) -> None:
    """Once, with the reason; the second reply counts."""

    def misplaced(request: ChatRequest) -> str:
        reply = optimizer_reply(request)
        first = request.stage == "analyst" and not request.slot.endswith("/again")
        return reply.replace('"op": "append", "target": ""', '"op": "delete", "target": "absent"') if first else reply

    events = train(tmp_path, world=ScriptedWorld(optimizer=ScriptedModel("scripted optimizer", misplaced)))
    patches = [event for event in events if isinstance(event, PatchProposed) and event.edits]
    assert patches
    assert all(len(patch.calls) == 2 and patch.calls[1].slot.endswith("/again") for patch in patches)
    assert all(edit.op == "append" for patch in patches for edit in patch.edits)


def test_edits_that_stay_without_a_place_are_no_patch(tmp_path: Path) -> None:
    """The step says which target was not found."""

    def misplaced(request: ChatRequest) -> str:
        return optimizer_reply(request).replace('"op": "append", "target": ""', '"op": "delete", "target": "absent"')

    world = ScriptedWorld(optimizer=ScriptedModel("scripted optimizer", misplaced))
    skipped = [event for event in train(tmp_path, world=world) if isinstance(event, StepSkipped)]
    assert skipped[0].reason == "no_usable_patch"
    assert "the skill does not contain 'absent'" in skipped[0].detail


def test_identical_texts_are_tested_once(tmp_path: Path) -> None:
    """Without slow updates best and final are one text: two test evaluations, three scores."""
    events = train(tmp_path, "optimizer.use_slow_update=false")
    tests = [event.place for event in events if isinstance(event, SkillScored) and event.purpose == "test"]
    done = events[-1]
    assert tests == ["final/test/initial", "final/test/best"]
    assert isinstance(done, RunCompleted)
    assert done.test_best == done.test_final


def test_without_tests_the_final_skill_is_still_promoted(tmp_path: Path) -> None:
    """Promotion does not depend on test evaluations (upstream skips it)."""
    events = train(tmp_path, "evaluation.eval_test=false", "evaluation.use_gate=false")
    done = events[-1]
    assert isinstance(done, RunCompleted)
    assert done.test_best is None
    check_all(tmp_path)
    gates = [event for event in events if isinstance(event, CandidateGated)]
    assert {gate.verdict.action for gate in gates} == {"force_accept"}


def test_a_final_skill_that_is_better_is_measured_and_promoted_without_tests(tmp_path: Path) -> None:
    """Guidance that was forced on the last skill makes it the best; whoever watches sees it measured."""

    def wise(request: ChatRequest) -> str:
        if request.stage == "analyst":
            return '{"patch": {"edits": []}}'
        knows = json.dumps({"slow_update_content": "\n".join(f"know {kind}" for kind in KINDS)})
        return knows if request.stage == "slow_update" else optimizer_reply(request)

    world = ScriptedWorld(optimizer=ScriptedModel("scripted optimizer", wise))
    events = train(tmp_path, "evaluation.eval_test=false", world=world)
    *_, measured, promoted, done = events
    assert isinstance(measured, SkillScored)
    assert isinstance(promoted, BestPromoted)
    assert isinstance(done, RunCompleted)
    assert (measured.place, measured.value, promoted.value) == ("final/val", 1.0, 1.0)
    assert milestone(measured).strip().startswith("final/val: hard 1.0000")
    assert milestone(promoted)
    assert done.best == done.final == promoted.skill


def test_two_batches_a_step_are_rolled_out_together(tmp_path: Path) -> None:
    """Accumulation: each batch has its own place, minibatches keep them apart."""
    events = train(tmp_path, "train.accumulation=2", world=ScriptedWorld(environment=ScriptedEnvironment(train=16)))
    places = {event.place for event in events if isinstance(event, SkillScored) and event.purpose == "train"}
    assert {"e1/s1/b0", "e1/s1/b1"} <= places
