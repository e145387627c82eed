"""What classic training has the gate compare, and the verdicts on it: a step's candidate, an epoch's guidance. Pure."""

from __future__ import annotations

from skillopt_es.engine.run_data import RunData
from skillopt_es.events.catalog import CandidateGated, Event
from skillopt_es.events.places import FINAL_BEST, FINAL_VAL, Place
from skillopt_es.events.values import GateVerdict, SkillTree
from skillopt_es.gate.draws import Contest
from skillopt_es.gate.verdicts import weighed
from skillopt_es.programs.classic.state import ClassicState, open_step


def step_contest(state: ClassicState) -> Contest:
    """The open step's candidate against the current skill."""
    _, place = open_step(state)
    assert state.built is not None
    assert state.current is not None
    return Contest(
        candidate=state.built.candidate,
        standing=state.current,
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
        standing=state.current,
        candidate_place=place.gate,
        current_place=place.standing,
    )


def final_contest(state: ClassicState) -> Contest:
    """The final skill against the best one."""
    assert state.current is not None
    assert state.best is not None
    return Contest(
        candidate=state.current.skill,
        standing=state.best,
        candidate_place=FINAL_VAL,
        current_place=FINAL_BEST,
    )


def gate_candidate(state: ClassicState, run: RunData) -> Event:
    """The verdict over the open step's measured candidate."""
    contest = step_contest(state)
    return CandidateGated(
        step=open_step(state)[0].number,
        candidate=contest.candidate.hash,
        verdict=_judged(state, run, contest, use_gate=run.config.evaluation.use_gate),
    )


def judged_guidance(state: ClassicState, run: RunData, candidate: SkillTree) -> GateVerdict:
    """The verdict over the open epoch's guidance, where it has to pass the gate."""
    return _judged(state, run, guidance_contest(state, candidate), use_gate=True)


def _judged(state: ClassicState, run: RunData, contest: Contest, *, use_gate: bool) -> GateVerdict:
    assert state.best is not None
    return weighed(state, run, contest, contest.against(state.best), use_gate=use_gate)
