"""The gate: whether a measured candidate takes the place of the current skill, or of the best."""

from __future__ import annotations

from skillopt_es.events.catalog import CandidateGated, Event
from skillopt_es.events.values import GateAction, Score, SkillTree
from skillopt_es.projections.state import Measurement, TrainerState, open_step
from skillopt_es.training.run_data import RunData
from skillopt_es.training.scores import mean_score
from skillopt_es.training.stale import counts_as_measured, standing_value


def gate_candidate(state: TrainerState, run: RunData) -> Event:
    """The verdict over the open step's measured candidate."""
    step, place = open_step(state)
    assert step.built is not None
    assert state.current is not None
    assert state.best is not None
    standing = state.current
    no_op = counts_as_measured(state, run, step.built.candidate)
    candidate = state.measured[standing.stale_from if no_op else step.built.candidate.hash]
    current = state.measured.get(standing.stale_from or standing.skill.hash)
    if current is None:
        compared, candidate_score, current_score = len(candidate.items), candidate.score, None
    else:
        compared, candidate_score, current_score = on_common_items(candidate, current)
    current_value = None if current_score is None else standing_value(standing, current_score, run)
    value = standing.value if no_op else run.gate_value(candidate_score, step.built.candidate)
    assert value is not None
    won, lost = _turned(candidate, current)
    best = not no_op and is_better(state, run, step.built.candidate, state.best.skill)
    return CandidateGated(
        step=step.number,
        candidate=step.built.candidate.hash,
        action=verdict(value, current_value, best, use_gate=run.config.evaluation.use_gate),
        metric=run.config.evaluation.gate_metric,
        candidate_score=candidate_score,
        candidate_value=value,
        current_score=current_score,
        current_value=current_value,
        best_value=state.best.value,
        compared=compared,
        won=won,
        lost=lost,
        known_from="" if candidate.place == f"{place}/gate" else candidate.place,
        stale_from=standing.stale_from,
    )


def verdict(value: float, current: float | None, better_than_best: bool, *, use_gate: bool) -> GateAction:
    """A candidate must be strictly better than the current skill to be taken, than the best to be the best."""
    if not use_gate:
        return "force_accept"
    assert current is not None
    if value <= current:
        return "reject"
    return "accept_new_best" if better_than_best else "accept"


def is_better(state: TrainerState, run: RunData, skill: SkillTree, other: SkillTree) -> bool:
    """Whether a measured skill is strictly better than another, on the items that were measured under both."""
    if skill.hash == other.hash:
        return False
    known = state.measured.get(other.hash)
    if known is None:
        return True
    _, left, right = on_common_items(state.measured[skill.hash], known)
    return run.gate_value(left, skill) > run.gate_value(right, other)


def on_common_items(candidate: Measurement, current: Measurement) -> tuple[int, Score, Score]:
    """Both scores over the items that were measured under both skills."""
    common = [item for item in candidate.items if item in current.items]
    if len(common) == len(candidate.items) == len(current.items):
        return len(common), candidate.score, current.score
    left = mean_score([candidate.items[item] for item in common])
    right = mean_score([current.items[item] for item in common])
    return len(common), left, right


def _turned(candidate: Measurement, current: Measurement | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The items that the candidate won and lost against the current skill, by their hard score."""
    if current is None:
        return (), ()
    common = [item for item in candidate.items if item in current.items]
    both = [(item, candidate.items[item].hard, current.items[item].hard) for item in common]
    won = tuple(item for item, new, old in both if new > old)
    lost = tuple(item for item, new, old in both if new < old)
    return won, lost
