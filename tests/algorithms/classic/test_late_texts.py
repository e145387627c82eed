"""Advice that could not be had at an epoch's end is asked for again between the steps that follow, and applied then."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from engine.test_crashes import KillAt, in_child
from support.logs import call_slots, decisions_of, events_of
from support.params import parametrized
from support.scripted import ScriptedModel, ScriptedWorld, config, optimizer_reply

from skillopt_es.audit.check import check
from skillopt_es.events.catalog import (
    CandidateGated,
    EpochPlanned,
    Event,
    MetaSkillWritten,
    RunPaused,
    SlowUpdateApplied,
    SlowUpdateProposed,
    StepSkipped,
)
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.ports import CallFailed, ChatRequest
from skillopt_es.sessions.session import read_state, resume, start
from skillopt_es.skill.regions import slow_guidance

GATED = "optimizer.slow_update_gate_with_selection=true"


def lost(*slots: str, how: str = "outage") -> ScriptedWorld:
    """A world whose optimizer has nothing to say at these slots."""

    def answer(request: ChatRequest) -> str:
        if request.slot.removesuffix("/again") not in slots:
            return optimizer_reply(request)
        if how == "outage":
            raise CallFailed("server", "503")
        return "no"

    return ScriptedWorld(optimizer=ScriptedModel("scripted optimizer", answer))


def train(folder: Path, world: ScriptedWorld, *overrides: str) -> list[Event]:
    """The events of a whole run, whose every decision follows."""
    run = folder / "run"
    asyncio.run(start(config(folder, overrides), run, world.session()))
    with EventLog.open(run) as log:
        assert asyncio.run(check(log, Journal(log.reader), run)).mismatch is None
    return events_of(run)


def ends(event: Event) -> bool:
    """Whether an event ends a step."""
    return isinstance(event, CandidateGated | StepSkipped)


@pytest.mark.parametrize("how", ["outage", "useless"])
@parametrized("gate", ["true", "false"], by_default=1)
def test_it_comes_after_the_next_step(how: str, gate: str, tmp_path: Path) -> None:
    """Guidance and memory of epoch 2, after the first step of epoch 3; nothing pauses, and each is asked once more."""
    world = lost("e2/slow/advice", "e2/meta", how=how)
    events = train(tmp_path, world, f"optimizer.slow_update_gate_with_selection={gate}")
    assert not any(isinstance(event, RunPaused) for event in events)
    memories = [event for event in events if isinstance(event, MetaSkillWritten) and event.epoch == 2]
    proposed = [event for event in events if isinstance(event, SlowUpdateProposed) and event.epoch == 2]
    applied = [event for event in events if isinstance(event, SlowUpdateApplied) and event.epoch == 2]
    first = "failed" if how == "outage" else "unusable"
    assert [event.result for event in proposed] == [first, "guidance"]
    assert [event.result for event in memories] == [first, "written"]
    assert next(event.verdict.action for event in applied) == "postponed"
    assert applied[1].verdict.action in ("force_accept", "accept", "accept_new_best", "reject")
    assert proposed[1].pairs == proposed[0].pairs, "it stands on what was compared at the epoch's end"
    [planned] = [place for place, event in enumerate(events) if isinstance(event, EpochPlanned) and event.epoch == 3]
    late = events.index(proposed[1])
    assert [ends(event) for event in events[planned:late]].count(True) == 1
    assert sum(slot.startswith("e2/slow/advice/after-s7") for slot in call_slots(tmp_path / "run")) == 1


def test_guidance_that_comes_late_is_in_the_skill_and_memory_in_the_prompts(tmp_path: Path) -> None:
    """For what is left of the epoch."""
    seen: dict[str, str] = {}
    world = lost("e2/slow/advice", "e2/meta")
    answer = world.optimizer._answer

    def noting(request: ChatRequest) -> object:
        seen[request.slot] = request.messages[1].content
        return answer(request)

    world.optimizer._answer = noting  # type: ignore[assignment]
    events = train(tmp_path, world)
    [memory] = [e.content for e in events if isinstance(e, MetaSkillWritten) and e.epoch == 2 and e.content]
    [guidance] = [e.guidance for e in events if isinstance(e, SlowUpdateProposed) and e.epoch == 2 and e.guidance]
    before = [text for slot, text in seen.items() if slot.startswith("e3/s7/b0")]
    after = [text for slot, text in seen.items() if slot.startswith(("e3/s8/b0", "e3/s9/b0"))]
    assert not any(memory in text or guidance in text for text in before)
    assert after
    assert all(memory in text and guidance in text for text in after)


def test_the_last_epoch_is_asked_once_more_before_the_end(tmp_path: Path) -> None:
    """For guidance alone; the final skill has it."""
    world = lost("e3/slow/advice", "e3/meta")
    train(tmp_path, world)
    asked = [slot for slot in world.optimizer.asked if slot.startswith(("e3/slow/advice", "e3/meta"))]
    assert asked == ["e3/slow/advice", "e3/meta", "e3/slow/advice/after-s9"]
    state = read_state(tmp_path / "run")
    assert state.status == "completed"
    assert state.algorithm.owed is None
    assert state.current is not None
    assert slow_guidance(state.current.skill.text)


def test_an_optimizer_that_stays_away_is_asked_between_steps_and_given_up(tmp_path: Path) -> None:
    """The next epoch's own advice takes the place of the lost one."""
    slots = ["e2/slow/advice", *(f"e2/slow/advice/after-s{step}" for step in (7, 8, 9))]
    world = lost(*slots)
    events = train(tmp_path, world)
    assert [slot for slot in world.optimizer.asked if slot.startswith("e2/slow/advice")] == slots
    actions = [(event.epoch, event.verdict.action) for event in events if isinstance(event, SlowUpdateApplied)]
    assert actions == [(1, "placeholder"), (2, "postponed"), (3, "force_accept")]
    assert read_state(tmp_path / "run").algorithm.owed is None


@pytest.mark.slow
def test_a_run_that_is_killed_while_it_asks_again_ends_the_same(tmp_path: Path) -> None:
    """When the advice was lost, and when it comes after all."""

    def world() -> ScriptedWorld:
        return lost("e2/slow/advice", "e2/meta")

    whole = train(tmp_path / "whole", world(), GATED)
    [first, *_] = [at for at, event in enumerate(whole) if isinstance(event, SlowUpdateProposed)]
    last = max(at for at, event in enumerate(whole) if isinstance(event, SlowUpdateApplied) and event.epoch == 2)

    def begin(folder: Path, seq: int) -> Callable[[], None]:
        session = world().session(observers=(KillAt(event=seq),))
        return lambda: asyncio.run(start(config(folder, [GATED]), folder / "run", session)) and None

    for seq in [first + 1, first + 2, *range(last - 2, last + 2)]:
        folder = tmp_path / str(seq)
        assert in_child(begin(folder, seq)) == signal.SIGKILL
        asyncio.run(resume(folder / "run", world().session()))
        assert decisions_of(folder / "run") == decisions_of(tmp_path / "whole" / "run")
