"""What an open step needs next: rollouts, analysts, merges, a choice, a candidate, its verdict."""

from __future__ import annotations

from skillopt_es.engine.evaluations import measure, unmeasured
from skillopt_es.engine.run_data import RunData
from skillopt_es.engine.tasks import Decide, Questions, Task
from skillopt_es.events.catalog import PatchesMerged, PatchProposed
from skillopt_es.events.places import Place
from skillopt_es.events.values import PatchSource
from skillopt_es.gate.draws import draw_task, too_large
from skillopt_es.gate.verdicts import candidate_contest, counts_as_measured
from skillopt_es.programs.classic.appendix import notes_for_candidate, notes_task
from skillopt_es.programs.classic.evaluations import train_evaluations
from skillopt_es.programs.classic.jobs import AnalyseJob, Job, LearningRateJob, MergeJob, RankJob, RewriteJob
from skillopt_es.programs.classic.state import ClassicState, EpochState, StepState, unanswered
from skillopt_es.programs.classic.taint import untrusted_parts
from skillopt_es.projections.state import proposals_in
from skillopt_es.skill.schedule import edit_budget


def step_task(state: ClassicState, run: RunData, epoch: EpochState, step: StepState) -> Task:
    """The next thing that the open step needs."""
    place = Place.of_step(epoch.number, step.number)
    if step.groups is None:
        assert state.current is not None
        rollouts = measure(state, train_evaluations(place, step, state.current))
        if rollouts is None and _nothing_allowed(state, run, step):
            return Decide("skip:no_edit_chosen")
        return rollouts or Decide("plan_minibatches")
    waiting = tuple(AnalyseJob(group) for group in step.groups if group.id not in step.patches)
    if waiting:
        return Questions(waiting)
    if state.built is None and (step.ranked is None or step.ranked.failed):
        return _collected(run, step, place) or _selection_of_edits(state, run, step, place)
    if state.built is None:
        return _candidate_task(run, step, place)
    return _gate_task(state, run, step, place)


def _candidate_task(run: RunData, step: StepState, place: Place) -> Task:
    chosen = step.ranked.chosen if step.ranked is not None else ()
    rewrites = run.config.optimizer.skill_update_mode == "rewrite_from_suggestions"
    if chosen and rewrites and step.rewritten is None:
        return Questions((RewriteJob(slot=place / "rewrite", chosen=chosen),))
    if unanswered(step):
        return Decide("pause_for_optimizer")
    if notes_for_candidate(step):
        return Decide("build_candidate")
    if not chosen and run.config.evaluation.skip_unchanged:
        return Decide("skip:no_edit_chosen")
    failed = step.rewritten is not None and step.rewritten.result != "written"
    return Decide("skip:no_rewrite" if failed else "build_candidate")


def _collected(run: RunData, step: StepState, place: Place) -> Task | None:
    """What the patches of a step lead to besides their edits; None when it is time for the edits."""
    patches = [*step.patches.values()]
    nobody = bool(patches) and all(patch.result == "failed" for patch in patches)
    # First of all: that nobody could be reached must not look as if there were nothing to fix.
    if nobody or unanswered(step):
        return Decide("pause_for_optimizer")
    about_notes = notes_task(run, step, place)
    if about_notes is not None or any(map(proposals_in, patches)):
        return about_notes
    if notes_for_candidate(step):
        return Decide("build_candidate")
    broken = any(patch.result in ("unusable", "failed") for patch in patches)
    return Decide("skip:no_usable_patch" if broken else "skip:nothing_to_fix")


def _selection_of_edits(state: ClassicState, run: RunData, step: StepState, place: Place) -> Task:
    """Which of the pool to apply: a question where there are more than the step may apply."""
    merges, _ = merge_plan(step, place, run.config.gradient.merge_batch_size)
    if merges:
        return Questions(merges)
    pool, optimizer = pool_of(run, step, place), run.config.optimizer
    drafts = optimizer.skill_update_mode == "full_rewrite_minibatch"
    if not drafts and optimizer.lr_control_mode == "autonomous" and pool and step.learning_rate is None:
        return Questions((LearningRateJob(slot=place / "learning-rate", pool=pool),))
    budget = budget_of(state, run, step, len(pool))
    # Where all are taken, or none, there is nothing to ask.
    if drafts or len(pool) <= budget or budget == 0:
        return Decide("choose_first")
    return Questions((RankJob(slot=place / "rank", pool=pool, budget=budget),))


def pool_of(run: RunData, step: StepState, place: Place) -> tuple[str, ...]:
    """What a step may choose from once its merges are made, by id."""
    _, top = merge_plan(step, place, run.config.gradient.merge_batch_size)
    return tuple(proposal.id for proposal in proposals_in(_node(step, top))) if top else ()


def _nothing_allowed(state: ClassicState, run: RunData, step: StepState) -> bool:
    """Whether a step may change nothing, whatever analysts would say: then none of them is asked."""
    optimizer = run.config.optimizer
    # Reminder notes are no edits; without an exact budget, 0 takes one edit.
    if optimizer.use_skill_aware_reflection or not optimizer.exact_budget:
        return False
    if optimizer.skill_update_mode == "full_rewrite_minibatch":  # which has no learning rate
        return False
    by_schedule = optimizer.lr_control_mode == "fixed" and budget_of(state, run, step, 0) == 0
    return optimizer.learning_rate == 0 or by_schedule


def budget_of(state: ClassicState, run: RunData, step: StepState, available: int) -> int:
    """How many edits a step may apply: as decided, without a cap, or by the schedule."""
    optimizer = run.config.optimizer
    if optimizer.skill_update_mode == "full_rewrite_minibatch":
        return 1  # drafts exclude each other; there is no learning rate over them
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


def merge_plan(step: StepState, place: Place, batch_size: int) -> tuple[tuple[Job, ...], str]:
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
    final = place.last_merge
    if final in step.merges:
        return (), final
    return (MergeJob(merge=final, group="final", level=0, inputs=tuple(tops)),), ""


def _group_plan(step: StepState, kind: PatchSource, place: Place, batch_size: int) -> tuple[list[Job], str]:
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


def _gate_task(state: ClassicState, run: RunData, step: StepState, place: Place) -> Task:
    assert state.built is not None
    assert state.current is not None
    candidate = state.built.candidate
    if candidate.hash == state.built.parent and run.config.evaluation.skip_unchanged:
        return Decide("skip:unchanged")
    if counts_as_measured(state, run, state.current, candidate):
        return Decide("gate_candidate")
    if run.config.evaluation.use_gate and too_large(run, candidate):
        return Decide("skip:too_large")
    if run.config.evaluation.use_gate and untrusted_parts(state, run):
        return Decide("skip:untrusted_only")
    if run.config.evaluation.use_gate and not state.current.stale_from:
        drawing = draw_task(state, run, candidate_contest(state))
    else:
        drawing = measure(state, unmeasured(state, run, [(place.gate, candidate)]))
    return drawing or Decide("gate_candidate")
