"""Events in a few words, for people who watch a run."""

from __future__ import annotations

from skillopt_es.cli.options import shown_value
from skillopt_es.events.catalog import (
    BestPromoted,
    CandidateGated,
    EpochPlanned,
    Event,
    MetaSkillWritten,
    RunCompleted,
    RunPaused,
    SkillScored,
    SlowUpdateApplied,
    StepSkipped,
)
from skillopt_es.projections.trainer import TrainerState


def milestone(event: Event, state: TrainerState) -> str:
    """One line for an event worth a line, else nothing."""
    match event:
        case EpochPlanned():
            return f"epoch {event.epoch}: {len(event.batches)} batches"
        case SkillScored(place="baseline", score=score):
            return f"  baseline: {score.hard:.4f} on {score.measured} validation items"
        case SkillScored(purpose="test", place=place, score=score):
            return f"  test, {place.split('/')[-1]} skill: {score.hard:.4f} on {score.measured} items"
        case CandidateGated():
            before, after = shown_value(event.current_value), shown_value(event.candidate_value)
            return f"  step {event.step}: {event.action} ({before} -> {after}; won {len(event.won)}, lost {len(event.lost)})"
        case StepSkipped():
            return f"  step {event.step}: skipped, {event.reason.replace('_', ' ')}"
        case SlowUpdateApplied():
            value = "" if event.candidate_value is None else f" ({shown_value(event.candidate_value)})"
            return f"  slow update of epoch {event.epoch}: {event.action.replace('_', ' ')}{value}"
        case MetaSkillWritten(result="written"):
            return f"  meta skill of epoch {event.epoch}: written"
        case MetaSkillWritten(result="unusable" | "failed"):
            return f"  meta skill of epoch {event.epoch}: {event.result}, {event.note}"
        case BestPromoted():
            return f"  the final skill is the best: {event.value:.4f}"
        case RunPaused():
            return f"paused ({event.reason}): {event.message}"
        case RunCompleted():
            return "done"
        case _:
            return ""
