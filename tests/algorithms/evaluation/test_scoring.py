"""Where the results of an evaluation are found again."""

from __future__ import annotations

from pathlib import Path

from skillopt_es.algorithms.evaluation.scoring import passes
from skillopt_es.events.places import Place
from skillopt_es.sessions.session import read_state


def test_the_results_of_a_draw_are_recorded_at_its_own_place(demo_run: Path) -> None:
    """What was never drawn has none."""
    state = read_state(demo_run)
    for place in map(Place, state.rollouts):
        assert passes(state, place) == [place]
    assert passes(state, Place("eval/val")) == []
