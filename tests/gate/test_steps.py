"""Which skills meet at the end of a step and of a run, and at which places."""

from __future__ import annotations

from pathlib import Path

from support.tamper import cut_off, seqs_of

from skillopt_es.algorithms.classic.algorithm import CLASSIC
from skillopt_es.engine.run_config import config_of_run
from skillopt_es.events.catalog import CandidateBuilt
from skillopt_es.events.places import FINAL_BEST, FINAL_VAL
from skillopt_es.gate.course import final_contest
from skillopt_es.gate.verdicts import candidate_contest
from skillopt_es.sessions.session import read_state


def test_a_candidate_meets_the_skill_that_stands(demo_run: Path, tmp_path: Path) -> None:
    """At places of its step, one for each side."""
    built = seqs_of(demo_run, CandidateBuilt)[0]
    state = read_state(cut_off(demo_run, tmp_path / "cut", built))
    assert state.built is not None
    contest = candidate_contest(state, config_of_run(state.started, demo_run), state.built, CLASSIC.gate)
    assert (contest.candidate, contest.standing) == (state.built.candidate, state.current)
    assert contest.candidate_place != contest.current_place
    assert contest.candidate_place.step == contest.current_place.step == state.built.step


def test_at_the_end_the_final_skill_meets_the_best(demo_run: Path) -> None:
    """It may be the same one."""
    state = read_state(demo_run)
    contest = final_contest(state, config_of_run(state.started, demo_run), CLASSIC.gate)
    assert (contest.candidate, contest.standing) == (state.current.skill, state.best)
    assert (contest.candidate_place, contest.current_place) == (FINAL_VAL, FINAL_BEST)
