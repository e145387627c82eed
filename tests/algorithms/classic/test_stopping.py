"""A stop rule ends the search between two steps, for a reason that is recorded and follows from the evidence."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from support.logs import events_of
from support.params import parametrized
from support.scripted import ScriptedModel, ScriptedWorld, config, optimizer_reply

from skillopt_es.audit.check import check
from skillopt_es.engine.algorithms import fold
from skillopt_es.events.catalog import (
    CandidateGated,
    EpochCompleted,
    EpochPlanned,
    Event,
    RunCompleted,
    SkillScored,
    StepSkipped,
    TrainingStopped,
)
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.ports import ChatRequest
from skillopt_es.sessions.session import resume, start


def useless(request: ChatRequest) -> str:
    """An optimizer whose edits never win."""
    if request.stage == "analyst":
        edits = [{"op": "append", "target": "", "content": "- say please"}]
        return json.dumps({"failure_summary": [], "patch": {"reasoning": "", "edits": edits}})
    return optimizer_reply(request)


def trained(folder: Path, *rules: str, optimizer: object = optimizer_reply) -> list[Event]:
    """A run under these rules, which follows from its evidence; its events."""
    run = folder / "run"
    world = ScriptedWorld(optimizer=ScriptedModel("scripted optimizer", optimizer))  # type: ignore[arg-type]
    asyncio.run(start(config(folder, rules), run, world.session()))
    with EventLog.open(run) as log:
        assert asyncio.run(check(log, Journal(log.reader), run)).mismatch is None
    return events_of(run)


def steps_in(events: list[Event]) -> int:
    """How many steps were finished."""
    return sum(isinstance(event, CandidateGated | StepSkipped) for event in events)


def stop_in(events: list[Event]) -> TrainingStopped:
    """The one stop."""
    [stopped] = [event for event in events if isinstance(event, TrainingStopped)]
    return stopped


def test_patience_ends_after_so_many_steps_without_a_new_best(tmp_path: Path) -> None:
    """In the middle of an epoch, whose end is not done; the tests are."""
    events = trained(tmp_path, "train.patience=2", optimizer=useless)
    stopped = stop_in(events)
    assert (stopped.reason, stopped.step, stopped.since, stopped.limit) == ("patience", 2, 0, 2.0)
    assert steps_in(events) == 2
    assert not any(isinstance(event, EpochCompleted) for event in events)
    assert isinstance(events[-1], RunCompleted)
    assert events[-1].test_best is not None


def test_patience_counts_from_the_last_best(tmp_path: Path) -> None:
    """A step that wins begins the count anew."""
    events = trained(tmp_path, "train.patience=3", "train.num_epochs=6")
    stopped = stop_in(events)
    wins = [e.step for e in events if isinstance(e, CandidateGated) and e.verdict.action == "accept_new_best"]
    assert stopped.since == wins[-1]
    assert stopped.step == wins[-1] + 3 == steps_in(events)


def test_a_target_that_is_reached_ends_the_search(tmp_path: Path) -> None:
    """With the first skill that is measured to be that good; before the first step when the initial one is."""
    whole = trained(tmp_path / "whole")
    values = [
        e.verdict.candidate_value
        for e in whole
        if isinstance(e, CandidateGated) and e.verdict.action == "accept_new_best"
    ]
    events = trained(tmp_path / "a", f"train.target_score={values[0]}")
    stopped = stop_in(events)
    assert (stopped.reason, stopped.best_value, stopped.step) == ("target_score", values[0], steps_in(events))
    assert events[1 : events.index(stopped)] == whole[1 : events.index(stopped)]
    at_once = trained(tmp_path / "b", "train.target_score=0")
    assert stop_in(at_once).step == 0
    assert not any(isinstance(event, EpochPlanned) for event in at_once)
    assert [e.place for e in at_once if isinstance(e, SkillScored)] == ["baseline", "final/test/initial"]


@parametrized("rule", ["train.patience=2", "train.target_score=0.5"], by_default=1)
def test_a_stop_anywhere_leads_to_the_same_stop(rule: str, tmp_path: Path) -> None:
    """A run that is interrupted and resumed ends by the same rule at the same step."""
    wanted = [event for event in trained(tmp_path / "whole", rule) if isinstance(event, TrainingStopped)]
    run = tmp_path / "cut" / "run"
    world = ScriptedWorld()
    with pytest.raises(BaseException, match="stopped as asked"):
        asyncio.run(start(config(tmp_path / "cut", [rule]), run, world.session(stopping=lambda: world.calls > 60)))
    asyncio.run(resume(run, ScriptedWorld().session()))
    events = events_of(run)
    assert [event for event in events if isinstance(event, TrainingStopped)] == wanted
    assert fold(events).status == "completed"
