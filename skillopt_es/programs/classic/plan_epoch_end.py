"""What the end of an epoch needs next: the comparison, guidance, a memory, and what earlier epochs are still owed."""

from __future__ import annotations

from skillopt_es.engine.evaluations import measure, unmeasured
from skillopt_es.engine.run_data import RunData
from skillopt_es.engine.tasks import AddUp, Decide, Questions, Task
from skillopt_es.events.places import Place
from skillopt_es.gate.draws import draw_task, too_large
from skillopt_es.programs.classic.contests import guidance_contest
from skillopt_es.programs.classic.epoch_end import more_to_compare
from skillopt_es.programs.classic.evaluations import comparison_evaluations
from skillopt_es.programs.classic.jobs import Job, MetaSkillJob, SlowUpdateJob
from skillopt_es.programs.classic.state import ClassicState, EpochState, at_owed_epoch, is_train
from skillopt_es.programs.classic.taint import untrusted_guidance


def epoch_end_task(state: ClassicState, run: RunData, epoch: EpochState) -> Task:
    """The next thing that the end of an epoch needs."""
    optimizer = run.config.optimizer
    slow = optimizer.use_slow_update and epoch.applied is None
    meta = optimizer.use_meta_skill and epoch.meta is None
    # Nothing stands before the first epoch that it could be compared with.
    if epoch.number == 1:
        if slow:
            return Decide("place_slow_block")
        return Decide("skip_first_memory") if meta else Decide("complete_epoch")
    if not (slow or meta):
        return Decide("complete_epoch")
    return _advice_task(state, run, epoch, slow=slow, meta=meta)


def _advice_task(state: ClassicState, run: RunData, epoch: EpochState, *, slow: bool, meta: bool) -> Task:
    if epoch.comparison is None:
        return Decide("draw_comparison")
    if epoch.proposed is None and epoch.meta is None:
        compared = _compare_task(state, run, epoch)
        if compared is not None:
            return compared
    jobs: list[Job] = []
    if slow and epoch.proposed is None:
        jobs.append(SlowUpdateJob(epoch.number))
    if meta and not (slow and run.config.optimizer.notes_after_guidance):
        jobs.append(MetaSkillJob(epoch.number))
    if jobs:
        return Questions(tuple(jobs))
    return _slow_gate_task(state, run, epoch) or Decide("apply_slow_update")


def late_advice_task(state: ClassicState, run: RunData) -> Task | None:
    """
    What a finished epoch is still owed, where the run is between two steps; each question once at each such place.

    The next epoch's own advice takes its place. After the last epoch there is one more try.
    """
    owed = state.program.owed
    if owed is None or state.program.unwritten or not run.config.optimizer.ask_again:
        return None
    if owed.epoch.proposed is not None:
        gate = _slow_gate_task(at_owed_epoch(state), run, owed.epoch)
        return gate or Decide("apply_late_slow_update")
    here = state.steps_done
    over = state.program.epochs_done == run.config.train.num_epochs
    # Not where it has just been asked in vain, and not in the middle of a step.
    if not over and (here == owed.epoch.number * run.started.steps_per_epoch or _step_has_begun(state)):
        return None
    jobs: list[Job] = []
    if owed.slow and owed.slow_asked != here:
        jobs.append(SlowUpdateJob(owed.epoch.number, after=here))
    if owed.memory and owed.memory_asked != here:
        jobs.append(MetaSkillJob(owed.epoch.number, after=here))
    return Questions(tuple(jobs)) if jobs else None


def _step_has_begun(state: ClassicState) -> bool:
    """Whether anything of the open step has happened."""
    step = state.program.step
    if step is None:
        return False
    return step.groups is not None or any(is_train(place, step.number) for place in state.rollouts)


def _compare_task(state: ClassicState, run: RunData, epoch: EpochState) -> Task | None:
    """The comparison's rollouts, then more items if the policy wants them, then the sums."""
    task = measure(state, comparison_evaluations(state, run, epoch))
    # All of it is run and nothing summed up yet: the last moment at which items can be added.
    if isinstance(task, AddUp) and more_to_compare(state, run):
        return Decide("extend_comparison")
    return task


def _slow_gate_task(state: ClassicState, run: RunData, epoch: EpochState) -> Task | None:
    """What must be measured before an epoch's guidance can be judged; None when nothing is missing."""
    assert epoch.proposed is not None
    assert state.current is not None
    candidate = epoch.proposed.candidate
    unchanged = candidate is None or candidate.hash == state.current.skill.hash
    if candidate is None or unchanged or not run.config.optimizer.slow_update_gate_with_selection:
        return None
    if too_large(run, candidate) or untrusted_guidance(state, run):
        return None
    if state.current.stale_from:
        return measure(state, unmeasured(state, run, [(Place.of_epoch(epoch.number).slow.gate, candidate)]))
    return draw_task(state, run, guidance_contest(state, candidate))
