"""
What every program does alike whose steps end at the gate: a candidate's contest and verdict, and the end of the run.

Pure: tasks and decisions from the core of a state.
"""

from __future__ import annotations

from collections.abc import Mapping

from skillopt_es.engine.evaluations import Contest, measure, test_evaluations
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.engine.programs import Decision, program_at
from skillopt_es.engine.run_data import RunData
from skillopt_es.engine.tasks import Decide, Task
from skillopt_es.events.catalog import BestPromoted, CandidateGated, Event, RunCompleted, SealedTestOpened
from skillopt_es.events.places import FINAL_BEST, FINAL_VAL
from skillopt_es.gate.draws import draw_task
from skillopt_es.gate.verdicts import is_better, weighed
from skillopt_es.projections.state import AnyState


def candidate_contest(state: AnyState) -> Contest:
    """The candidate that waits for its verdict against the current skill, drawn at the open step's places."""
    place = program_at(state).place(state)
    assert state.built is not None
    assert state.current is not None
    return Contest(
        candidate=state.built.candidate,
        standing=state.current,
        candidate_place=place.gate,
        current_place=place.current,
    )


def candidate_gated(state: AnyState, run: RunData) -> CandidateGated:
    """The verdict over that candidate, which ends its step; everything that the rule wants must have been drawn."""
    assert state.built is not None
    assert state.best is not None
    contest = candidate_contest(state)
    return CandidateGated(
        step=state.built.step,
        candidate=contest.candidate.hash,
        verdict=weighed(state, run, contest, contest.against(state.best), use_gate=run.config.evaluation.use_gate),
    )


def final_contest(state: AnyState) -> Contest:
    """The final skill against the best one."""
    assert state.current is not None
    assert state.best is not None
    return Contest(
        candidate=state.current.skill,
        standing=state.best,
        candidate_place=FINAL_VAL,
        current_place=FINAL_BEST,
    )


def final_task(state: AnyState, run: RunData) -> Task:
    """What is left once nothing is trained any more: whether the final skill is the best, the tests, and the end."""
    assert state.current is not None
    assert state.best is not None
    evaluation = run.config.evaluation
    may_promote = evaluation.eval_test or evaluation.promote_without_tests
    if may_promote and state.current.skill.hash != state.best.skill.hash:
        contest = final_contest(state)
        waiting = draw_task(state, run, contest)
        if waiting is not None:
            return waiting
        if is_better(state, run, contest):
            return Decide("promote_best")
    testing = measure(state, test_evaluations(state, run))
    if testing is not None and run.config.env.seal_test and not state.looks.final:
        return Decide("open_test")
    return testing or Decide("complete_run")


def _promote_best(state: AnyState, run: RunData, evidence: RecordedTexts) -> Event:
    assert state.current is not None
    assert state.best is not None
    value = state.measured[state.current.skill.hash].value
    assert value is not None
    return BestPromoted(
        skill=state.current.skill.hash,
        value=value,
        previous=state.best.skill.hash,
        previous_value=state.best.value,
    )


def _open_test(state: AnyState, run: RunData, evidence: RecordedTexts) -> Event:
    return SealedTestOpened(look=state.looks.count + 1, by="final")


def _complete_run(state: AnyState, run: RunData, evidence: RecordedTexts) -> Event:
    assert state.current is not None
    assert state.best is not None
    best, final = state.best.skill.hash, state.current.skill.hash
    tests = {skill: scored.score for skill, scored in state.tests.items()}
    return RunCompleted(
        best=best,
        final=final,
        test_initial=tests.get(run.started.skill.hash),
        test_best=tests.get(best),
        test_final=tests.get(final),
    )


FINAL_DECISIONS: Mapping[str, Decision[object]] = {
    "promote_best": _promote_best,
    "open_test": _open_test,
    "complete_run": _complete_run,
}
"""The decisions that `final_task` asks for."""
