"""Training on: a new run from another one's best skill, with what was learned there."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest
from attrs import evolve
from support.logs import events_of
from support.scripted import ScriptedModel, ScriptedWorld, config, optimizer_reply

from skillopt_es.algorithms.classic.state import Classic
from skillopt_es.audit.descent import Evidence
from skillopt_es.audit.retracting import retracted
from skillopt_es.errors import ConfigError, DataError
from skillopt_es.events.catalog import EpochPlanned, RunCompleted, RunStarted
from skillopt_es.ports import ChatRequest
from skillopt_es.sessions.continuing import read_before
from skillopt_es.sessions.session import read_state, start, train_on

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
SETTINGS = ("train.num_epochs=2", "train.batch_size=4")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that is complete."""
    folder = tmp_path_factory.mktemp("trained")
    asyncio.run(start(config(folder, SETTINGS), folder / "first", ScriptedWorld().session()))
    return folder / "first"


def begun(folder: Path) -> RunStarted:
    """A run's first event."""
    first = events_of(folder)[0]
    assert isinstance(first, RunStarted)
    return first


def test_a_run_is_trained_on_with_what_was_learned(trained: Path, tmp_path: Path) -> None:
    """From the best skill, with the last epoch's tries and the notes; the first run stays as it is."""
    state = read_state(trained)
    assert isinstance(state.algorithm, Classic)
    before = read_before(trained, ("train.num_epochs=1",))
    shown: list[str] = []

    def noting(request: ChatRequest) -> str:
        shown.extend(message.content for message in request.messages if request.stage == "analyst")
        return optimizer_reply(request)

    world = ScriptedWorld(optimizer=ScriptedModel("optimizer", noting))
    asyncio.run(train_on(before, tmp_path / "on", world.session()))
    assert state.best is not None
    first = begun(tmp_path / "on")
    assert first.skill == state.best.skill
    assert first.total_steps == first.steps_per_epoch
    assert first.learned is not None
    assert (first.learned.run, first.learned.seq) == ("first", len(events_of(trained)))
    assert [each.step for each in first.learned.tried] == [each.step for each in state.algorithm.buffer]
    assert all(each.before for each in first.learned.tried)
    [epoch] = [event for event in events_of(tmp_path / "on") if isinstance(event, EpochPlanned)]
    assert epoch.meta_skill == state.algorithm.meta_skill != ""
    assert isinstance(events_of(tmp_path / "on")[-1], RunCompleted)
    assert any("of the training before this one" in text for text in shown)


def test_what_cannot_be_continued_says_why(trained: Path, tmp_path: Path) -> None:
    """A key that is unknown, and other data: what was measured would be of other tasks."""
    with pytest.raises(ConfigError, match="unknown key"):
        read_before(trained, ("train.num_epoch=1",))
    world = ScriptedWorld()
    smaller = evolve(world, environment=evolve(world.environment, train=3))
    with pytest.raises(DataError, match="items are not those"):
        asyncio.run(train_on(read_before(trained, ()), tmp_path / "on", smaller.session()))


def test_an_item_cannot_be_retracted_from_what_another_run_learned(trained: Path, tmp_path: Path) -> None:
    """No moment of the new run is before it met the item."""
    asyncio.run(train_on(read_before(trained, ("train.num_epochs=1",)), tmp_path / "on", ScriptedWorld().session()))
    with pytest.raises(ConfigError, match="began with what first had learned") as refused:
        retracted(tmp_path / "on", Evidence("t0"), tmp_path / "fork", reason="wrong", by="me", now=lambda: MOMENT)
    assert "retract it from first" in refused.value.hint
    assert not (tmp_path / "fork").exists()
