"""
What comes next: a pure function of the state. The same state always has the same next task.

A task names only what is still missing, so a run that stopped anywhere goes on exactly there. Here are the whole run,
an open step (rollouts, analysts, merges, a choice, a candidate, its verdict), the end of an epoch (the comparison,
guidance, a meta skill, and what earlier epochs are still owed), and the rules that stop a training early.

A stop rule is looked at between two steps, also before the first. What a stop ends is the search: the end of the open
epoch (its guidance and meta skill) is not done any more, for nothing would be trained with it; the final evaluation is.
"""

from __future__ import annotations

from skillopt_es.algorithms.classic.appendix import notes_for_candidate, notes_work
from skillopt_es.algorithms.classic.epoch_end import judging, more_to_compare
from skillopt_es.algorithms.classic.evaluations import (
    comparison_evaluations,
    guidance_contest,
    train_evaluations,
    units_ahead,
)
from skillopt_es.algorithms.classic.jobs import (
    AnalyseJob,
    Job,
    LearningRateJob,
    MergeJob,
    MetaSkillJob,
    RankJob,
    RewriteJob,
    SlowUpdateJob,
)
from skillopt_es.algorithms.classic.phases import open_step
from skillopt_es.algorithms.classic.state import (
    Classic,
    ClassicState,
    EndedEpoch,
    EpochState,
    OpenStep,
    StepState,
    is_train,
    unanswered,
    under_way,
)
from skillopt_es.algorithms.classic.taint import untrusted_guidance, untrusted_parts
from skillopt_es.algorithms.steps import all_failed, without_edits
from skillopt_es.config import RunConfig
from skillopt_es.engine.algorithm import GatePolicy
from skillopt_es.engine.evaluations import measure, unmeasured
from skillopt_es.engine.run_config import validation_items
from skillopt_es.engine.work import AddUp, Decide, Questions, Rollouts, Work
from skillopt_es.events.catalog import CandidateBuilt, PatchesMerged, PatchProposed, SlowUpdateProposed
from skillopt_es.events.places import Place
from skillopt_es.events.values import PatchSource
from skillopt_es.gate.certifying import beside, is_due
from skillopt_es.gate.course import final_work, opening_work, trial_work, usual_stop
from skillopt_es.gate.verdicts import counts_as_measured, draw_work, too_large
from skillopt_es.projections.state import proposals_in
from skillopt_es.skill.schedule import edit_budget

GATE: GatePolicy[Classic] = GatePolicy(
    place=lambda state: open_step(state).place, doubts=untrusted_parts, judging=judging
)
"""How the open step's candidate meets the gate."""


def next_work(state: ClassicState, config: RunConfig) -> Work | None:
    """The next thing to do, or None when the run is complete."""
    if state.completed is not None:
        return None
    opening = opening_work(state, config, validation_items(state.started, config))
    if opening is not None:
        return opening
    if state.stopped is not None:
        return final_work(state, config, GATE)
    if should_stop(state, config):
        return Decide("stop_training")
    return late_end_work(state, config) or _due_work(state, config)


def _due_work(state: ClassicState, config: RunConfig) -> Work:
    """What the epoch or the run needs next."""
    if state.algorithm.epoch is not None and state.algorithm.epochs_done < state.algorithm.epoch.number:
        return _epoch_work(state, config, state.algorithm.epoch)
    if state.algorithm.epochs_done < config.train.num_epochs:
        return Decide("plan_epoch")
    return final_work(state, config, GATE)


def _epoch_work(state: ClassicState, config: RunConfig, epoch: EpochState) -> Work:
    if state.algorithm.unwritten:
        return Decide("write_appendix")
    step = state.algorithm.step
    if step is None:
        return epoch_end_work(state, config, epoch)
    return step_work(state, config, OpenStep(epoch=epoch, step=step))


def step_work(state: ClassicState, config: RunConfig, at: OpenStep) -> Work:
    """The next thing that the open step needs."""
    step, place = at.step, at.place
    if step.groups is None:
        return _batch_work(state, config, step, place)
    waiting = tuple(AnalyseJob(group) for group in step.groups if group.id not in step.patches)
    if waiting:
        return Questions(waiting)
    if state.built is not None:
        return _gate_work(state, config, at, state.built)
    if step.ranked is None or step.ranked.failed:
        return _collected(config, step, place) or _selection_of_edits(state, config, step, place)
    return _candidate_work(config, step, place)


def _batch_work(state: ClassicState, config: RunConfig, step: StepState, place: Place) -> Work:
    """A step's rollouts, and what comes after them."""
    batches = train_evaluations(place, step, state.current)
    rollouts = measure(state, [*batches, *beside(state, config, place, batches)])
    if rollouts is not None:
        return rollouts
    if is_due(state, place):
        return Decide("wager")
    return Decide("skip:no_edit_chosen" if _nothing_allowed(state, config, step) else "plan_minibatches")


def _candidate_work(config: RunConfig, step: StepState, place: Place) -> Work:
    chosen = step.ranked.chosen if step.ranked is not None else ()
    rewrites = config.optimizer.skill_update_mode == "rewrite_from_suggestions"
    if chosen and rewrites and step.rewritten is None:
        return Questions((RewriteJob(slot=place / "rewrite", chosen=chosen),))
    if unanswered(step):
        return Decide("pause_for_optimizer")
    if notes_for_candidate(step):
        return Decide("build_candidate")
    if not chosen and not config.follows("gate_unchanged"):
        return Decide("skip:no_edit_chosen")
    failed = step.rewritten is not None and step.rewritten.result != "written"
    return Decide("skip:no_rewrite" if failed else "build_candidate")


def _collected(config: RunConfig, step: StepState, place: Place) -> Work | None:
    """What the patches of a step lead to besides their edits; None when it is time for the edits."""
    # First of all: an outage must not look as if there were nothing to fix.
    if all_failed(step.patches.values()) or unanswered(step):
        return Decide("pause_for_optimizer")
    about_notes = notes_work(config, step, place)
    if about_notes is not None or any(map(proposals_in, step.patches.values())):
        return about_notes
    if notes_for_candidate(step):
        return Decide("build_candidate")
    return without_edits(step.patches, "nothing_to_fix")


def _selection_of_edits(state: ClassicState, config: RunConfig, step: StepState, place: Place) -> Work:
    """Which of the pool to apply: a question where there are more than the step may apply."""
    merges, _ = merge_plan(step, place, config.gradient.merge_batch_size)
    if merges:
        return Questions(merges)
    pool, optimizer = pool_of(config, step, place), config.optimizer
    drafts = optimizer.skill_update_mode == "full_rewrite_minibatch"
    if not drafts and optimizer.lr_control_mode == "autonomous" and pool and step.learning_rate is None:
        return Questions((LearningRateJob(slot=place / "learning-rate", pool=pool),))
    budget = budget_of(state, config, step, len(pool))
    # Where all are taken, or none, there is nothing to ask.
    if drafts or len(pool) <= budget or budget == 0:
        return Decide("choose_first")
    return Questions((RankJob(slot=place / "rank", pool=pool, budget=budget),))


def pool_of(config: RunConfig, step: StepState, place: Place) -> tuple[str, ...]:
    """What a step may choose from once its merges are made, by id."""
    # Derived anew, not kept: the plan is a function of the recorded patches and merges.
    _, top = merge_plan(step, place, config.gradient.merge_batch_size)
    return tuple(proposal.id for proposal in proposals_in(_node(step, top))) if top else ()


def _nothing_allowed(state: ClassicState, config: RunConfig, step: StepState) -> bool:
    """Whether a step may change nothing, whatever analysts would say: then none of them is asked."""
    optimizer = config.optimizer
    # Reminder notes are no edits; by SkillOpt's budget, 0 takes one edit.
    if optimizer.use_skill_aware_reflection or config.follows("edit_budget"):
        return False
    if optimizer.skill_update_mode == "full_rewrite_minibatch":  # which has no learning rate
        return False
    by_schedule = optimizer.lr_control_mode == "fixed" and budget_of(state, config, step, 0) == 0
    return optimizer.learning_rate == 0 or by_schedule


def budget_of(state: ClassicState, config: RunConfig, step: StepState, available: int) -> int:
    """How many edits a step may apply: as decided, without a cap, or by the schedule."""
    optimizer, theirs = config.optimizer, config.follows("edit_budget")
    if optimizer.skill_update_mode == "full_rewrite_minibatch":
        return 1  # drafts exclude each other; there is no learning rate over them
    if step.learning_rate is not None:
        return max(1, step.learning_rate.budget) if theirs else step.learning_rate.budget
    if optimizer.lr_control_mode == "autonomous" or (optimizer.lr_control_mode == "none" and not theirs):
        return available
    return edit_budget(
        optimizer.lr_scheduler,
        highest=optimizer.learning_rate,
        lowest=optimizer.min_learning_rate,
        step=state.counts.selections + 1 if theirs else step.number,
        total_steps=state.started.total_steps,
    )


def merge_plan(step: StepState, place: Place, batch_size: int) -> tuple[tuple[Job, ...], str]:
    """The merges that can be made now; when none are left, the patch or merge that holds the pool ("" for none)."""
    jobs: list[Job] = []
    tops: list[str] = []
    for kind in ("failure", "success"):
        waiting, top = _group_plan(step, kind, place, batch_size)
        jobs += waiting
        if top and proposals_in(_node(step, top)):
            tops.append(top)
    # Failures and successes are merged apart, and only then together: each group has a prompt of its own.
    if jobs or len(tops) < 2:
        return tuple(jobs), tops[0] if tops else ""
    final = place.last_merge
    if final in step.merges:
        return (), final
    return (MergeJob(merge=final, group="final", level=0, inputs=tuple(tops)),), ""


def _group_plan(step: StepState, kind: PatchSource, place: Place, batch_size: int) -> tuple[list[Job], str]:
    """One group's merges that can be made now, level by level; and its one remaining node when it is done."""
    nodes = [group.id for group in step.planned if group.kind == kind and proposals_in(step.patches[group.id])]
    level = 0
    while len(nodes) > 1:
        level += 1
        waiting: list[Job] = []
        merged: list[str] = []
        for position in range(0, len(nodes), batch_size):
            inputs = tuple(nodes[position : position + batch_size])
            # What is left over goes up to the next level as it is.
            if len(inputs) == 1:
                merged.append(inputs[0])
                continue
            name = place.merge(kind, level, position // batch_size)
            merged.append(name)
            if name not in step.merges:
                waiting.append(MergeJob(merge=name, group=kind, level=level, inputs=inputs))
        if waiting:
            return waiting, ""
        nodes = merged
    return [], nodes[0] if nodes else ""


def _node(step: StepState, name: str) -> PatchProposed | PatchesMerged:
    return step.merges[name] if name in step.merges else step.patches[name]


def _gate_work(state: ClassicState, config: RunConfig, at: OpenStep, built: CandidateBuilt) -> Work:
    candidate = built.candidate
    if candidate.hash == built.parent and not config.follows("gate_unchanged"):
        return Decide("skip:unchanged")
    if counts_as_measured(state, config, state.current, candidate):
        return Decide("gate_candidate")
    if config.evaluation.use_gate and too_large(config, candidate):
        return Decide("skip:too_large")
    if config.evaluation.use_gate and untrusted_parts(state, config):
        return Decide("skip:untrusted_only")
    drawing = trial_work(state, config, built, GATE)
    if isinstance(drawing, Rollouts) and config.train.speculate:
        return Rollouts(drawing.units, ahead=units_ahead(state, at))
    return drawing or Decide("gate_candidate")


def epoch_end_work(state: ClassicState, config: RunConfig, epoch: EpochState) -> Work:
    """The next thing that the end of an epoch needs."""
    optimizer = config.optimizer
    slow = optimizer.use_slow_update and epoch.applied is None
    meta = optimizer.use_meta_skill and epoch.meta is None
    # Nothing stands before the first epoch that it could be compared with.
    if epoch.number == 1:
        if slow:
            return Decide("place_slow_block")
        return Decide("skip_first_meta_skill") if meta else Decide("complete_epoch")
    if not (slow or meta):
        return Decide("complete_epoch")
    return _end_texts_work(state, config, epoch, slow=slow, meta=meta)


def _end_texts_work(state: ClassicState, config: RunConfig, epoch: EpochState, *, slow: bool, meta: bool) -> Work:
    if epoch.comparison is None:
        return Decide("draw_comparison")
    if epoch.proposed is None and epoch.meta is None:
        compared = _compare_work(state, config, EndedEpoch(epoch=epoch, comparison=epoch.comparison))
        if compared is not None:
            return compared
    jobs: list[Job] = []
    if slow and epoch.proposed is None:
        jobs.append(SlowUpdateJob(epoch.number))
    if meta and not (slow and config.follows("epoch_end")):
        jobs.append(MetaSkillJob(epoch.number))
    if jobs:
        return Questions(tuple(jobs))
    gate = None if epoch.proposed is None else _slow_gate_work(state, config, epoch.proposed)
    return gate or Decide("apply_slow_update")


def late_end_work(state: ClassicState, config: RunConfig) -> Work | None:
    """
    What a finished epoch is still owed, where the run is between two steps; each question once at each such place.

    The next epoch's own texts take its place. After the last epoch there is one more try.
    """
    owed = state.algorithm.owed
    if owed is None or state.algorithm.unwritten or not config.optimizer.ask_again:
        return None
    if owed.epoch.proposed is not None:
        gate = _slow_gate_work(state, config, owed.epoch.proposed)
        return gate or Decide("apply_late_slow_update")
    here = state.steps_done
    over = state.algorithm.epochs_done == config.train.num_epochs
    # Not where it has just been asked in vain, and not in the middle of a step.
    if not over and (here == owed.epoch.number * state.started.steps_per_epoch or _step_has_begun(state)):
        return None
    jobs: list[Job] = []
    if owed.slow and owed.slow_asked != here:
        jobs.append(SlowUpdateJob(owed.epoch.number, after=here))
    if owed.meta_skill and owed.meta_skill_asked != here:
        jobs.append(MetaSkillJob(owed.epoch.number, after=here))
    return Questions(tuple(jobs)) if jobs else None


def _step_has_begun(state: ClassicState) -> bool:
    """Whether anything of the open step has happened."""
    step = state.algorithm.step
    if step is None:
        return False
    return step.groups is not None or any(is_train(place, step.number) for place in state.rollouts)


def _compare_work(state: ClassicState, config: RunConfig, end: EndedEpoch) -> Work | None:
    """The comparison's rollouts, then more items if the policy wants them, then the sums."""
    work = measure(state, comparison_evaluations(state, config, end))
    # All of it is run and nothing summed up yet: the last moment at which items can be added.
    if isinstance(work, AddUp) and more_to_compare(state, end, config):
        return Decide("extend_comparison")
    return work


def _slow_gate_work(state: ClassicState, config: RunConfig, proposed: SlowUpdateProposed) -> Work | None:
    """What must be measured before an epoch's guidance can be judged; None when nothing is missing."""
    candidate = proposed.candidate
    unchanged = candidate is None or candidate.hash == state.current.skill.hash
    if candidate is None or unchanged or not config.optimizer.slow_update_gate_with_selection:
        return None
    if too_large(config, candidate) or untrusted_guidance(state, proposed, config):
        return None
    if state.current.stale_from:
        texts = [(Place.of_epoch(proposed.epoch).slow.gate, candidate)]
        return measure(state, unmeasured(state, config, texts, validation_items(state.started, config)))
    return draw_work(state, config, guidance_contest(state, config, proposed.epoch, candidate))


# --- stop rules ------------------------------------------------------------------------------------------------------


def should_stop(state: ClassicState, config: RunConfig) -> bool:
    """Whether a rule ends the training here."""
    train = config.train
    rules = train.patience is not None or train.target_score is not None
    if not (rules or state.steering.stop):
        return False
    over = state.stopped is not None or state.algorithm.epochs_done == train.num_epochs
    # A step that has begun, and notes that follow its verdict, come to their end first.
    if over or state.algorithm.unwritten or under_way(state):
        return False
    return usual_stop(state, config) is not None
