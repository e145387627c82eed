"""What classic training has the gate compare, and the verdicts on it: a step's candidate, an epoch's guidance. Pure."""

from __future__ import annotations

from skillopt_es.engine.evaluations import Contest
from skillopt_es.engine.run_data import RunData
from skillopt_es.events.places import Place
from skillopt_es.events.values import GateVerdict, SkillTree
from skillopt_es.gate.verdicts import weighed
from skillopt_es.programs.classic.state import ClassicState


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


def judged_guidance(state: ClassicState, run: RunData, candidate: SkillTree) -> GateVerdict:
    """The verdict over the open epoch's guidance, where it has to pass the gate."""
    assert state.best is not None
    contest = guidance_contest(state, candidate)
    return weighed(state, run, contest, contest.against(state.best), use_gate=True)
