"""What classic training says of itself: where a run stands, its own part of a snapshot, what a task is called."""

from __future__ import annotations

from collections.abc import Mapping

from skillopt_es.algorithms.classic import jobs
from skillopt_es.algorithms.classic.state import Classic, ClassicState, EpochState, StepState
from skillopt_es.engine.algorithm import Stands, Words
from skillopt_es.engine.work import Unit
from skillopt_es.events.catalog import RunStarted
from skillopt_es.events.places import Place
from skillopt_es.events.values import BufferEntry, Json, Purpose


def position(state: ClassicState) -> str:
    """Where in the algorithm a state stands, in a few words."""
    if state.algorithm.epoch is None or state.stopped is not None:
        return _without_epochs(state, state.started)
    per_epoch, total = state.started.steps_per_epoch, state.started.total_steps
    epoch = f"epoch {state.algorithm.epoch.number} of {total // max(1, per_epoch)}"
    if state.algorithm.step is not None or state.algorithm.unwritten:
        return f"{epoch}, {_at_step(state, state.algorithm.epoch)} of {total}"
    if state.algorithm.epochs_done < state.algorithm.epoch.number:
        return f"{epoch}, at its end: all its steps are done"
    return "at the end: final evaluation" if state.steps_done == total else f"{epoch} is complete"


def _without_epochs(state: ClassicState, started: RunStarted) -> str:
    if state.stopped is not None:
        return f"at the end: final evaluation, stopped by {state.stopped.reason} after step {state.stopped.step}"
    return "before the first epoch: the initial skill is being measured"


def _at_step(state: ClassicState, epoch: EpochState) -> str:
    if state.algorithm.step is None or state.algorithm.unwritten:
        return f"notes to be written after step {state.steps_done}"
    return f"{_phase(state, epoch, state.algorithm.step)} {state.algorithm.step.number}"


def _phase(state: ClassicState, epoch: EpochState, step: StepState) -> str:
    if step.groups is None:
        place = Place.of_step(epoch.number, step.number)
        begun = any(rows for at, rows in state.rollouts.items() if place.holds(at))
        return "rollouts of step" if begun else "before step"
    if len(step.patches) < len(step.groups):
        return "analysts at work on step"
    if step.ranked is None:
        return f"{_called(step)} collected in step"
    if state.built is not None:
        return "candidate of step"
    return f"{_called(step)} chosen in step" if step.rewritten is None else "rewrite of step"


def _called(step: StepState) -> str:
    """What the analysts of a step proposed, in a word."""
    patches = step.patches.values()
    if any(patch.suggestions for patch in patches):
        return "suggestions"
    return "drafts" if any(patch.drafts for patch in patches) else "edits"


def snapshot(state: ClassicState) -> dict[str, Json]:
    """The part of a state that only classic training has, as JSON."""
    started, algorithm = state.started, state.algorithm
    return {
        "epochs_done": algorithm.epochs_done,
        "epochs": started.total_steps // max(1, started.steps_per_epoch),
        "open_step": _open_step(state, algorithm.step),
        "unwritten_notes": list(algorithm.unwritten),
        "buffer": [
            {
                "step": attempt.step,
                "action": attempt.action,
                "rollouts": attempt.total or None,
                "failed": attempt.failed if attempt.total else None,
                "failures": {seen.code: list(seen.items) for seen in attempt.codes},
                "value_before": attempt.value_before,
                "value_after": attempt.value_after,
                **({"bound": True} if attempt.bound else {}),
                "rejected_edits": [edit.id for edit in attempt.rejected],
                "rejected_notes": list(attempt.rejected_notes),
            }
            for attempt in algorithm.buffer
        ],
        "memory": algorithm.meta_skill,  # the first name stays: digests of states are released
    }


def _open_step(state: ClassicState, step: StepState | None) -> Json:
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
        "candidate": None if state.built is None else state.built.candidate.hash,
    }


_SCORING = {
    "baseline": "scoring the initial skill",
    "gate": "scoring the candidate",
    "current": "scoring the current skill again",
    "standing": "scoring the current skill again",
    "reported": "scoring the new skill once more (for reporting)",
    "val": "scoring the final skill on validation",
    "best": "scoring the best skill again",
}
"""What an evaluation on validation items is for, by the last part of its place."""

_TRYING: Mapping[Purpose, str] = {
    "train": "trying training items",
    "slow_previous": "trying the epoch's first skill on training items",
    "slow_current": "trying the epoch's last skill on training items",
    "test": "scoring on the test items",
}


def doing(task: object) -> str:
    """What a job asks, or what a unit is for; a further draw says that it is one."""
    if not isinstance(task, Unit):
        return _ASKING[type(task)]
    unit = task
    words = _TRYING.get(unit.purpose) or _SCORING.get(unit.place.name, "scoring")
    return f"{words}, repeat {unit.place.repeat}" if unit.place.repeat > 1 else words


def remembered(state: ClassicState) -> tuple[tuple[str, str], ...]:
    """The results of this epoch's steps."""
    return tuple(("" if at else "this epoch", _attempt(each)) for at, each in enumerate(state.algorithm.buffer))


def _attempt(attempt: BufferEntry) -> str:
    failed = f"{attempt.failed} of {attempt.total} rollouts failed" if attempt.total else "rollouts unknown"
    before, after = ("-" if value is None else f"{value:.4f}" for value in (attempt.value_before, attempt.value_after))
    values = f"{before} -> {'at most ' if attempt.bound else ''}{after}"
    which = " of the training before" if attempt.before else ""
    return f"step {attempt.step}{which}: {failed}; {attempt.action.replace('_', ' ')} ({values})"


def stands(state: ClassicState) -> Stands:
    """Where a run is: epoch and step."""
    epoch, step = state.algorithm.epoch, state.algorithm.step
    number = None if step is None else step.number
    shown = state.steps_done if number is None else number
    where = "" if epoch is None else f"epoch {epoch.number} step {shown}/{state.started.total_steps}"
    return Stands(position=position(state), step=number, where=where)


_ASKING: Mapping[type, str] = {
    jobs.AnalyseJob: "reflect",
    jobs.ConsolidateJob: "consolidate notes",
    jobs.MergeJob: "merge",
    jobs.LearningRateJob: "learning rate",
    jobs.RankJob: "rank",
    jobs.RewriteJob: "rewrite",
    jobs.SlowUpdateJob: "slow update",
    jobs.MetaSkillJob: "meta skill",
}

WORDS: Words[Classic] = Words(stands=stands, doing=doing, remembered=remembered, snapshot=snapshot)
