"""
An evaluation as an algorithm: what is tried is asked for by each `eval` command, so nothing is ever due by itself.

Its log is checked by a walk of its own: rollouts are evidence, and every score follows from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from attrs import evolve as changed

from skillopt_es.config import RunConfig
from skillopt_es.engine.algorithm import Algorithm, Commands, Refusal, Stands, Words
from skillopt_es.engine.algorithms import evolve
from skillopt_es.engine.differences import (
    ILLEGAL,
    CheckReport,
    Mismatch,
    all_of,
    came_out_otherwise,
    cannot_go_on,
    differences,
    mismatch,
)
from skillopt_es.engine.evaluations import score
from skillopt_es.engine.run_config import config_of_run
from skillopt_es.engine.work import Evaluation
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
from skillopt_es.projections.state import AnyState


def check_evaluation(started: RunStarted, others: Iterator[Recorded], folder: Path) -> CheckReport:
    """Walks a log; what does not follow is noted and taken as it is recorded."""
    config = config_of_run(started, folder)
    # How much may be missing is a setting of each `eval`; that a score was given is evidence, not which it is.
    shares = changed(config.rollout, max_failed_share=1, max_failed_share_train=1, max_unanswered_share=1)
    config = changed(config, rollout=shares)
    state = evolve(None, started)
    seen = scored = rollouts = 0
    found: list[Mismatch] = []
    for recorded in others:
        wrong = _problem(recorded, state, config)
        if wrong is not None:
            found.append(wrong)
        else:
            seen += 1
        scored += isinstance(recorded.event, SkillScored)
        rollouts += isinstance(recorded.event, RolloutCompleted)
        try:
            state = evolve(state, recorded.event)
        except ILLEGAL as error:
            if not found:  # in a log whose events all followed so far, it is ours to fix
                raise
            found.append(cannot_go_on(recorded, error))
            break
    return CheckReport(
        events=seen + 1, decisions=scored, rollouts=rollouts, status="evaluation", mismatches=all_of(found)
    )


def _problem(recorded: Recorded, state: AnyState, config: RunConfig) -> Mismatch | None:
    event, skill = recorded.event, state.started.skill
    match event:
        case RunPaused() | RunResumed() | TextsErased() | SealedTestOpened(by="eval"):
            return None
        case RolloutCompleted() if _sealed(event.item, state, config):
            return mismatch(recorded, "belongs to a sealed test item, and nothing says that the seal was opened")
        case RolloutCompleted():
            found = {"skill": event.skill, "purpose": event.purpose}
            wanted = {"skill": skill.hash, "purpose": "test"}
            return None if found == wanted else mismatch(recorded, f"is of {found}, but {wanted} is evaluated")
        case SkillScored() if event.place in state.rollouts and evaluated(event.split).holds(event.place):
            items = tuple(state.rollouts[event.place])
            evaluation = Evaluation(
                place=event.place,
                purpose="test",
                split=event.split,
                items=items,
                skill=skill,
                seed=config.train.seed,
            )
            derived = score(evaluation, state, config)
            if derived == event:
                return None
            if isinstance(derived, SkillScored):
                return came_out_otherwise(recorded, differences(event, derived))
    return mismatch(recorded, "has no place in an evaluation, or nothing was tried before it")


def _sealed(item: str, state: AnyState, config: RunConfig) -> bool:
    return config.env.seal_test and not state.looks.opened and item in state.started.splits.test


_NO_TRAINING = "is an evaluation, not a training run"

EVALUATION: Algorithm[None] = Algorithm(
    name="evaluation",
    initial=lambda started: None,
    evolve={},
    next_work=lambda state, config: None,
    decisions={},
    words=Words(stands=lambda state: Stands(position="an evaluation of one skill, no training run")),
    commands=Commands(
        under_way=lambda state: "",
        check=check_evaluation,
        heeds=frozenset({"pause", "budget"}),
        refuses={
            "start": Refusal("scores one skill and trains none", hint="`skillopt-es eval` does that"),
            "resume": Refusal(_NO_TRAINING, hint="`skillopt-es eval` continues it"),
            "fork": Refusal(f"{_NO_TRAINING}: it cannot be forked"),
            "calibrate": Refusal(f"{_NO_TRAINING}: it has no gate"),
            "regate": Refusal(f"{_NO_TRAINING}: it has no gate"),
            "compare": Refusal(f"{_NO_TRAINING}: it cannot be compared"),
            "steps": Refusal("is an evaluation: it has no steps and no epochs"),
        },
    ),
)
