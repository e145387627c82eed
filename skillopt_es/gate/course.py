"""
What every algorithm does alike whose steps end at the gate: how a run begins, how a candidate is tried, and the end.

Pure: work and decisions from the core of a state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from skillopt_es.config import RunConfig
from skillopt_es.engine.algorithm import Decision, GatePolicy
from skillopt_es.engine.evaluations import fresh_evaluation, measure, selection, test_evaluations, unmeasured
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.engine.work import Contest, Decide, Work
from skillopt_es.events.catalog import (
    BestPromoted,
    CandidateBuilt,
    Event,
    RunCompleted,
    SealedTestOpened,
    TrainingStopped,
)
from skillopt_es.events.places import BASELINE, FINAL_BEST, FINAL_VAL
from skillopt_es.gate.certifying import certificate_decisions, closing_work
from skillopt_es.gate.verdicts import candidate_contest, candidate_gated, draw_work, is_better
from skillopt_es.projections.core import waiting
from skillopt_es.projections.state import AnyState, RunState, there

S = TypeVar("S")


def opening_work(state: AnyState, config: RunConfig, items: tuple[str, ...]) -> Work | None:
    """What is measured before anything is trained, and the draw that states the current text's score."""
    initial = state.started.skill
    if initial.hash not in state.measured:
        return measure(state, [selection(config, BASELINE, initial, items)])
    return measure(state, fresh_evaluation(state, config, items))


def unfit(state: RunState[S], config: RunConfig, built: CandidateBuilt, policy: GatePolicy[S], size: str) -> str:
    """Why a candidate does not meet the gate at all, as the reason of a skipped step; `size` is why it is too large."""
    if built.candidate.hash == built.parent:
        return "unchanged"
    if size:
        return "too_large"
    return "untrusted_only" if policy.doubts(state, config) else ""


def trial_work(state: RunState[S], config: RunConfig, built: CandidateBuilt, policy: GatePolicy[S]) -> Work | None:
    """What has to be run before the verdict over the open step's candidate; None when all is there."""
    terms = policy.terms(state, config)
    if config.evaluation.use_gate and not state.current.stale_from:
        return draw_work(state, terms.config, candidate_contest(state, config, built, policy))
    text = (policy.place(state).gate, built.candidate)
    return measure(state, unmeasured(state, config, [text], terms.items))


def final_contest(state: RunState[S], config: RunConfig, policy: GatePolicy[S]) -> Contest:
    """The final skill against the best one."""
    terms = policy.terms(state, config)
    return Contest(
        candidate=state.current.skill,
        standing=state.best,
        items=terms.items,
        candidate_place=FINAL_VAL,
        current_place=FINAL_BEST,
        told=terms.told,
    )


def usual_stop(state: AnyState, config: RunConfig) -> TrainingStopped | None:
    """Why a training ends before its last step, by the rules of all algorithms: an order, the score, patience."""
    train, value, since, done = config.train, state.best.value, state.best.step, state.steps_done
    if state.steering.stop:
        return TrainingStopped(step=done, reason="order", best_value=value, since=since)
    if train.target_score is not None and value is not None and value >= train.target_score:
        return TrainingStopped(
            step=done, reason="target_score", best_value=value, since=since, limit=train.target_score
        )
    if train.patience is not None and done - since >= train.patience:
        return TrainingStopped(step=done, reason="patience", best_value=value, since=since, limit=float(train.patience))
    return None


def final_work(state: RunState[S], config: RunConfig, policy: GatePolicy[S], most_fresh: int | None = None) -> Work:
    """
    What is left once nothing is trained any more: whether the final skill is the best, its certificate, the tests.

    The certificate's last batch has at most so many items, or as many as any other.
    """
    evaluation = config.evaluation
    may_promote = evaluation.eval_test or not config.follows("promote_if_tested")
    if may_promote and state.current.skill.hash != state.best.skill.hash:
        contest = final_contest(state, config, policy)
        waiting = draw_work(state, config, contest)
        if waiting is not None:
            return waiting
        if is_better(state, config, contest):
            return Decide("promote_best")
    closing = closing_work(state, config, most_fresh)
    if closing is not None:
        return closing
    testing = measure(state, test_evaluations(state, config))
    if testing is not None and config.env.seal_test and not state.looks.final:
        return Decide("open_test")
    return testing or Decide("complete_run")


def stop_training(state: AnyState, config: RunConfig, evidence: RecordedTexts) -> Event:
    """The end of training, by the first usual rule that holds."""
    return there(usual_stop(state, config), "rule that ends the training")


def _promote_best(state: AnyState, config: RunConfig, evidence: RecordedTexts) -> Event:
    final = state.current.skill.hash
    return BestPromoted(
        skill=final,
        value=there(state.measured[final].value, "value of the final skill"),
        previous=state.best.skill.hash,
        previous_value=state.best.value,
    )


def _open_test(state: AnyState, config: RunConfig, evidence: RecordedTexts) -> Event:
    return SealedTestOpened(look=state.looks.count + 1, by="final")


def _complete_run(state: AnyState, config: RunConfig, evidence: RecordedTexts) -> Event:
    best, final = state.best.skill.hash, state.current.skill.hash
    tests = {skill: scored.score for skill, scored in state.tests.items()}
    return RunCompleted(
        best=best,
        final=final,
        test_initial=tests.get(state.started.skill.hash),
        test_best=tests.get(best),
        test_final=tests.get(final),
    )


def gate_decisions(policy: GatePolicy[S]) -> Mapping[str, Decision[S]]:
    """The decisions that `final_work` asks for, the gate wherever it is asked, and the verdict on a candidate."""

    def gate_candidate(state: RunState[S], config: RunConfig, evidence: RecordedTexts) -> Event:
        return candidate_gated(state, config, waiting(state), policy)

    return {
        **certificate_decisions(policy),
        "gate_candidate": gate_candidate,
        "promote_best": _promote_best,
        "open_test": _open_test,
        "complete_run": _complete_run,
    }
