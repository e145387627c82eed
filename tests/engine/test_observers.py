"""Observers look on: whatever one of them raises, the run and the other observers continue."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from attrs import Factory, define
from support.crashes import Crash
from support.logs import events_of
from support.scripted import ScriptedEnvironment, ScriptedWorld, config

from skillopt_es.logs import as_json, listening
from skillopt_es.sessions.session import read_state, start

METHODS = ("planned", "happened", "called")


@define
class Raising:
    """An observer that raises in one of its methods, and counts how often it was called there."""

    method: str
    error: BaseException
    times: int = 0

    def planned(self, *_: object) -> None:
        """A task begins."""
        self._seen("planned")

    def happened(self, *_: object) -> None:
        """An event is recorded."""
        self._seen("happened")

    def called(self, *_: object) -> None:
        """A call is recorded."""
        self._seen("called")

    def _seen(self, method: str) -> None:
        if method == self.method:
            self.times += 1
            raise self.error


@define(eq=False)
class SameAsAll:
    """An observer that is equal to every other one."""

    raises: bool = False
    seen: int = 0

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]

    def planned(self, *_: object) -> None:
        """A task begins."""

    def happened(self, *_: object) -> None:
        """An event is recorded."""
        self.seen += 1
        if self.raises:
            raise ValueError

    def called(self, *_: object) -> None:
        """A call is recorded."""


@define
class Counting:
    """An observer that counts events."""

    seen: list[int] = Factory(list)

    def planned(self, *_: object) -> None:
        """A task begins."""

    def happened(self, seq: int, *_: object) -> None:
        """An event is recorded."""
        self.seen.append(seq)

    def called(self, *_: object) -> None:
        """A call is recorded."""


def trained(folder: Path, *observers: object) -> tuple[Path, list[str], list[str]]:
    """A run with these observers; its folder, its warnings, and its lines for log tools."""
    warnings: list[str] = []
    lines: list[str] = []
    world = ScriptedWorld(environment=ScriptedEnvironment(train=3, val=2, test=1))
    settings = config(folder, ("train.num_epochs=1", "train.batch_size=3"))
    session = world.session(observers=observers, warn=warnings.append)
    with listening(lambda line: lines.append(as_json(line))):
        asyncio.run(start(settings, folder / "run", session))
    return folder / "run", warnings, lines


def test_of_two_equal_observers_only_the_one_that_raised_is_left_out(tmp_path: Path) -> None:
    """Equality is the observer's own, and says nothing of which one it is."""
    calm, raising = SameAsAll(), SameAsAll(raises=True)
    trained(tmp_path, calm, raising)
    assert raising.seen == 1
    assert calm.seen > 1


@pytest.mark.parametrize("method", METHODS)
def test_an_observer_that_raises_is_left_out_and_the_run_is_the_same(tmp_path: Path, method: str) -> None:
    """It is called once, one warning says so, the log tools get the traceback, and other observers see every event."""
    plain, none, _ = trained(tmp_path / "plain")
    raising, counting = Raising(method, ValueError("no disk")), Counting()
    run, warnings, lines = trained(tmp_path / "raising", raising, counting)
    said = "the observer Raising raised ValueError: no disk; the run continues without this observer"
    assert said not in none
    assert warnings == [*none, said]
    assert raising.times == 1
    assert read_state(run).status == "completed"
    assert events_of(run)[1:] == events_of(plain)[1:]
    assert counting.seen == list(range(1, len(events_of(run)) + 1))
    [failed] = [line for line in map(json.loads, lines) if line["event"] == "observer_failed"]
    assert "in _seen" in failed["exception"]
    assert failed["exception"].endswith("ValueError: no disk")


@pytest.mark.parametrize("method", METHODS)
def test_what_ends_the_process_passes_through_an_observer(tmp_path: Path, method: str) -> None:
    """Anything that is no plain error is meant for more than the observer."""
    with pytest.raises(Crash, match="stop"):
        trained(tmp_path, Raising(method, Crash("stop")))
