"""Whoever watches a run is told each task before it begins and each event after it is recorded."""

from __future__ import annotations

import asyncio
from pathlib import Path

from attrs import Factory, define
from support.logs import events_of
from support.scripted import ScriptedEnvironment, ScriptedWorld, config

from skillopt_es.engine.loop import waiting_for
from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.projections.state import RunState
from skillopt_es.sessions.session import start


@define
class Watching:
    """Notes what it is told."""

    told: list[tuple[str, int]] = Factory(list)

    def planned(self, task: object, state: object) -> None:
        """A task begins."""
        self.told.append(("planned", len(self.told)))

    def happened(self, seq: int, event: object, state: object) -> None:
        """An event is recorded."""
        self.told.append(("happened", seq))

    def called(self, row: object) -> None:
        """A call is recorded."""


def test_an_observer_hears_of_every_event_once_and_in_order(tmp_path: Path) -> None:
    """Its task came before it."""
    watching = Watching()
    world = ScriptedWorld(environment=ScriptedEnvironment(train=3, val=2, test=1))
    settings = config(tmp_path, ("train.num_epochs=1", "train.batch_size=3"))
    asyncio.run(start(settings, tmp_path / "run", world.session(observers=(watching,))))
    happened = [number for what, number in watching.told if what == "happened"]
    assert happened == list(range(happened[0], len(events_of(tmp_path / "run")) + 1))
    assert watching.told.index(("happened", happened[-1])) > [what for what, _ in watching.told].index("planned")


@define
class Comparing(Watching):
    """Notes the attempts that are not yet in the state that comes with them."""

    missing: list[str] = Factory(list)

    def happened(self, seq: int, event: object, state: object) -> None:
        """An event is recorded."""
        if isinstance(event, RolloutCompleted):
            self.told.append((event.item, seq))
            assert isinstance(state, RunState)
            self.missing += [] if event.item in state.rollouts.get(event.place, {}) else [event.item]


def test_an_observer_is_given_a_state_that_holds_the_event(tmp_path: Path) -> None:
    """Attempts that end together are folded together: the state may hold those after it, too."""
    comparing = Comparing()
    world = ScriptedWorld(environment=ScriptedEnvironment(train=3, val=2, test=1))
    settings = config(tmp_path, ("train.num_epochs=1", "train.batch_size=3"))
    asyncio.run(start(settings, tmp_path / "run", world.session(observers=(comparing,))))
    assert comparing.told
    assert not comparing.missing


def test_a_pause_counts_the_questions_that_wait() -> None:
    """In a sentence."""
    assert waiting_for(1) == "1 question waits for its answer"
    assert waiting_for(2) == "2 questions wait for their answers"
