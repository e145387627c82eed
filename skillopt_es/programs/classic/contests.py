"""The two texts that classic training has the gate compare: at a step's end, and at an epoch's. Pure."""

from __future__ import annotations

from skillopt_es.engine.run_data import RunData
from skillopt_es.events.catalog import CandidateGated, Event
from skillopt_es.events.places import Place
from skillopt_es.events.values import SkillTree
from skillopt_es.gate.draws import Contest
from skillopt_es.gate.stale import counts_as_measured
from skillopt_es.gate.verdicts import first_place, weighed
from skillopt_es.programs.classic.state import ClassicState, open_step


def step_contest(state: ClassicState) -> Contest:
    """The open step's candidate against the current skill."""
    _, place = open_step(state)
    assert state.built is not None
    assert state.current is not None
    return Contest(
        candidate=state.built.candidate,
        current=state.current.skill,
        candidate_place=place.gate,
        current_place=place.current,
    )


def guidance_contest(state: ClassicState, candidate: SkillTree) -> Contest:
    """The open epoch's guidance against the current skill."""
    assert state.program.epoch is not None
    assert state.current is not None
    place = Place.of_epoch(state.program.epoch.number).slow
    return Contest(
        candidate=candidate,
        current=state.current.skill,
        candidate_place=place.gate,
        current_place=place.standing,
    )


def gate_candidate(state: ClassicState, run: RunData) -> Event:
    """The verdict over the open step's measured candidate."""
    step, place = open_step(state)
    assert state.built is not None
    assert state.current is not None
    assert state.best is not None
    contest = step_contest(state)
    stale = state.current.stale_from
    no_op = counts_as_measured(state, run, state.built.candidate)
    measured_at = first_place(state, stale if no_op else state.built.candidate.hash)
    found = weighed(state, run, contest, use_gate=run.config.evaluation.use_gate)
    return CandidateGated(
        step=step.number,
        candidate=state.built.candidate.hash,
        action=found.action,
        metric=run.config.evaluation.gate_metric,
        candidate_score=found.candidate_score,
        candidate_value=found.candidate_value,
        current_score=found.current_score,
        current_value=found.current_value,
        best_value=state.best.value,
        compared=found.compared,
        won=found.won,
        lost=found.lost,
        known_from="" if measured_at == place.gate else measured_at,
        stale_from=stale,
        rule=found.rule,
        reason=found.reason,
        draws=found.draws,
        current_draws=found.current_draws,
        error=found.error,
        exact=found.exact,
    )
