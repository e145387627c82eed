"""Candidates before a model: each call is journaled, paid for once, and within a budget."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from attrs import evolve
from support.scripted import ScriptedModel, ScriptedWorld, config

from skillopt_es.algorithms.harvesting import HARVEST
from skillopt_es.errors import BackendError, BudgetReached
from skillopt_es.events.catalog import RunResumed, RunStarted
from skillopt_es.events.log import EventLog
from skillopt_es.events.verify import verify
from skillopt_es.harvest.mining import Candidate, Seen
from skillopt_es.ports import CallFailed, ChatRequest
from skillopt_es.sessions.harvesting import Answered, propose
from skillopt_es.sessions.session import read_state

FIRST = Candidate(
    id="a0",
    kind="note",
    asked="Write a note about the release",
    answered="It is out.",
    accepted=True,
    checks=(),
    rubric=(),
    tools=(),
    seen=(Seen(agent="codex", conversation="c", turn=1, when=""),),
    private={},
)
WAITING = tuple(evolve(FIRST, id=f"a{number}", asked=f"Write a note about release {number}") for number in range(4))
TASK = json.dumps(
    {"usable": True, "why": "", "input": "Write a note about a release.", "rubric": {"brief": "It is brief."}}
)


def asked(folder: Path, model: ScriptedModel, *settings: str, most: int = 4) -> list[Answered]:
    """What becomes of the candidates."""
    found: list[Answered] = []
    session = ScriptedWorld(optimizer=model).session()
    asyncio.run(propose(config(folder, settings), folder / "calls", WAITING[:most], session, found.append))
    return found


def test_what_was_answered_is_not_asked_again(tmp_path: Path) -> None:
    """The second command takes it from the journal, and says that it came."""
    model = ScriptedModel("o", lambda request: TASK)
    assert [each.candidate for each in asked(tmp_path, model, most=2)] == ["a0", "a1"]
    found = asked(tmp_path, model)
    assert len(model.asked) == 4
    assert all(each.proposal is not None and each.proposal.proposed is not None for each in found)
    with EventLog.open(tmp_path / "calls") as log:
        first, second = (each.event for each in log.read())
    assert isinstance(first, RunStarted)
    assert isinstance(second, RunResumed)
    assert first.algorithm == HARVEST.name
    assert verify(tmp_path / "calls").ok
    assert read_state(tmp_path / "calls").status == "running"


def test_a_budget_holds_over_all_commands(tmp_path: Path) -> None:
    """What was answered until then is there."""
    model = ScriptedModel("o", lambda request: TASK)
    with pytest.raises(BudgetReached, match="calls"):
        asked(tmp_path, model, "budget.max_calls=2")
    assert len(model.asked) == 2
    with pytest.raises(BudgetReached, match="calls"):
        asked(tmp_path, model, "budget.max_calls=3")
    assert len(model.asked) == 3
    assert len(asked(tmp_path, model)) == 4
    assert len(model.asked) == 4


def test_a_reply_that_cannot_be_read_is_asked_for_once_more(tmp_path: Path) -> None:
    """A second one leaves the candidate without a proposal, and a failed call can be tried again."""
    model = ScriptedModel("o", lambda request: "well")
    [found] = asked(tmp_path, model, most=1)
    assert found.proposal is None
    assert "no JSON object" in found.why
    assert len(model.asked) == 2


def test_an_endpoint_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """Every later call would fail, too."""

    def absent(request: ChatRequest) -> str:
        raise CallFailed("auth", "no key")

    with pytest.raises(BackendError, match="no key"):
        asked(tmp_path, ScriptedModel("o", absent))
