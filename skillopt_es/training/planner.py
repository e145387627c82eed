"""
What comes next: a pure function of the state. The same state always has the same next task.

A task names only what is still missing, so a run that stopped anywhere goes on exactly there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skillopt_es.events.catalog import PatchesMerged, PatchProposed, RolloutCompleted
from skillopt_es.events.values import Evidence, SkillTree
from skillopt_es.projections.trainer import (
    EpochState,
    Standing,
    StepState,
    TrainerState,
    at_owed_epoch,
    is_train,
    proposals_in,
    unanswered,
)
from skillopt_es.skill.schedule import edit_budget
from skillopt_es.training.appendix import notes_for_candidate, notes_task
from skillopt_es.training.decisions import is_better, more_to_compare
from skillopt_es.training.run_data import RunData
from skillopt_es.training.sampling import comparison_seed
from skillopt_es.training.stale import counts_as_measured
from skillopt_es.training.tasks import (
    AnalyseJob,
    ChooseFirst,
    Decide,
    Evaluation,
    Job,
    LearningRateJob,
    MergeJob,
    MetaSkillJob,
    Questions,
    RankJob,
    RewriteJob,
    Rollouts,
    Score,
    SkipStep,
    SlowUpdateJob,
    Task,
    Unit,
)


def next_task(state: TrainerState, run: RunData) -> Task | None:
    """The next thing to do, or None when the run is complete."""
    if state.completed is not None:
        return None
    initial = run.started.skill
    if initial.hash not in state.measured:
        return _measure(state, [_selection(run, "baseline", initial)])
    return _late_advice_task(state, run) or _due_task(state, run)


def _due_task(state: TrainerState, run: RunData) -> Task:
    """What the epoch or the run needs next."""
    if state.epoch is not None and state.epochs_done < state.epoch.number:
        return _epoch_task(state, run, state.epoch)
    if state.epochs_done < run.config.train.num_epochs:
        return Decide("plan_epoch")
    return _final_task(state, run)


def _epoch_task(state: TrainerState, run: RunData, epoch: EpochState) -> Task:
    if state.unwritten:
        return Decide("write_appendix")
    return _epoch_end_task(state, run, epoch) if state.step is None else _step_task(state, run, epoch, state.step)


# --- evaluations ---------------------------------------------------------------------------------------------------


def _selection(run: RunData, place: str, skill: SkillTree) -> Evaluation:
    return Evaluation(
        place=place,
        purpose="selection",
        split="val",
        items=run.selection_items,
        skill=skill,
        seed=run.config.train.seed,
    )


def _measure(state: TrainerState, evaluations: Sequence[Evaluation]) -> Task | None:
    """The missing rollouts of all these evaluations at once, then their sums one by one; None when all are scored."""
    missing = tuple(unit for evaluation in evaluations for unit in _missing(state, evaluation))
    if missing:
        return Rollouts(missing)
    for evaluation in evaluations:
        if evaluation.place not in state.scored:
            return Score(evaluation)
    return None


def _missing(state: TrainerState, evaluation: Evaluation) -> list[Unit]:
    if evaluation.place in state.scored:
        return []
    done: Mapping[str, RolloutCompleted] = state.rollouts.get(evaluation.place, {})
    return [
        Unit(
            place=evaluation.place, purpose=evaluation.purpose, item=item, skill=evaluation.skill, seed=evaluation.seed
        )
        for item in evaluation.items
        if item not in done
    ]


def _unmeasured(state: TrainerState, run: RunData, skills: Sequence[tuple[str, SkillTree]]) -> list[Evaluation]:
    """Selection evaluations for those of the skills (by place) that have never been measured."""
    return [_selection(run, place, skill) for place, skill in skills if skill.hash not in state.measured]


# --- one step ------------------------------------------------------------------------------------------------------


def _step_task(state: TrainerState, run: RunData, epoch: EpochState, step: StepState) -> Task:
    place = f"e{epoch.number}/s{step.number}"
    if step.groups is None:
        assert state.current is not None
        rollouts = _measure(state, train_evaluations(place, step, state.current))
        if rollouts is None and _nothing_allowed(state, run, step):
            return SkipStep("no_edit_chosen")
        return rollouts or Decide("plan_minibatches")
    waiting = tuple(AnalyseJob(group) for group in step.groups if group.id not in step.patches)
    if waiting:
        return Questions(waiting)
    if step.built is None and (step.ranked is None or step.ranked.failed):
        return _collected(run, step, place) or _selection_of_edits(state, run, step, place)
    if step.built is None:
        return _candidate_task(run, step, place)
    return _gate_task(state, run, step, place)


def _candidate_task(run: RunData, step: StepState, place: str) -> Task:
    chosen = step.ranked.chosen if step.ranked is not None else ()
    rewrites = run.config.optimizer.skill_update_mode == "rewrite_from_suggestions"
    if chosen and rewrites and step.rewritten is None:
        return Questions((RewriteJob(slot=f"{place}/rewrite", chosen=chosen),))
    if unanswered(step):
        return Decide("pause_for_optimizer")
    if notes_for_candidate(step):
        return Decide("build_candidate")
    if not chosen and run.config.evaluation.skip_unchanged:
        return SkipStep("no_edit_chosen")
    failed = step.rewritten is not None and step.rewritten.result != "written"
    return SkipStep("no_rewrite") if failed else Decide("build_candidate")


def train_evaluations(place: str, step: StepState, current: Standing) -> list[Evaluation]:
    """The training rollouts of a step, one evaluation a batch."""
    return [
        Evaluation(
            place=f"{place}/b{index}",
            purpose="train",
            split="train",
            items=batch.items,
            skill=current.skill,
            seed=batch.seed,
        )
        for index, batch in enumerate(step.batches)
        if batch.items  # all of a batch may have been retracted
    ]


def _collected(run: RunData, step: StepState, place: str) -> Task | None:
    """What the patches of a step lead to besides their edits; None when it is time for the edits."""
    patches = [*step.patches.values()]
    nobody = bool(patches) and all(patch.result == "failed" for patch in patches)
    if nobody or unanswered(step):
        return Decide("pause_for_optimizer")
    about_notes = notes_task(run, step, place)
    if about_notes is not None or any(map(proposals_in, patches)):
        return about_notes
    if notes_for_candidate(step):
        return Decide("build_candidate")
    broken = any(patch.result in ("unusable", "failed") for patch in patches)
    return SkipStep("no_usable_patch" if broken else "nothing_to_fix")


def _selection_of_edits(state: TrainerState, run: RunData, step: StepState, place: str) -> Task:
    merges, top = merge_plan(step, f"{place}/merge", run.config.gradient.merge_batch_size)
    if merges:
        return Questions(merges)
    pool = tuple(proposal.id for proposal in proposals_in(_node(step, top))) if top else ()
    return _choice(state, run, step, place, pool)


def _choice(state: TrainerState, run: RunData, step: StepState, place: str, pool: tuple[str, ...]) -> Task:
    """Which of the pool to apply: a question where there are more than the step may apply."""
    if run.config.optimizer.skill_update_mode == "full_rewrite_minibatch":
        return ChooseFirst(pool=pool, budget=1)  # drafts exclude each other; there is no learning rate over them
    if run.config.optimizer.lr_control_mode == "autonomous" and pool and step.learning_rate is None:
        return Questions((LearningRateJob(slot=f"{place}/learning-rate", pool=pool),))
    budget = _budget(state, run, step, len(pool))
    if len(pool) <= budget or budget == 0:
        return ChooseFirst(pool=pool, budget=budget)
    return Questions((RankJob(slot=f"{place}/rank", pool=pool, budget=budget),))


def _nothing_allowed(state: TrainerState, run: RunData, step: StepState) -> bool:
    """Whether a step may change nothing, whatever analysts would say: then none of them is asked."""
    optimizer = run.config.optimizer
    # Reminder notes are no edits; without an exact budget, 0 takes one edit.
    if optimizer.use_skill_aware_reflection or not optimizer.exact_budget:
        return False
    if optimizer.skill_update_mode == "full_rewrite_minibatch":  # which has no learning rate
        return False
    by_schedule = optimizer.lr_control_mode == "fixed" and _budget(state, run, step, 0) == 0
    return optimizer.learning_rate == 0 or by_schedule


def _budget(state: TrainerState, run: RunData, step: StepState, available: int) -> int:
    """How many edits a step may apply: as decided, without a cap, or by the schedule."""
    optimizer = run.config.optimizer
    if step.learning_rate is not None:
        return step.learning_rate.budget if optimizer.exact_budget else max(1, step.learning_rate.budget)
    if optimizer.lr_control_mode == "autonomous" or (optimizer.lr_control_mode == "none" and optimizer.exact_budget):
        return available
    return edit_budget(
        optimizer.lr_scheduler,
        highest=optimizer.learning_rate,
        lowest=optimizer.min_learning_rate,
        step=step.number if optimizer.schedule_by == "step" else state.counts.selections + 1,
        total_steps=run.started.total_steps,
    )


def merge_plan(step: StepState, place: str, batch_size: int) -> tuple[tuple[Job, ...], str]:
    """The merges that can be made now; when none are left, the patch or merge that holds the pool ("" for none)."""
    jobs: list[Job] = []
    tops: list[str] = []
    for kind in ("failure", "success"):
        waiting, top = _group_plan(step, kind, place, batch_size)
        jobs += waiting
        if top and proposals_in(_node(step, top)):
            tops.append(top)
    if jobs or len(tops) < 2:
        return tuple(jobs), tops[0] if tops else ""
    final = f"{place}/final"
    if final in step.merges:
        return (), final
    return (MergeJob(merge=final, group="final", level=0, inputs=tuple(tops)),), ""


def _group_plan(step: StepState, kind: Evidence, place: str, batch_size: int) -> tuple[list[Job], str]:
    """One group's merges that can be made now, level by level; and its one remaining node when it is done."""
    assert step.groups is not None
    nodes = [group.id for group in step.groups if group.kind == kind and proposals_in(step.patches[group.id])]
    level = 0
    while len(nodes) > 1:
        level += 1
        waiting: list[Job] = []
        merged: list[str] = []
        for position in range(0, len(nodes), batch_size):
            inputs = tuple(nodes[position : position + batch_size])
            if len(inputs) == 1:
                merged.append(inputs[0])
                continue
            name = f"{place}/{kind}-{level}-{position // batch_size}"
            merged.append(name)
            if name not in step.merges:
                waiting.append(MergeJob(merge=name, group=kind, level=level, inputs=inputs))
        if waiting:
            return waiting, ""
        nodes = merged
    return [], nodes[0] if nodes else ""


def _node(step: StepState, name: str) -> PatchProposed | PatchesMerged:
    return step.merges[name] if name in step.merges else step.patches[name]


def _gate_task(state: TrainerState, run: RunData, step: StepState, place: str) -> Task:
    assert step.built is not None
    assert state.current is not None
    candidate = step.built.candidate
    if candidate.hash == step.built.parent and run.config.evaluation.skip_unchanged:
        return SkipStep("unchanged")
    if counts_as_measured(state, run, candidate):
        return Decide("gate_candidate")
    skills = [(f"{place}/gate", candidate)]
    if run.config.evaluation.use_gate and not state.current.stale_from:
        skills.append((f"{place}/current", state.current.skill))
    return _measure(state, _unmeasured(state, run, skills)) or Decide("gate_candidate")


# --- the end of an epoch -------------------------------------------------------------------------------------------


def _epoch_end_task(state: TrainerState, run: RunData, epoch: EpochState) -> Task:
    optimizer = run.config.optimizer
    slow = optimizer.use_slow_update and epoch.applied is None
    meta = optimizer.use_meta_skill and epoch.meta is None
    if epoch.number == 1:
        if slow:
            return Decide("place_slow_block")
        return Decide("skip_first_memory") if meta else Decide("complete_epoch")
    if not (slow or meta):
        return Decide("complete_epoch")
    return _advice_task(state, run, epoch, slow=slow, meta=meta)


def _advice_task(state: TrainerState, run: RunData, epoch: EpochState, *, slow: bool, meta: bool) -> Task:
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


def _late_advice_task(state: TrainerState, run: RunData) -> Task | None:
    """
    What a finished epoch is still owed, where the run is between two steps; each question once at each such place.

    The next epoch's own advice takes its place. After the last epoch there is one more try.
    """
    owed = state.owed
    if owed is None or state.unwritten or not run.config.optimizer.ask_again:
        return None
    if owed.epoch.proposed is not None:
        gate = _slow_gate_task(at_owed_epoch(state), run, owed.epoch)
        return gate or Decide("apply_late_slow_update")
    here = state.steps_done
    over = state.epochs_done == run.config.train.num_epochs
    if not over and (here == owed.epoch.number * run.started.steps_per_epoch or _step_has_begun(state)):
        return None
    jobs: list[Job] = []
    if owed.slow and owed.slow_asked != here:
        jobs.append(SlowUpdateJob(owed.epoch.number, after=here))
    if owed.memory and owed.memory_asked != here:
        jobs.append(MetaSkillJob(owed.epoch.number, after=here))
    return Questions(tuple(jobs)) if jobs else None


def _step_has_begun(state: TrainerState) -> bool:
    """Whether anything of the open step has happened."""
    if state.step is None:
        return False
    return state.step.groups is not None or any(is_train(place, state.step.number) for place in state.rollouts)


def _compare_task(state: TrainerState, run: RunData, epoch: EpochState) -> Task | None:
    """The comparison's rollouts, then more items if the policy wants them, then the sums."""
    task = _measure(state, comparison_evaluations(state, run, epoch))
    if isinstance(task, Score) and more_to_compare(state, run):
        return Decide("extend_comparison")
    return task


def comparison_evaluations(state: TrainerState, run: RunData, epoch: EpochState) -> list[Evaluation]:
    """An epoch's first and last skill on the drawn items; one evaluation when they are one text, if that is enough."""
    assert epoch.comparison is not None
    assert state.current is not None
    place = f"e{epoch.number}/slow"
    seed = comparison_seed(run.config.train.seed, epoch.number)
    current = Evaluation(
        place=f"{place}/current",
        purpose="slow_current",
        split="train",
        items=epoch.comparison.items,
        skill=state.current.skill,
        seed=seed,
    )
    if epoch.comparison.previous == epoch.comparison.current and not run.config.optimizer.compare_equal_skills:
        return [current]
    previous = Evaluation(
        place=f"{place}/previous",
        purpose="slow_previous",
        split="train",
        items=epoch.comparison.items,
        skill=epoch.first_skill,
        seed=seed,
    )
    return [previous, current]


def _slow_gate_task(state: TrainerState, run: RunData, epoch: EpochState) -> Task | None:
    """What must be measured before an epoch's guidance can be judged; None when nothing is missing."""
    assert epoch.proposed is not None
    assert state.current is not None
    candidate = epoch.proposed.candidate
    unchanged = candidate is None or candidate.hash == state.current.skill.hash
    if candidate is not None and not unchanged and run.config.optimizer.slow_update_gate_with_selection:
        place = f"e{epoch.number}/slow"
        skills = [(f"{place}/gate", candidate)]
        if not state.current.stale_from:
            skills.append((f"{place}/standing", state.current.skill))
        return _measure(state, _unmeasured(state, run, skills))
    return None


# --- the end of the run --------------------------------------------------------------------------------------------


def _final_task(state: TrainerState, run: RunData) -> Task:
    assert state.current is not None
    assert state.best is not None
    evaluation = run.config.evaluation
    may_promote = evaluation.eval_test or evaluation.promote_without_tests
    if may_promote and state.current.skill.hash != state.best.skill.hash:
        waiting = _measure(state, _unmeasured(state, run, [("final/val", state.current.skill)]))
        if waiting is not None:
            return waiting
        if is_better(state, run, state.current.skill, state.best.skill):
            return Decide("promote_best")
    return _measure(state, test_evaluations(state, run)) or Decide("complete_run")


def test_evaluations(state: TrainerState, run: RunData) -> list[Evaluation]:
    """The initial, best and final skill on the test items, each text once."""
    if not run.test_items:
        return []
    assert state.best is not None
    assert state.current is not None
    named = (("initial", run.started.skill), ("best", state.best.skill), ("final", state.current.skill))
    texts: dict[str, tuple[str, SkillTree]] = {}
    for name, skill in named:
        texts.setdefault(skill.hash, (name, skill))
    return [
        Evaluation(
            place=f"final/test/{name}",
            purpose="test",
            split="test",
            items=run.test_items,
            skill=skill,
            seed=run.config.train.seed,
        )
        for name, skill in texts.values()
    ]
