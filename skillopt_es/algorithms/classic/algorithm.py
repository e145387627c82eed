"""
SkillOpt's own way of training, as an algorithm: epochs of steps, each with analysts, merges, a candidate, a verdict.

Its decisions are pure functions from recorded facts to the event that states the decision. The same function decides in
a run and when `replay --check` derives the decision again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Literal, get_args

from skillopt_es.algorithms.classic import jobs
from skillopt_es.algorithms.classic.appendix import consolidate, extension, fate_of_notes, written
from skillopt_es.algorithms.classic.candidate import built_candidate
from skillopt_es.algorithms.classic.epoch_end import (
    apply_late_slow_update,
    apply_slow_update,
    complete_epoch,
    draw_comparison,
    extend_comparison,
    place_slow_block,
    skip_first_meta_skill,
)
from skillopt_es.algorithms.classic.epoch_questions import propose_slow_update, write_meta_skill
from skillopt_es.algorithms.classic.estimate import kind_of, plan_of, planned_steps
from skillopt_es.algorithms.classic.fold import FACTS
from skillopt_es.algorithms.classic.phases import (
    anywhere,
    asked_at_end,
    asked_in_step,
    at_end,
    in_epoch,
    in_step,
    open_step,
)
from skillopt_es.algorithms.classic.planner import GATE, budget_of, next_work, pool_of
from skillopt_es.algorithms.classic.state import (
    Classic,
    ClassicState,
    OpenStep,
    StepState,
    initial,
    proposals_of,
    unanswered,
    under_way,
)
from skillopt_es.algorithms.classic.step_questions import analyse, choose_learning_rate, merge, rank, rewrite
from skillopt_es.algorithms.classic.taint import untrusted_parts
from skillopt_es.algorithms.classic.words import WORDS
from skillopt_es.algorithms.optimizer import called, guard
from skillopt_es.algorithms.steps import PATCH_ANSWERS, noted
from skillopt_es.config import RunConfig
from skillopt_es.engine.algorithm import Algorithm, Answered, Commands, Decision, Plan
from skillopt_es.engine.draws import chunks, epoch_batches, shuffled
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.events import catalog as events
from skillopt_es.events.catalog import (
    EditsRanked,
    EpochPlanned,
    Event,
    MinibatchesPlanned,
    RunPaused,
    StepSkipped,
)
from skillopt_es.events.places import Place
from skillopt_es.events.values import Measured, Minibatch, Order, PatchSource
from skillopt_es.gate.course import gate_decisions, stop_training
from skillopt_es.gate.verdicts import too_large
from skillopt_es.skill.leaks import LeakGuard

SkipReason = Literal[
    "nothing_to_fix",
    "nothing_proposed",
    "no_usable_patch",
    "no_edit_chosen",
    "no_rewrite",
    "unchanged",
    "too_large",
    "untrusted_only",
]


def _plan_epoch(state: ClassicState, config: RunConfig) -> Event:
    train = config.train
    epoch = state.algorithm.epochs_done + 1
    batches = epoch_batches(
        state.started.splits.train,
        epoch=epoch,
        seed=train.seed,
        batch_size=train.batch_size,
        # From the first event: schedules and progress count on as many steps as were planned then.
        batches=state.started.steps_per_epoch * train.accumulation,
    )
    return EpochPlanned(epoch=epoch, batches=batches, meta_skill=_meta_skill_in_force(state, config))


def _meta_skill_in_force(state: ClassicState, config: RunConfig) -> str:
    last = state.algorithm.epoch.meta if state.algorithm.epoch is not None else None
    lost = last is not None and last.result != "written" and config.follows("epoch_end")
    return "" if lost else state.algorithm.meta_skill


def _plan_minibatches(state: ClassicState, at: OpenStep, config: RunConfig) -> Event:
    step = at.step
    groups: list[Minibatch] = []
    for index, batch in enumerate(step.batches):
        place = at.place.in_batch(index)
        if not batch.items:  # all of it was retracted
            continue
        rows = state.rollouts[place]
        measured = [(item, outcome) for item in batch.items if isinstance(outcome := rows[item].outcome, Measured)]
        failures = [item for item, outcome in measured if not config.passes(outcome)]
        successes = [item for item, outcome in measured if config.passes(outcome)]
        groups += _groups(place, "failure", shuffled(failures, batch.seed), config)
        if not config.gradient.failure_only:
            groups += _groups(place, "success", shuffled(successes, batch.seed + 1), config)
    return MinibatchesPlanned(step=step.number, groups=tuple(groups))


def _groups(place: Place, kind: PatchSource, items: list[str], config: RunConfig) -> list[Minibatch]:
    return [
        Minibatch(id=place.analyst(kind, index), kind=kind, place=place, items=chunk)
        for index, chunk in enumerate(chunks(items, config.gradient.minibatch_size))
    ]


def _choose_first(state: ClassicState, at: OpenStep, config: RunConfig) -> Event:
    """The pool up to the budget: all of it where it fits, nothing where the budget is 0."""
    step = at.step
    pool = pool_of(config, step, at.place)
    budget = budget_of(state, config, step, len(pool))
    return EditsRanked(step=step.number, budget=budget, pool=pool, chosen=pool[:budget])


def _skip_step(reason: SkipReason, state: ClassicState, at: OpenStep, config: RunConfig) -> Event:
    """The step's end without a candidate, with what led to it."""
    step, built = at.step, state.built
    reports = () if built is None else built.reports
    what = "no edit" if step.extended else "nothing"
    details: Mapping[SkipReason, str] = {
        "nothing_to_fix": "nothing to look at",
        "nothing_proposed": f"{len(step.patches)} analysts proposed {what}",
        "no_usable_patch": noted(step.patches),
        "no_edit_chosen": _not_chosen(step, step.ranked) if step.ranked else "the budget is 0: no analyst was asked",
        "no_rewrite": step.rewritten.note if step.rewritten else "",
        "unchanged": "; ".join(f"{report.edit}: {report.status}" for report in reports),
        "too_large": "" if built is None else too_large(config, built.candidate),
        "untrusted_only": "" if built is None else untrusted_parts(state, config),
    }
    detail = "; ".join(each for each in (details[reason], fate_of_notes(step)) if each)
    return StepSkipped(step=step.number, reason=reason, detail=detail)


def _not_chosen(step: StepState, ranked: EditsRanked) -> str:
    first = next((proposals_of(step)[name] for name in ranked.pool), None)
    return f"budget {ranked.budget} of {len(ranked.pool)} {'edits' if first is None else called(first)}"


def _pause_for_optimizer(state: ClassicState, at: OpenStep, config: RunConfig) -> Event:
    """The optimizer could not be reached: that is an outage, not a step with nothing to fix."""
    open_questions = unanswered(at.step)
    if open_questions:
        return RunPaused(
            reason="optimizer", message=f"the optimizer could not be reached; first, for {open_questions[0]}"
        )
    notes = [patch.note for patch in at.step.patches.values()]
    return RunPaused(
        reason="optimizer", message=f"none of the {len(notes)} analysts of {at.place} gave an answer; first, {notes[0]}"
    )


def _extend_appendix(state: ClassicState, step: StepState, config: RunConfig, guard: LeakGuard) -> Event:
    return extension(step, state.current.skill, config, guard)


def _build_candidate(state: ClassicState, step: StepState, config: RunConfig, guard: LeakGuard) -> Event:
    """The chosen edits and the step's notes in the current skill; either may be missing, not both."""
    close, pins = not config.follows("leave_gaps"), state.steering.pins
    return built_candidate(step, state.current.skill, guard, close_gaps=close, pins=pins)


def _guarded(decide: Callable[[ClassicState, StepState, RunConfig, LeakGuard], Event]) -> Decision[Classic]:
    """What takes in texts of analysts, who saw tried items: with the guard over all items that the step has tried."""

    def guarded(state: ClassicState, config: RunConfig, evidence: RecordedTexts) -> Event:
        step = open_step(state).step
        rows = [state.rollouts[group.place][item] for group in step.planned for item in group.items]
        return decide(state, step, config, guard(rows, state.current.skill, config, evidence))

    return guarded


DECISIONS: Mapping[str, Decision[Classic]] = {
    **gate_decisions(GATE),
    "plan_epoch": anywhere(_plan_epoch),
    "write_appendix": anywhere(written),
    "place_slow_block": anywhere(place_slow_block),
    "skip_first_meta_skill": anywhere(skip_first_meta_skill),
    "apply_late_slow_update": anywhere(apply_late_slow_update),
    "stop_training": stop_training,
    "plan_minibatches": in_step(_plan_minibatches),
    "pause_for_optimizer": in_step(_pause_for_optimizer),
    "choose_first": in_step(_choose_first),
    **{f"skip:{reason}": in_step(partial(_skip_step, reason)) for reason in get_args(SkipReason)},
    "extend_appendix": _guarded(_extend_appendix),
    "build_candidate": _guarded(_build_candidate),
    "draw_comparison": in_epoch(draw_comparison),
    "apply_slow_update": in_epoch(apply_slow_update),
    "complete_epoch": in_epoch(complete_epoch),
    "extend_comparison": at_end(extend_comparison),
}


CLASSIC: Algorithm[Classic] = Algorithm(
    name="classic",
    initial=initial,
    evolve=FACTS,
    next_work=next_work,
    decisions=DECISIONS,
    questions={
        jobs.AnalyseJob: asked_in_step(analyse),
        jobs.SlowUpdateJob: asked_at_end(propose_slow_update),
        jobs.MetaSkillJob: asked_at_end(write_meta_skill),
        jobs.ConsolidateJob: asked_in_step(consolidate),
        jobs.MergeJob: asked_in_step(merge),
        jobs.LearningRateJob: asked_in_step(choose_learning_rate),
        jobs.RankJob: asked_in_step(rank),
        jobs.RewriteJob: asked_in_step(rewrite),
    },
    answers={
        **PATCH_ANSWERS,
        events.PatchesMerged: Answered(
            names=("merge", "step", "group", "level", "inputs"),
            nothing={"edits": (), "suggestions": (), "drafts": ()},
        ),
        events.LearningRateChosen: Answered(names=("step", "available"), nothing={"budget": 0}),
        events.EditsRanked: Answered(names=("step", "budget", "pool"), nothing={"chosen": ()}),
        events.SkillRewritten: Answered(names=("step",), nothing={"text": "", "changes": ()}),
        events.SlowUpdateProposed: Answered(names=("epoch", "pairs"), nothing={"guidance": "", "candidate": None}),
        events.MetaSkillWritten: Answered(names=("epoch",), nothing={"content": ""}),
    },
    words=WORDS,
    plan=Plan(steps=planned_steps, parts=plan_of, kind_of=kind_of),
    commands=Commands(heeds=frozenset(get_args(Order)), under_way=under_way),
    gate=GATE,
)
