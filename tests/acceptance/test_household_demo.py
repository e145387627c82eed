"""The bundled household demo: ALFWorld's six types of task, trained offline in the built-in world."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.desk import Desk, Done
from support.logs import events_of
from support.made_alfworld import made_rows

from skillopt_es.events.catalog import CandidateGated, RolloutCompleted
from skillopt_es.sessions.session import read_state

CONFIG = Path(__file__).parents[2] / "configs" / "demo" / "alfworld.yaml"


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Desk, Done]:
    """A folder in which the household demo was run once, under the name `house`, and what was printed."""
    desk = Desk(tmp_path_factory.mktemp("household"))
    return desk, desk.run("run", str(CONFIG), "--run", "house", "--json", "--quiet")


@pytest.mark.slow
def test_the_household_demo_makes_the_skill_better(trained: tuple[Desk, Done]) -> None:
    """Validation rises step by step, and the tests, of which hardly any was solved, are solved at the end."""
    desk, done = trained
    assert (done.code, done.json["status"]) == (0, "completed")
    run = desk.folder / "runs" / "house"
    state = read_state(run)
    assert state.completed is not None
    assert state.completed.test_initial is not None
    assert state.completed.test_best is not None
    assert state.completed.test_best.hard > state.completed.test_initial.hard + 0.5
    gates = [event for event in events_of(run) if isinstance(event, CandidateGated)]
    risen = [event.verdict.candidate_value for event in gates if event.verdict.action == "accept_new_best"]
    assert len(risen) >= 3
    assert any(event.verdict.action == "reject" for event in gates)


@pytest.mark.slow
def test_every_type_of_task_is_tried_and_learned(trained: tuple[Desk, Done]) -> None:
    """The best skill solves tests of all six types, most of which take many turns."""
    desk, _ = trained
    rows = [event for event in events_of(desk.folder / "runs" / "house") if isinstance(event, RolloutCompleted)]
    best = [row for row in rows if row.place == "final/test/best"]
    assert len({row.task_type for row in best if row.outcome.hard == 1}) == 6  # type: ignore[union-attr]
    assert max(row.turns for row in best) > 5


@pytest.mark.slow
def test_its_decisions_can_be_derived_again(trained: tuple[Desk, Done]) -> None:
    """`replay --check` agrees with the log."""
    desk, _ = trained
    assert desk.run("replay", "house", "--check").code == 0


def test_the_bundled_games_are_what_the_script_makes() -> None:
    """`tests/support/made_alfworld.py` is where they come from."""
    bundled = (CONFIG.parent / "alfworld" / "items.jsonl").read_text(encoding="utf-8")
    assert [json.loads(line) for line in bundled.splitlines()] == list(made_rows())
