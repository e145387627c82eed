"""Scores and the gate: what is compared was measured, on the same items, and says so."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from support.logs import events_of
from support.scripted import (
    KINDS,
    Answer,
    PartialEnvironment,
    ScriptedModel,
    ScriptedWorld,
    config,
    optimizer_reply,
)

from skillopt_es.engine.algorithms import fold
from skillopt_es.errors import ConfigError
from skillopt_es.events.catalog import (
    BestPromoted,
    CandidateGated,
    EpochPlanned,
    Event,
    MinibatchesPlanned,
    RolloutCompleted,
    SkillScored,
    SlowUpdateProposed,
)
from skillopt_es.events.values import Measured
from skillopt_es.ports import ChatRequest
from skillopt_es.sessions.session import start


def train(folder: Path, *overrides: str, world: ScriptedWorld | None = None) -> list[Event]:
    """The events of a scripted run."""
    asyncio.run(start(config(folder, overrides), folder / "run", (world or ScriptedWorld()).session()))
    return events_of(folder / "run")


def gates(events: list[Event]) -> list[CandidateGated]:
    """The verdicts."""
    return [event for event in events if isinstance(event, CandidateGated)]


def one_kind_a_step(guidance: str) -> Answer:
    """An optimizer that teaches one kind of item a step, and this guidance at the end of an epoch."""

    def answer(request: ChatRequest) -> str:
        if request.stage == "slow_update":
            return json.dumps({"slow_update_content": guidance})
        if request.stage != "analyst":
            return optimizer_reply(request)
        skill = request.messages[1].content.split("~~~~")[1]
        unknown = [kind for kind in KINDS if f"know {kind}" not in skill][:1]
        return json.dumps({"patch": {"edits": [{"op": "append", "content": f"- know {kind}"} for kind in unknown]}})

    return answer


def world_with(guidance: str) -> ScriptedWorld:
    """A world with that optimizer."""
    return ScriptedWorld(optimizer=ScriptedModel("scripted optimizer", one_kind_a_step(guidance)))


def test_guidance_that_hurts_does_not_stall_the_run(tmp_path: Path) -> None:
    """Once forced, its text is measured: the next candidate meets what that reaches, not the score from before."""
    harm = "\n".join(f"- spoil {kind}" for kind in KINDS[:2])
    events = train(tmp_path, "optimizer.learning_rate=1", "train.batch_size=6", world=world_with(harm))
    planned = [index for index, event in enumerate(events) if isinstance(event, EpochPlanned)]
    before, after = gates(events[: planned[2]])[-1], gates(events[planned[2] :])[0]
    assert after.verdict.current_value is not None
    assert before.verdict.candidate_value == pytest.approx(4 / 6)
    assert after.verdict.current_value == pytest.approx(2 / 6)
    assert (after.verdict.candidate_value, after.verdict.action) == (pytest.approx(3 / 6), "accept")
    [measured] = [event for event in events if isinstance(event, SkillScored) and event.place == "e3/s5/current"]
    assert measured.value == after.verdict.current_value


def test_a_promoted_skill_is_current_and_best_with_one_score(tmp_path: Path) -> None:
    """Guidance that was forced at the very end is measured, wins, and there are not two numbers for one text."""
    help_ = "\n".join(f"- know {kind}" for kind in KINDS)
    settings = ("optimizer.learning_rate=1", "train.batch_size=6", "train.num_epochs=2")
    events = train(tmp_path, *settings, world=world_with(help_))
    [promoted] = [event for event in events if isinstance(event, BestPromoted)]
    assert promoted.previous_value is not None
    assert promoted.value == 1.0 > promoted.previous_value
    state = fold(events)
    assert state.best == state.current
    assert state.best is not None
    assert state.best.value == state.measured[promoted.skill].score.hard == 1.0


def test_the_gate_names_the_items_won_and_lost(tmp_path: Path) -> None:
    """A verdict can be traced to the items that turned."""
    results: dict[tuple[str, str], float] = {}
    checked = 0
    skill = ""
    for event in train(tmp_path, "optimizer.use_slow_update=false"):
        if isinstance(event, RolloutCompleted) and event.purpose == "selection":
            assert isinstance(event.outcome, Measured)
            results[event.skill, event.item] = event.outcome.hard
            skill = skill or event.skill
        if isinstance(event, CandidateGated):
            items = [item for known, item in results if known == event.candidate]
            change = {item: results[event.candidate, item] - results[skill, item] for item in items}
            assert event.verdict.won == tuple(item for item in items if change[item] > 0)
            assert event.verdict.lost == tuple(item for item in items if change[item] < 0)
            assert event.verdict.compared == len(items) == 12
            checked += bool(event.verdict.won) + bool(event.verdict.lost)
            skill = skill if event.verdict.action == "reject" else event.candidate
    assert checked


@pytest.mark.parametrize("metric", ["hard", "soft", "mixed"])
def test_the_compared_number_stands_beside_the_raw_means(metric: str, tmp_path: Path) -> None:
    """Nothing is called hard that is not: `value` is what was compared, `hard` and `soft` are the means."""
    settings = ("train.num_epochs=1", f"evaluation.gate_metric={metric}", "evaluation.gate_mixed_weight=0.25")
    events = train(tmp_path, *settings)
    for gate in gates(events):
        score = gate.verdict.candidate_score
        expected = {"hard": score.hard, "soft": score.soft, "mixed": 0.75 * score.hard + 0.25 * score.soft}
        assert gate.verdict.metric == metric
        assert gate.verdict.candidate_value == pytest.approx(expected[metric])
    assert any(gate.verdict.candidate_score.hard != gate.verdict.candidate_score.soft for gate in gates(events))


@pytest.mark.parametrize(("written", "used"), [("true", True), ("false", False), ("off", False), ("no", False)])
def test_every_spelling_of_no_turns_the_gate_off(written: str, used: bool, tmp_path: Path) -> None:
    """As YAML reads it."""
    assert config(tmp_path, [f"evaluation.use_gate={written}"]).evaluation.use_gate is used


@pytest.mark.parametrize("written", ["0", '"false"', "null", "1"])
def test_what_is_neither_yes_nor_no_is_no_gate_setting(written: str, tmp_path: Path) -> None:
    """It is refused instead of leaving the gate on."""
    with pytest.raises(ConfigError, match=r"evaluation.use_gate is .*, but must be true or false"):
        config(tmp_path, [f"evaluation.use_gate={written}"])


def test_a_part_of_a_task_is_no_pass(tmp_path: Path) -> None:
    """Analysts get it as a failure and comparisons as a failure that stays; the gate counts the fraction."""
    optimizer = ScriptedModel("scripted optimizer", one_kind_a_step("- take care"))
    settings = ("train.num_epochs=2", "train.batch_size=6", "optimizer.learning_rate=1")
    events = train(tmp_path, *settings, world=ScriptedWorld(environment=PartialEnvironment(), optimizer=optimizer))
    kinds = [group.kind for event in events if isinstance(event, MinibatchesPlanned) for group in event.groups]
    assert set(kinds) == {"failure"}
    [proposed] = [event for event in events if isinstance(event, SlowUpdateProposed)]
    assert {pair.category for pair in proposed.pairs} == {"persistent_fail"}
    outcomes = [e.outcome for e in events if isinstance(e, RolloutCompleted) and e.place.startswith("e2/slow")]
    assert {outcome.hard for outcome in outcomes if isinstance(outcome, Measured)} == {0.1, 0.9}
    assert any(gate.verdict.action == "accept_new_best" for gate in gates(events))


def test_a_candidate_that_was_measured_before_is_not_measured_again(tmp_path: Path) -> None:
    """The same text has one score; the verdict says where it comes from."""

    def stubborn(request: ChatRequest) -> str:
        if request.stage == "analyst":
            return json.dumps({"patch": {"edits": [{"op": "append", "content": "- spoil apple"}]}})
        if request.stage == "merge":
            return json.dumps({"edits": [{"op": "append", "content": "- spoil apple", "from": ["E1"]}]})
        return optimizer_reply(request)

    world = ScriptedWorld(optimizer=ScriptedModel("scripted optimizer", stubborn))
    events = train(tmp_path, "train.num_epochs=1", "optimizer.use_slow_update=false", world=world)
    first, *others = gates(events)
    assert (first.verdict.known_from, len(others)) == ("", 2)
    assert {gate.verdict.known_from for gate in others} == {"e1/s1/gate"}
    measured = [event.place for event in events if isinstance(event, SkillScored) and event.purpose == "selection"]
    assert measured == ["baseline", "e1/s1/gate"]
