"""
SkillOpt's own way of training, as an algorithm: epochs of steps, each with analysts, merges, a candidate, a verdict.

Its decisions are pure functions from recorded facts to the event that states the decision. The same function decides in
a run and when `replay --check` derives the decision again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import Literal, get_args

from skillopt_es.algorithms.classic import epoch_events, jobs, step_events
from skillopt_es.algorithms.classic.appendix import consolidate, extension, fate_of_notes, written
from skillopt_es.algorithms.classic.candidate import built_candidate
from skillopt_es.algorithms.classic.epoch_end import (
    apply_late_slow_update,
    apply_slow_update,
    complete_epoch,
    draw_comparison,
    elsewhere,
    extend_comparison,
    judging,
    place_slow_block,
    skip_first_meta_skill,
)
from skillopt_es.algorithms.classic.epoch_questions import propose_slow_update, write_meta_skill
from skillopt_es.algorithms.classic.estimate import kind_of, plan_of, planned_steps
from skillopt_es.algorithms.classic.evaluations import units_ahead
from skillopt_es.algorithms.classic.planner import GATE, budget_of, next_work, pool_of, stop_training
from skillopt_es.algorithms.classic.state import (
    Classic,
    ClassicState,
    StepState,
    hands_on,
    initial,
    open_step,
    proposals_of,
    unanswered,
    under_way,
)
from skillopt_es.algorithms.classic.step_questions import analyse, choose_learning_rate, merge, rank, rewrite
from skillopt_es.algorithms.classic.taint import untrusted_parts
from skillopt_es.algorithms.classic.words import WORDS
from skillopt_es.algorithms.optimizer import called, guard
from skillopt_es.config import RunConfig
from skillopt_es.engine.algorithms import Algorithm, Answered, Decision
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
from skillopt_es.gate.verdicts import gate_decisions, too_large
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


def _plan_minibatches(state: ClassicState, config: RunConfig) -> Event:
    step, place = open_step(state)
    groups: list[Minibatch] = []
    for index, batch in enumerate(step.batches):
        at = place.in_batch(index)
        if not batch.items:  # all of it was retracted
            continue
        rows = state.rollouts[at]
        measured = [(item, outcome) for item in batch.items if isinstance(outcome := rows[item].outcome, Measured)]
        failures = [item for item, outcome in measured if not config.passes(outcome)]
        successes = [item for item, outcome in measured if config.passes(outcome)]
        groups += _groups(at, "failure", shuffled(failures, batch.seed), config)
        if not config.gradient.failure_only:
            groups += _groups(at, "success", shuffled(successes, batch.seed + 1), config)
    return MinibatchesPlanned(step=step.number, groups=tuple(groups))


def _groups(place: Place, kind: PatchSource, items: list[str], config: RunConfig) -> list[Minibatch]:
    return [
        Minibatch(id=place.analyst(kind, index), kind=kind, place=place, items=chunk)
        for index, chunk in enumerate(chunks(items, config.gradient.minibatch_size))
    ]


def _choose_first(state: ClassicState, config: RunConfig) -> Event:
    """The pool up to the budget: all of it where it fits, nothing where the budget is 0."""
    step, place = open_step(state)
    pool = pool_of(config, step, place)
    budget = budget_of(state, config, step, len(pool))
    return EditsRanked(step=step.number, budget=budget, pool=pool, chosen=pool[:budget])


def _skip_step(reason: SkipReason, state: ClassicState, config: RunConfig) -> Event:
    """The step's end without a candidate, with what led to it."""
    step, _ = open_step(state)
    built = state.built
    reports = () if built is None else built.reports
    what = "no edit" if step.extended else "nothing"
    details: Mapping[SkipReason, str] = {
        "nothing_to_fix": "nothing to look at",
        "nothing_proposed": f"{len(step.patches)} analysts proposed {what}",
        "no_usable_patch": "; ".join(f"{patch.patch}: {patch.note}" for patch in step.patches.values() if patch.note),
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


def _pause_for_optimizer(state: ClassicState, config: RunConfig) -> Event:
    """The optimizer could not be reached: that is an outage, not a step with nothing to fix."""
    step, place = open_step(state)
    open_questions = unanswered(step)
    if open_questions:
        return RunPaused(
            reason="optimizer", message=f"the optimizer could not be reached; first, for {open_questions[0]}"
        )
    notes = [patch.note for patch in step.patches.values()]
    return RunPaused(
        reason="optimizer", message=f"none of the {len(notes)} analysts of {place} gave an answer; first, {notes[0]}"
    )


def _extend_appendix(state: ClassicState, config: RunConfig, guard: LeakGuard) -> Event:
    step, _ = open_step(state)
    return extension(step, state.current.skill, config, guard)


def _build_candidate(state: ClassicState, config: RunConfig, guard: LeakGuard) -> Event:
    """The chosen edits and the step's notes in the current skill; either may be missing, not both."""
    step, _ = open_step(state)
    close, pins = not config.follows("leave_gaps"), state.steering.pins
    return built_candidate(step, state.current.skill, guard, close_gaps=close, pins=pins)


def _write_appendix(state: ClassicState, config: RunConfig) -> Event:
    return written(state, config)


_WITH_A_GUARD: Mapping[str, Callable[[ClassicState, RunConfig, LeakGuard], Event]] = {
    "extend_appendix": _extend_appendix,
    "build_candidate": _build_candidate,
}
"""What takes in texts that analysts wrote, who saw tried items: the guard is over these."""

_BY_FACTS: Mapping[str, Callable[[ClassicState, RunConfig], Event]] = {
    "plan_epoch": _plan_epoch,
    "plan_minibatches": _plan_minibatches,
    "pause_for_optimizer": _pause_for_optimizer,
    "choose_first": _choose_first,
    "write_appendix": _write_appendix,
    "place_slow_block": place_slow_block,
    "skip_first_meta_skill": skip_first_meta_skill,
    "draw_comparison": draw_comparison,
    "extend_comparison": extend_comparison,
    "apply_slow_update": apply_slow_update,
    "apply_late_slow_update": apply_late_slow_update,
    "stop_training": stop_training,
    "complete_epoch": complete_epoch,
    **{f"skip:{reason}": partial(_skip_step, reason) for reason in get_args(SkipReason)},
}


def _by_facts(name: str, state: ClassicState, config: RunConfig, evidence: RecordedTexts) -> Event:
    return _BY_FACTS[name](state, config)


def _guarded(name: str, state: ClassicState, config: RunConfig, evidence: RecordedTexts) -> Event:
    return _WITH_A_GUARD[name](state, config, _guard_of_step(state, config, evidence))


def _guard_of_step(state: ClassicState, config: RunConfig, evidence: RecordedTexts) -> LeakGuard:
    """Over all items that the open step has tried."""
    assert state.algorithm.step is not None
    assert state.algorithm.step.groups is not None
    rows = [state.rollouts[group.place][item] for group in state.algorithm.step.groups for item in group.items]
    return guard(rows, state.current.skill, config, evidence)


DECISIONS: Mapping[str, Decision[Classic]] = {
    **gate_decisions(GATE),
    **{name: partial(_by_facts, name) for name in _BY_FACTS},
    **{name: partial(_guarded, name) for name in _WITH_A_GUARD},
}


def _stage(state: ClassicState) -> Hashable:
    return state.algorithm.epochs_done, state.steps_done


CLASSIC: Algorithm[Classic] = Algorithm(
    name="classic",
    initial=initial,
    hands_on=hands_on,
    evolve={
        events.RunResumed: step_events.resumed,
        events.EvidenceRetracted: epoch_events.retracted,
        events.EpochPlanned: epoch_events.epoch_planned,
        events.MinibatchesPlanned: step_events.minibatches,
        events.PatchProposed: step_events.patch,
        events.AppendixExtended: step_events.appendix_extended,
        events.AppendixConsolidated: step_events.appendix_consolidated,
        events.PatchesMerged: step_events.merged,
        events.LearningRateChosen: step_events.learning_rate,
        events.EditsRanked: step_events.ranked,
        events.SkillRewritten: step_events.rewritten,
        events.CandidateGated: step_events.gated,
        events.StepSkipped: step_events.skipped,
        events.AppendixWritten: step_events.appendix_written,
        events.ComparisonDrawn: epoch_events.comparison,
        events.ComparisonExtended: epoch_events.comparison_extended,
        events.SlowUpdateProposed: epoch_events.slow_proposed,
        events.SlowUpdateApplied: epoch_events.slow_applied,
        events.MetaSkillWritten: epoch_events.meta,
        events.EpochCompleted: epoch_events.epoch_completed,
        events.StepImported: step_events.step_imported,
        events.GapFound: step_events.gap,
    },
    next_work=next_work,
    decisions=DECISIONS,
    questions={
        jobs.AnalyseJob: analyse,
        jobs.SlowUpdateJob: propose_slow_update,
        jobs.MetaSkillJob: write_meta_skill,
        jobs.ConsolidateJob: consolidate,
        jobs.MergeJob: merge,
        jobs.LearningRateJob: choose_learning_rate,
        jobs.RankJob: rank,
        jobs.RewriteJob: rewrite,
    },
    answers={
        events.PatchProposed: Answered(
            names=("patch", "step", "items", "kind"),
            nothing={"edits": (), "suggestions": (), "drafts": (), "notes": ()},
        ),
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
    stage=_stage,
    under_way=under_way,
    heeds=frozenset(get_args(Order)),
    gate=GATE,
    doubts=untrusted_parts,
    judging=judging,
    elsewhere=elsewhere,
    ahead=units_ahead,
    milestones=(*events.STEP_ENDS, events.EpochCompleted),
    words=WORDS,
    steps=planned_steps,
    plan=plan_of,
    kind_of=kind_of,
)
