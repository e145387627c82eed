"""`replay --check` of an evaluation: its rollouts are evidence, and every score follows from them."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import evolve as changed
from attrs import frozen

from skillopt_es.engine import scores
from skillopt_es.engine.differences import (
    ILLEGAL,
    Mismatch,
    all_of,
    cannot_go_on,
    differences,
    mismatch,
)
from skillopt_es.engine.fold import evolve
from skillopt_es.engine.run_data import RunData
from skillopt_es.engine.tasks import Evaluation
from skillopt_es.events.catalog import (
    Recorded,
    RolloutCompleted,
    RunPaused,
    RunResumed,
    RunStarted,
    SealedTestOpened,
    SkillScored,
    TextsErased,
)
from skillopt_es.events.places import evaluated
from skillopt_es.projections.state import AnyState, RunState


@frozen(kw_only=True)
class EvaluationWalk:
    """How far an evaluation's log follows."""

    events: int
    decisions: int
    rollouts: int
    mismatches: tuple[Mismatch, ...]


def is_evaluation(started: RunStarted) -> bool:
    """Whether a log's first event begins an evaluation, which has no steps, and no training run."""
    return started.total_steps == 0 and started.steps_per_epoch == 0


def check_evaluation(run: RunData, events: Iterator[Recorded]) -> EvaluationWalk:
    """Walks the events after the first one; what does not follow is noted and taken as it is recorded."""
    # How much may be missing is a setting of each `eval`; that a score was given is evidence, not which it is.
    shares = changed(run.config.rollout, max_failed_share=1, max_failed_share_train=1, max_unanswered_share=1)
    anything = changed(run.config, rollout=shares)
    run = changed(run, config=anything)
    state = evolve(RunState[object](), run.started)
    seen = scored = rollouts = 0
    found: list[Mismatch] = []
    for recorded in events:
        wrong = _problem(recorded, state, run)
        if wrong is not None:
            found.append(wrong)
        else:
            seen += 1
        scored += isinstance(recorded.event, SkillScored)
        rollouts += isinstance(recorded.event, RolloutCompleted)
        try:
            state = evolve(state, recorded.event)
        except ILLEGAL as error:
            if not found:  # in a log whose events all followed so far, it is ours to mend
                raise
            found.append(cannot_go_on(recorded, error))
            break
    return EvaluationWalk(events=seen + 1, decisions=scored, rollouts=rollouts, mismatches=all_of(found))


def _problem(recorded: Recorded, state: AnyState, run: RunData) -> Mismatch | None:
    event, skill = recorded.event, run.started.skill
    match event:
        case RunPaused() | RunResumed() | TextsErased() | SealedTestOpened(by="eval"):
            return None
        case RolloutCompleted() if _sealed(event.item, state, run):
            return mismatch(recorded, "is of a sealed test item, and nothing says that the seal was opened")
        case RolloutCompleted():
            found = {"skill": event.skill, "purpose": event.purpose}
            wanted = {"skill": skill.hash, "purpose": "test"}
            return None if found == wanted else mismatch(recorded, f"is of {found}, but {wanted} is evaluated")
        case SkillScored() if event.place in state.rollouts and evaluated(event.split).holds(event.place):
            items = tuple(state.rollouts[event.place])
            evaluation = Evaluation(
                place=event.place, purpose="test", split=event.split, items=items, skill=skill, seed=0
            )
            derived = scores.score(evaluation, state, run)
            if derived == event:
                return None
            if isinstance(derived, SkillScored):
                return mismatch(recorded, "", differences(event, derived))
    return mismatch(recorded, "has no place in an evaluation, or nothing was tried before it")


def _sealed(item: str, state: AnyState, run: RunData) -> bool:
    return run.config.env.seal_test and not state.looks.opened and item in run.started.splits.test
