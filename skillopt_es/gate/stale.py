"""
Scores that stand for a text nobody measured, as in the original: only where `evaluation.stale_scores` asks for it.

Each such score is named in the events by the skill that it was measured under.
"""

from __future__ import annotations

from skillopt_es.engine.run_data import RunData
from skillopt_es.events.values import Score, SkillTree
from skillopt_es.projections.state import AnyState, Standing


def kept_score(current: Standing, placed: SkillTree, run: RunData) -> str:
    """The skill whose score stands for a text that nobody measured; "" where the score is unknown instead."""
    if not run.config.evaluation.stale_scores or placed.hash == current.skill.hash:
        return ""
    return current.stale_from or current.skill.hash


def counts_as_measured(state: AnyState, run: RunData, current: Standing, candidate: SkillTree) -> bool:
    """Whether a candidate is the current text, which has an older text's score since its guidance was forced."""
    return (
        run.config.evaluation.use_gate
        and candidate.hash == current.skill.hash
        and candidate.hash not in state.measured
        and bool(current.stale_from)
        and current.origin.kind == "slow_update"
    )


def standing_value(standing: Standing, score: Score, run: RunData) -> float:
    """What a candidate must exceed: the current skill's score on the same items, or the old one that stands for it."""
    if standing.stale_from:
        assert standing.value is not None
        return standing.value
    return run.gate_value(score, standing.skill)
