"""
What comes next: a pure function of the state. The same state always has the same next task.

A task names only what is still missing, so a run that stopped anywhere goes on exactly there.
"""

from __future__ import annotations

from skillopt_es.engine.evaluations import measure, selection
from skillopt_es.engine.run_data import RunData
from skillopt_es.engine.tasks import Decide, Task
from skillopt_es.events.places import BASELINE
from skillopt_es.gate.verdicts import final_task
from skillopt_es.programs.classic.evaluations import told_evaluation
from skillopt_es.programs.classic.plan_epoch_end import epoch_end_task, late_advice_task
from skillopt_es.programs.classic.plan_step import step_task
from skillopt_es.programs.classic.state import ClassicState, EpochState
from skillopt_es.programs.classic.stopping import should_stop


def next_task(state: ClassicState, run: RunData) -> Task | None:
    """The next thing to do, or None when the run is complete."""
    if state.completed is not None:
        return None
    initial = run.started.skill
    if initial.hash not in state.measured:
        return measure(state, [selection(run, BASELINE, initial)])
    told = measure(state, told_evaluation(state, run))
    if told is not None:
        return told
    if state.stopped is not None:
        return final_task(state, run)
    if should_stop(state, run):
        return Decide("stop_training")
    return late_advice_task(state, run) or _due_task(state, run)


def _due_task(state: ClassicState, run: RunData) -> Task:
    """What the epoch or the run needs next."""
    if state.program.epoch is not None and state.program.epochs_done < state.program.epoch.number:
        return _epoch_task(state, run, state.program.epoch)
    if state.program.epochs_done < run.config.train.num_epochs:
        return Decide("plan_epoch")
    return final_task(state, run)


def _epoch_task(state: ClassicState, run: RunData, epoch: EpochState) -> Task:
    if state.program.unwritten:
        return Decide("write_appendix")
    step = state.program.step
    return epoch_end_task(state, run, epoch) if step is None else step_task(state, run, epoch, step)
