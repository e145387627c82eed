"""
Stop rules: when a training has come to an end before its last step, and why.

A rule is looked at between two steps, also before the first. What a stop ends is the search: the end of the open epoch
(its guidance and memory) is not done any more, for nothing would be trained with it; the final evaluation is.
"""

from __future__ import annotations

from skillopt_es.engine.run_data import RunData
from skillopt_es.events.catalog import Event, TrainingStopped
from skillopt_es.programs.classic.state import ClassicState, under_way


def should_stop(state: ClassicState, run: RunData) -> bool:
    """Whether a rule ends the training here."""
    train = run.config.train
    if train.patience is None and train.target_score is None and not train.no_progress:
        return False
    over = state.stopped is not None or state.program.epochs_done == train.num_epochs
    # A step that has begun, and notes that follow its verdict, come to their end first.
    if over or state.program.unwritten or under_way(state):
        return False
    return _stop(state, run) is not None


def stop_training(state: ClassicState, run: RunData) -> Event:
    """The end, by the first rule that holds."""
    stopped = _stop(state, run)
    assert stopped is not None
    return stopped


def _stop(state: ClassicState, run: RunData) -> TrainingStopped | None:
    assert state.best is not None
    train, value, since, step = run.config.train, state.best.value, state.best.step, state.steps_done
    if train.target_score is not None and value is not None and value >= train.target_score:
        return TrainingStopped(
            step=step, reason="target_score", best_value=value, since=since, limit=train.target_score
        )
    if train.patience is not None and step - since >= train.patience:
        return TrainingStopped(step=step, reason="patience", best_value=value, since=since, limit=float(train.patience))
    if train.no_progress and _epoch_changed_nothing(state):
        return TrainingStopped(step=step, reason="no_progress", best_value=value, since=since)
    return None


def _epoch_changed_nothing(state: ClassicState) -> bool:
    """Whether all steps of the open epoch are done and its first skill is still the current one."""
    epoch = state.program.epoch
    if epoch is None or state.program.step is not None or state.program.epochs_done == epoch.number:
        return False
    assert state.current is not None
    return epoch.first_skill.hash == state.current.skill.hash
