"""The original's decisions where ours are others: each behind a key of its own, all in the preset `skillopt`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar, get_args

import pytest
import yaml
from support.logs import call_slots, events_of
from support.scripted import (
    CONFIG,
    KINDS,
    PartialEnvironment,
    ScriptedEnvironment,
    ScriptedModel,
    ScriptedWorld,
    config,
    optimizer_reply,
)

from skillopt_es.audit.check import check
from skillopt_es.config import load_config
from skillopt_es.config.sections import SkillOptRule
from skillopt_es.engine.algorithms import fold
from skillopt_es.events.catalog import (
    AppendixWritten,
    BestPromoted,
    CandidateBuilt,
    CandidateGated,
    EditsRanked,
    EpochPlanned,
    Event,
    LearningRateChosen,
    MetaSkillWritten,
    MinibatchesPlanned,
    RolloutCompleted,
    RunCompleted,
    SkillScored,
    SlowUpdateApplied,
    SlowUpdateProposed,
    StepSkipped,
)
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.ports import ChatRequest
from skillopt_es.projections.summary import summarize
from skillopt_es.sessions.session import start
from skillopt_es.skill.schedule import edit_budget

E = TypeVar("E", bound=Event)


def train(folder: Path, *overrides: str, world: ScriptedWorld | None = None, base: str = "") -> list[Event]:
    """The events of a scripted run, whose log also follows from its evidence."""
    run = config(folder, overrides)
    if base:
        (folder / "config.yaml").write_text(yaml.safe_dump({"_base_": base, **CONFIG}))
        run = load_config(folder / "config.yaml", overrides)
    asyncio.run(start(run, folder / "run", (world or ScriptedWorld()).session()))
    with EventLog.open(folder / "run") as log:
        report = asyncio.run(check(log, Journal(log.reader), folder / "run"))
    assert report.ok, report.mismatch
    return events_of(folder / "run")


def of(kind: type[E], events: list[Event]) -> list[E]:
    """The events of one kind."""
    return [event for event in events if isinstance(event, kind)]


def world_of(says: Mapping[str, object], environment: ScriptedEnvironment | None = None) -> ScriptedWorld:
    """A world whose optimizer says this at these stages, or slots that begin so (`@e1/s1`), else as ever."""

    def answer(request: ChatRequest) -> str:
        for name, said in says.items():
            if request.stage == name or (name[0] == "@" and request.slot.startswith(name[1:])):
                return said if isinstance(said, str) else json.dumps(said)
        return optimizer_reply(request)

    optimizer = ScriptedModel("scripted optimizer", answer)
    return ScriptedWorld(optimizer=optimizer, environment=environment or ScriptedEnvironment())


def edit(content: str) -> dict[str, object]:
    """An analyst's answer with one edit."""
    return {"patch": {"edits": [{"op": "append", "content": content}]}}


IDLE = {"patch": {"edits": []}}
NO_SLOW = "optimizer.use_slow_update=false"


# --- how edits are applied -----------------------------------------------------------------------------------------

PRUNED = {"patch": {"edits": [{"op": "delete", "target": "- know apple"}, {"op": "append", "content": "- know birch"}]}}


@pytest.mark.parametrize("leave", ["", "leave_gaps"])
def test_removed_lines_leave_their_gaps_in_the_original(leave: str, tmp_path: Path) -> None:
    """Which of the two it was, the candidate says."""
    settings = (
        "train.num_epochs=1",
        NO_SLOW,
        f"skillopt.follow=[{leave}]",
        "env.skill_init=SKILL.md",
    )
    (tmp_path / "SKILL.md").write_text("# A\n\n- know apple\n\n- know fern\n")
    events = train(tmp_path, *settings, world=world_of({"analyst": PRUNED, "merge": "as they are"}))
    built = of(CandidateBuilt, events)[0]
    assert built.gaps_closed == (not leave)
    gap = "\n\n\n" if leave else "\n"
    assert built.candidate.text == f"# A\n{gap}- know fern\n\n- know birch\n"


# --- asking and the budget -----------------------------------------------------------------------------------------


def test_a_useless_reply_is_not_asked_for_again(tmp_path: Path) -> None:
    """What it leads to is the fallback, as after the second."""
    world = world_of({"merge": "hm", "ranking": "hm"})
    train(tmp_path / "a", "optimizer.ask_again=false", world=world)
    slots = call_slots(tmp_path / "a" / "run")
    assert any("merge" in slot for slot in slots)
    assert any(slot.endswith("/rank") for slot in slots)
    assert not any(slot.endswith("/again") for slot in slots)


def test_a_mode_without_a_cap_follows_the_scheduler_in_the_original(tmp_path: Path) -> None:
    """`none` is capped there."""
    events = train(tmp_path, "optimizer.lr_control_mode=none", "skillopt.follow=[edit_budget]")
    ranked = of(EditsRanked, events)
    assert [e.budget for e in ranked] == [
        edit_budget("cosine", highest=2, lowest=1, step=e.step, total_steps=9) for e in ranked
    ]
    assert any(len(event.chosen) < len(event.pool) for event in ranked)


def test_a_budget_of_zero_applies_one_edit_in_the_original(tmp_path: Path) -> None:
    """The optimizer's number is recorded as it was said."""
    world = world_of({"learning_rate": {"learning_rate": 0}})
    events = train(tmp_path, "optimizer.lr_control_mode=autonomous", "skillopt.follow=[edit_budget]", world=world)
    assert {event.budget for event in of(LearningRateChosen, events)} == {0}
    assert {(event.budget, len(event.chosen)) for event in of(EditsRanked, events)} == {(1, 1)}


@pytest.mark.parametrize(("counted", "steps"), [("", [3, 4]), ("edit_budget", [1, 2])])
def test_skipped_steps_do_not_lower_the_budget_in_the_original(counted: str, steps: list[int], tmp_path: Path) -> None:
    """Its scheduler counts selections, not steps."""
    world = world_of({"@e1/s1/b0": IDLE, "@e1/s2/b0": IDLE})
    settings = (f"skillopt.follow=[{counted}]", "optimizer.lr_scheduler=linear", "optimizer.learning_rate=9")
    events = train(tmp_path, *settings, world=world)
    assert [event.step for event in of(StepSkipped, events)][:2] == [1, 2]
    assert [event.budget for event in of(EditsRanked, events)][:2] == [
        edit_budget("linear", highest=9, lowest=1, step=step, total_steps=9) for step in steps
    ]


# --- epochs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keep", [True, False])
def test_an_epoch_without_notes_breaks_the_chain_in_the_original(keep: bool, tmp_path: Path) -> None:
    """And the next one begins its notes anew."""
    world = world_of({"@e3/meta": "hm"})
    settings = ("train.num_epochs=4", "optimizer.ask_again=false", f"skillopt.follow={'[]' if keep else '[epoch_end]'}")
    events = train(tmp_path, *settings, world=world)
    results = [event.result for event in of(MetaSkillWritten, events)]
    assert results == ["first_epoch", "written", "unusable", "written"]
    in_force = [bool(event.meta_skill) for event in of(EpochPlanned, events)]
    assert in_force == [False, False, True, keep]


def test_one_text_is_tried_twice_for_a_comparison_in_the_original(tmp_path: Path) -> None:
    """What turns between the two is taken for a change."""
    world = world_of({"analyst": IDLE})
    events = train(tmp_path, "train.num_epochs=2", "skillopt.follow=[epoch_end]", NO_SLOW, world=world)
    places = [event.place for event in of(RolloutCompleted, events) if event.place.startswith("e2/slow")]
    assert places == ["e2/slow/previous"] * 5 + ["e2/slow/current"] * 5


def test_notes_are_written_after_the_guidance_was_judged_in_the_original(tmp_path: Path) -> None:
    """From the same question: what the guidance made of the skill is not in it."""
    asked: dict[bool, list[str]] = {}
    for after in (False, True):
        asked[after] = []

        def answer(request: ChatRequest, seen: list[str] = asked[after]) -> str:
            if request.slot == "e2/meta":
                seen.append(request.messages[1].content)
            return optimizer_reply(request)

        world = ScriptedWorld(optimizer=ScriptedModel("scripted optimizer", answer))
        settings = ("train.num_epochs=2", f"skillopt.follow={'[epoch_end]' if after else '[]'}")
        events = train(tmp_path / str(after), *settings, world=world)
        applied, written = of(SlowUpdateApplied, events)[-1], of(MetaSkillWritten, events)[-1]
        assert applied.skill.text not in asked[after][0]
        assert (events.index(applied) < events.index(written)) is after
    assert asked[False] == asked[True]


# --- scores --------------------------------------------------------------------------------------------------------

SMALL = ("optimizer.learning_rate=1", "train.batch_size=6")


def test_forced_guidance_keeps_the_old_score_in_the_original(tmp_path: Path) -> None:
    """Each event that leans on such a score names the skill it was measured under; nothing is measured for it."""
    harm = {"slow_update": {"slow_update_content": "\n".join(f"- spoil {kind}" for kind in KINDS)}}
    events = train(tmp_path, *SMALL, "skillopt.follow=[stale_scores]", world=world_of(harm))
    forced = next(event for event in of(SlowUpdateApplied, events) if event.verdict.action == "force_accept")
    after = events.index(forced)
    first = of(CandidateGated, events[after:])[0]
    standing = fold(events[: after + 1])
    assert standing.current is not None
    assert standing.best is not None
    assert (standing.current.skill.hash, standing.current.stale_from) == (forced.skill.hash, forced.verdict.stale_from)
    assert forced.skill.hash not in standing.measured
    assert standing.current.value == standing.measured[forced.verdict.stale_from].value == standing.best.value
    assert (first.verdict.stale_from, first.verdict.current_value) == (
        forced.verdict.stale_from,
        standing.current.value,
    )
    assert first.verdict.action == "reject"
    measured = [event.place.rpartition("/")[2] for event in of(SkillScored, events) if event.purpose == "selection"]
    assert set(measured) == {"baseline", "gate", "val"}
    assert summarize(events[: after + 1]).current.value == standing.current.value
    assert not standing.best.stale_from


def test_notes_after_the_verdict_keep_the_old_score_in_the_original(tmp_path: Path) -> None:
    """Also over several steps, back to the skill that was measured; the best skill has none of them."""
    noted = {"patch": {"edits": []}, "appendix_notes": ["Read the kind before you answer."]}
    world = world_of({"@e1/s1/b0": noted})
    settings = (
        "optimizer.use_skill_aware_reflection=true",
        "skillopt.follow=[notes_after_verdict, stale_scores]",
        "train.num_epochs=1",
    )
    events = train(tmp_path, *settings, NO_SLOW, world=world)
    [written] = of(AppendixWritten, events)
    after = fold(events[: events.index(written) + 1])
    assert after.current is not None
    assert after.best is not None
    assert (after.current.stale_from, after.current.value) == (written.previous, written.previous_value)
    assert after.best.skill.hash == written.previous == written.stale_from
    gate = of(CandidateGated, events)[0]
    assert (gate.verdict.stale_from, gate.verdict.current_value) == (written.previous, written.previous_value)
    assert not [event for event in of(SkillScored, events) if event.place.endswith("/current")]
    assert summarize(events[: events.index(written) + 1]).current.value == written.previous_value


def test_a_promoted_skill_has_the_score_it_was_promoted_for(tmp_path: Path) -> None:
    """Not the one that stood for it until then."""
    help_ = {"slow_update": {"slow_update_content": "\n".join(f"- know {kind}" for kind in KINDS)}}
    events = train(tmp_path, *SMALL, "train.num_epochs=2", "skillopt.follow=[stale_scores]", world=world_of(help_))
    [promoted] = of(BestPromoted, events)
    state = fold(events)
    assert state.best is not None
    assert (promoted.value, state.best.value, state.best.stale_from) == (1.0, 1.0, "")


def test_a_gated_slow_update_meets_an_old_score_in_the_original(tmp_path: Path) -> None:
    """After an epoch whose steps changed nothing, the skill with the placeholder has the score from before it."""
    world = world_of({"analyst": IDLE, "slow_update": {"slow_update_content": "- know apple"}})
    settings = (
        "skillopt.follow=[stale_scores]",
        "optimizer.slow_update_gate_with_selection=true",
        "train.num_epochs=2",
    )
    events = train(tmp_path, *settings, world=world)
    placeholder, gated = of(SlowUpdateApplied, events)
    assert (placeholder.verdict.action, gated.verdict.action) == ("placeholder", "accept_new_best")
    assert placeholder.verdict.stale_from == gated.verdict.stale_from != placeholder.skill.hash
    state = fold(events)
    assert state.current is not None
    assert (state.current.stale_from, state.current.value) == ("", gated.verdict.candidate_value)


def test_an_unchanged_candidate_goes_through_the_gate_in_the_original(tmp_path: Path) -> None:
    """A text with a score is rejected without a rollout; one that was never tried is tried."""
    world = world_of({"analyst": {"patch": {"edits": [{"op": "delete", "target": "not there"}]}}})
    settings = (
        "skillopt.follow=[gate_unchanged, stale_scores]",
        "optimizer.use_meta_skill=false",
        "optimizer.ask_again=false",
    )
    events = train(tmp_path, *settings, world=world)
    gates = of(CandidateGated, events)
    assert not of(StepSkipped, events)
    assert {gate.verdict.action for gate in gates} == {"reject"}
    scored = [event.place for event in of(SkillScored, events) if event.purpose == "selection"]
    # The placeholder's text is tried once; the text with guidance counts as measured until the run's end.
    assert scored == ["baseline", "e2/s4/gate", "final/val"]
    assert [bool(gate.verdict.stale_from) for gate in gates] == [False] * 3 + [True] * 6
    assert gates[-1].verdict.candidate_value == gates[-1].verdict.current_value
    assert len(fold(events).algorithm.buffer) == 3


def test_a_step_without_an_edit_is_gated_too_in_the_original(tmp_path: Path) -> None:
    """It counts as a rejected attempt there."""
    world = world_of({"analyst": edit("- know apple"), "merge": {"edits": []}})
    settings = ("train.num_epochs=1", "skillopt.follow=[gate_unchanged]", "optimizer.ask_again=false", NO_SLOW)
    events = train(tmp_path, *settings, world=world)
    assert {len(event.pool) for event in of(EditsRanked, events)} == {0}
    assert [gate.verdict.action for gate in of(CandidateGated, events)] == ["reject"] * 3


@pytest.mark.parametrize(("tests", "promoted"), [("true", 1), ("false", 0)])
def test_without_tests_nothing_is_promoted_in_the_original(tests: str, promoted: int, tmp_path: Path) -> None:
    """Its final validation belongs to the tests."""
    help_ = {"slow_update": {"slow_update_content": "\n".join(f"- know {kind}" for kind in KINDS)}}
    settings = ("train.num_epochs=2", "skillopt.follow=[promote_if_tested]", f"evaluation.eval_test={tests}")
    events = train(tmp_path, *SMALL, *settings, world=world_of(help_))
    assert len(of(BestPromoted, events)) == promoted
    assert len(of(RunCompleted, events)) == 1


def test_any_part_of_a_task_is_a_pass_in_the_original(tmp_path: Path) -> None:
    """For analysts and for comparisons."""
    world = world_of({"analyst": edit("- know apple")}, PartialEnvironment())
    events = train(tmp_path, "train.num_epochs=2", "skillopt.follow=[partial_passes]", world=world)
    assert {group.kind for event in of(MinibatchesPlanned, events) for group in event.groups} == {"success"}
    [proposed] = of(SlowUpdateProposed, events)
    assert {pair.category for pair in proposed.pairs} == {"stable_success"}
    assert all(not attempt.failed for attempt in fold(events).algorithm.buffer)


# --- all of them ---------------------------------------------------------------------------------------------------


def test_the_preset_turns_every_such_key(tmp_path: Path) -> None:
    """And nothing else that decides."""
    ours = config(tmp_path)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"_base_": "skillopt", **CONFIG}))
    theirs = load_config(tmp_path / "config.yaml")
    turned = {
        f"{section}.{key}"
        for section, values in theirs.resolved.items()
        if isinstance(values, dict)
        for key, value in values.items()
        if value != ours.resolved[section][key]  # type: ignore[index,call-overload]
    }
    assert theirs.skillopt.follow == get_args(SkillOptRule)
    assert turned == {
        "model.reasoning_effort",
        "gradient.max_trajectory_chars",
        "optimizer.ask_again",
        "optimizer.leak_span",
        "optimizer.skill_aware_max_notes",
        "skillopt.follow",
    }


def test_a_run_by_the_originals_rules_follows_and_keeps_its_order(tmp_path: Path) -> None:
    """Every step ends at the gate, guidance is forced, and no question is asked twice."""
    events = train(tmp_path, base="skillopt")
    assert of(RunCompleted, events)
    assert {event.verdict.action for event in of(SlowUpdateApplied, events)} == {"placeholder", "force_accept"}
    assert all(event.verdict.stale_from for event in of(SlowUpdateApplied, events))
    slots = call_slots(tmp_path / "run")
    assert len(slots) == len(set(slots))
    assert not any(slot.endswith("/again") for slot in slots)
