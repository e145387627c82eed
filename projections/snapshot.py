"""The trainer's state as plain JSON and in one sentence, for `replay` and for programs."""

from __future__ import annotations

from attrs import asdict

from skillopt_es.events.catalog import RunStarted
from skillopt_es.events.places import Place
from skillopt_es.events.values import Json, Score
from skillopt_es.projections.state import Counts, EpochState, Standing, StepState, TrainerState


def position(state: TrainerState) -> str:
    """Where in the algorithm a state stands, in a few words."""
    if state.started is None:
        return "nothing has happened yet"
    if state.completed is not None:
        return f"complete after {state.steps_done} steps"
    if state.epoch is None or state.stopped is not None:
        return _without_epochs(state, state.started)
    per_epoch, total = state.started.steps_per_epoch, state.started.total_steps
    epoch = f"epoch {state.epoch.number} of {total // max(1, per_epoch)}"
    if state.step is not None or state.unwritten:
        return f"{epoch}, {_at_step(state, state.epoch)} of {total}"
    if state.epochs_done < state.epoch.number:
        return f"{epoch}, at its end: all its steps are done"
    return "at the end: final evaluation" if state.steps_done == total else f"{epoch} is complete"


def _without_epochs(state: TrainerState, started: RunStarted) -> str:
    if state.stopped is not None:
        return f"at the end: final evaluation, stopped by {state.stopped.reason} after step {state.stopped.step}"
    if started.total_steps == 0:
        return "an evaluation of one skill, no training run"
    return "before the first epoch: the initial skill is being measured"


def _at_step(state: TrainerState, epoch: EpochState) -> str:
    if state.step is None or state.unwritten:
        return f"notes to be written after step {state.steps_done}"
    return f"{_phase(state, epoch, state.step)} {state.step.number}"


def _phase(state: TrainerState, epoch: EpochState, step: StepState) -> str:
    if step.groups is None:
        place = Place.of_step(epoch.number, step.number)
        begun = any(rows for at, rows in state.rollouts.items() if place.holds(at))
        return "rollouts of step" if begun else "before step"
    if len(step.patches) < len(step.groups):
        return "analysts at work on step"
    if step.ranked is None:
        return f"{_called(step)} collected in step"
    if step.built is not None:
        return "candidate of step"
    return f"{_called(step)} chosen in step" if step.rewritten is None else "rewrite of step"


def _called(step: StepState) -> str:
    """What the analysts of a step proposed, in a word."""
    patches = step.patches.values()
    if any(patch.suggestions for patch in patches):
        return "suggestions"
    return "drafts" if any(patch.drafts for patch in patches) else "edits"


def counted_verdicts(counts: Counts) -> str:
    """How the steps ended, in a few words; undecided ones are only told where there are any."""
    undecided = f", {counts.indecisive} indecisive" if counts.indecisive else ""
    return f"{counts.accepted} accepted, {counts.rejected} rejected{undecided}, {counts.skipped} skipped"


def snapshot(state: TrainerState) -> dict[str, Json]:
    """A state as JSON: where it stands, its skills by hash, and what it remembers; the same state, the same JSON."""
    started = state.started
    return {
        "status": state.status,
        "position": position(state),
        "paused": None if state.paused is None else {"reason": state.paused.reason, "message": state.paused.message},
        "stopped": None if state.stopped is None else {"reason": state.stopped.reason, "step": state.stopped.step},
        "steps_done": state.steps_done,
        "steps": started.total_steps if started else 0,
        "epochs_done": state.epochs_done,
        "epochs": started.total_steps // max(1, started.steps_per_epoch) if started else 0,
        "current": _standing(state.current),
        "best": _standing(state.best),
        "open_step": _open_step(state.step),
        "unwritten_notes": list(state.unwritten),
        "buffer": [
            {
                "step": attempt.step,
                "action": attempt.action,
                "rollouts": attempt.total or None,
                "failed": attempt.failed if attempt.total else None,
                "failures": {code: list(items) for code, items in attempt.codes},
                "value_before": attempt.value_before,
                "value_after": attempt.value_after,
                **({"bound": True} if attempt.bound else {}),
                "rejected_edits": [edit.id for edit in attempt.rejected],
                "rejected_notes": list(attempt.rejected_notes),
            }
            for attempt in state.buffer
        ],
        "memory": state.memory,
        "measured": {skill: score_json(measurement.stated) for skill, measurement in state.measured.items()},
        "tests": {skill: score_json(scored.score) for skill, scored in state.tests.items()},
        "test_looks": state.looks.count,
        "counts": asdict(state.counts),
        **_imported(state),
    }


def _imported(state: TrainerState) -> dict[str, Json]:
    """Where an imported run comes from and what of it is unknown; nothing for a run of our own."""
    if state.imported is None:
        return {}
    unknown: list[Json] = [{"place": gap.place, "what": gap.what, "why": gap.why} for gap in state.gaps]
    return {"imported": {"source": state.imported.source, "folder": state.imported.folder}, "unknown": unknown}


def score_json(score: Score | None) -> Json:
    """A score as JSON, null for none."""
    return None if score is None else asdict(score)


def _standing(standing: Standing | None) -> Json:
    if standing is None:
        return None
    return {
        "hash": standing.skill.hash,
        "files": [*sorted(standing.skill.files)],
        "value": standing.value,
        "score": score_json(standing.score),
        "origin": standing.origin,
        "step": standing.step,
        **({"stale_from": standing.stale_from} if standing.stale_from else {}),
    }


def _open_step(step: StepState | None) -> Json:
    if step is None:
        return None
    return {
        "step": step.number,
        "batches": [{"seed": batch.seed, "items": list(batch.items)} for batch in step.batches],
        "groups": None if step.groups is None else [group.id for group in step.groups],
        "patches": list(step.patches),
        "notes": list(step.notes),
        "merges": list(step.merges),
        "chosen": None if step.ranked is None else list(step.ranked.chosen),
        "candidate": None if step.built is None else step.built.candidate.hash,
    }
