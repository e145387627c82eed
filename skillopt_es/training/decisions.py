"""
Decisions: pure functions from recorded facts to the event that states the decision.

The same function decides in a run and when `replay --check` derives the decision again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from skillopt_es.events.catalog import (
    BestPromoted,
    CandidateGated,
    ComparisonDrawn,
    ComparisonExtended,
    EditsRanked,
    EpochCompleted,
    EpochPlanned,
    Event,
    MetaSkillWritten,
    MinibatchesPlanned,
    RolloutCompleted,
    RunCompleted,
    RunPaused,
    SkillScored,
    SlowUpdateApplied,
    StepSkipped,
)
from skillopt_es.events.values import Evidence, GateAction, Measured, Minibatch, Outcome, Score, SkillTree
from skillopt_es.projections.trainer import (
    Measurement,
    Standing,
    StepState,
    TrainerState,
    at_owed_epoch,
    proposals_of,
    unanswered,
)
from skillopt_es.skill.leaks import LeakGuard
from skillopt_es.skill.regions import with_slow_placeholder
from skillopt_es.training import sampling, tasks
from skillopt_es.training.appendix import extension, fate_of_notes, written
from skillopt_es.training.candidate import built_candidate
from skillopt_es.training.comparison import selected_pairs
from skillopt_es.training.prompt_text import called
from skillopt_es.training.run_data import RunData
from skillopt_es.training.stale import counts_as_measured, kept_score, standing_value


def decide(task: tasks.Decide, state: TrainerState, run: RunData, guard: Callable[[], LeakGuard]) -> Event:
    """The event that a decision leads to; `guard` is over what analysts saw, for those that take in what they wrote."""
    if task.step in _GUARDED:
        return _GUARDED[task.step](state, run, guard())
    return _DECISIONS[task.step](state, run)


def judge(step: tasks.Step, state: TrainerState, run: RunData) -> Event:
    """A verdict on what is written already; no guard has to look at it."""
    return _DECISIONS[step](state, run)


# --- adding up -----------------------------------------------------------------------------------------------------


def score(evaluation: tasks.Evaluation, state: TrainerState, run: RunData) -> Event:
    """The sum of an evaluation, or a pause when too much of it was not measured."""
    rows: Mapping[str, RolloutCompleted] = state.rollouts.get(evaluation.place, {})
    outcomes = [rows[item].outcome for item in evaluation.items]
    total = mean_score(outcomes)
    rollout = run.config.rollout
    most = rollout.max_failed_share_train if evaluation.split == "train" else rollout.max_failed_share
    measured = sum(isinstance(outcome, Measured) for outcome in outcomes)
    if measured == 0 or len(outcomes) - measured > most * len(outcomes):
        return _unmeasured_pause(evaluation, rows, total)
    by_type: dict[str, list[Outcome]] = {}
    for item in evaluation.items:
        by_type.setdefault(rows[item].task_type or "other", []).append(rows[item].outcome)
    return SkillScored(
        place=evaluation.place,
        purpose=evaluation.purpose,
        split=evaluation.split,
        skill=evaluation.skill.hash,
        score=total,
        value=run.gate_value(total, evaluation.skill) if evaluation.purpose == "selection" else None,
        by_type={name: mean_score(group) for name, group in sorted(by_type.items())},
    )


def _unmeasured_pause(evaluation: tasks.Evaluation, rows: Mapping[str, RolloutCompleted], total: Score) -> RunPaused:
    kinds: dict[str, int] = {}
    example = ""
    for item in evaluation.items:
        outcome = rows[item].outcome
        if not isinstance(outcome, Measured):
            kind = getattr(outcome, "kind", "not_run")
            kinds[kind] = kinds.get(kind, 0) + 1
            example = example or f"{item}: {getattr(outcome, 'message', '')}"
    what = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    return RunPaused(
        reason="unmeasured",
        message=f"{total.unmeasured} of {len(evaluation.items)} items at {evaluation.place} could not be measured "
        f"({what}); first, {example}",
    )


def mean_score(outcomes: list[Outcome]) -> Score:
    """The means over what was measured; all zero with `measured` 0 when nothing was."""
    measured = [outcome for outcome in outcomes if isinstance(outcome, Measured)]
    count = len(measured)
    return Score(
        hard=sum(outcome.hard for outcome in measured) / count if count else 0.0,
        soft=sum(outcome.soft for outcome in measured) / count if count else 0.0,
        measured=count,
        unmeasured=len(outcomes) - count,
    )


# --- epochs and steps ----------------------------------------------------------------------------------------------


def _plan_epoch(state: TrainerState, run: RunData) -> Event:
    train = run.config.train
    epoch = state.epochs_done + 1
    batches = sampling.epoch_batches(
        run.started.splits.train,
        epoch=epoch,
        seed=train.seed,
        batch_size=train.batch_size,
        batches=run.started.steps_per_epoch * train.accumulation,
    )
    return EpochPlanned(epoch=epoch, batches=batches, meta_skill=_memory_in_force(state, run))


def _memory_in_force(state: TrainerState, run: RunData) -> str:
    last = state.epoch.meta if state.epoch is not None else None
    lost = last is not None and last.result != "written" and not run.config.optimizer.keep_memory
    return "" if lost else state.memory


def _plan_minibatches(state: TrainerState, run: RunData) -> Event:
    step, place = _open_step(state)
    groups: list[Minibatch] = []
    for index, batch in enumerate(step.batches):
        at = f"{place}/b{index}"
        rows: Mapping[str, RolloutCompleted] = state.rollouts.get(at, {})
        measured = [(item, outcome) for item in batch.items if isinstance(outcome := rows[item].outcome, Measured)]
        failures = [item for item, outcome in measured if not run.passes(outcome)]
        successes = [item for item, outcome in measured if run.passes(outcome)]
        groups += _groups(at, "failure", sampling.shuffled(failures, batch.seed), run)
        if not run.config.gradient.failure_only:
            groups += _groups(at, "success", sampling.shuffled(successes, batch.seed + 1), run)
    return MinibatchesPlanned(step=step.number, groups=tuple(groups))


def _groups(place: str, kind: Evidence, items: list[str], run: RunData) -> list[Minibatch]:
    return [
        Minibatch(id=f"{place}/{kind}-{index}", kind=kind, place=place, items=chunk)
        for index, chunk in enumerate(sampling.chunks(items, run.config.gradient.minibatch_size))
    ]


def _open_step(state: TrainerState) -> tuple[StepState, str]:
    assert state.step is not None
    assert state.epoch is not None
    return state.step, f"e{state.epoch.number}/s{state.step.number}"


def choose_first(task: tasks.ChooseFirst, state: TrainerState) -> Event:
    """The pool up to the budget: all of it where it fits, nothing where the budget is 0."""
    step, _ = _open_step(state)
    return EditsRanked(step=step.number, budget=task.budget, pool=task.pool, chosen=task.pool[: task.budget])


def skip_step(task: tasks.SkipStep, state: TrainerState) -> Event:
    """The step's end without a candidate, with what led to it."""
    step, _ = _open_step(state)
    reports = step.built.reports if step.built else ()
    what = "no edit" if step.extended else "nothing"
    details = {
        "nothing_to_fix": f"{len(step.patches)} analysts proposed {what}" if step.patches else "nothing to look at",
        "no_usable_patch": "; ".join(f"{patch.patch}: {patch.note}" for patch in step.patches.values() if patch.note),
        "no_edit_chosen": _not_chosen(step, step.ranked) if step.ranked else "the budget is 0: no analyst was asked",
        "no_rewrite": step.rewritten.note if step.rewritten else "",
        "unchanged": "; ".join(f"{report.edit}: {report.status}" for report in reports),
    }
    detail = "; ".join(each for each in (details[task.reason], fate_of_notes(step)) if each)
    return StepSkipped(step=step.number, reason=task.reason, detail=detail)


def _not_chosen(step: StepState, ranked: EditsRanked) -> str:
    first = next((proposals_of(step)[name] for name in ranked.pool), None)
    return f"budget {ranked.budget} of {len(ranked.pool)} {'edits' if first is None else called(first)}"


def _pause_for_optimizer(state: TrainerState, run: RunData) -> Event:
    """The optimizer could not be reached: that is an outage, not a step with nothing to fix."""
    step, place = _open_step(state)
    open_questions = unanswered(step)
    if open_questions:
        return RunPaused(
            reason="optimizer", message=f"the optimizer could not be reached; first, for {open_questions[0]}"
        )
    notes = [patch.note for patch in step.patches.values()]
    return RunPaused(
        reason="optimizer", message=f"none of the {len(notes)} analysts of {place} could be reached; first, {notes[0]}"
    )


def _extend_appendix(state: TrainerState, run: RunData, guard: LeakGuard) -> Event:
    step, _ = _open_step(state)
    assert state.current is not None
    return extension(step, state.current.skill, run, guard)


def _build_candidate(state: TrainerState, run: RunData, guard: LeakGuard) -> Event:
    """The chosen edits and the step's notes in the current skill; either may be missing, not both."""
    step, _ = _open_step(state)
    assert state.current is not None
    return built_candidate(step, state.current.skill, guard)


def _write_appendix(state: TrainerState, run: RunData) -> Event:
    return written(state, run)


# --- the gate ------------------------------------------------------------------------------------------------------


def _gate_candidate(state: TrainerState, run: RunData) -> Event:
    step, place = _open_step(state)
    assert step.built is not None
    assert state.current is not None
    assert state.best is not None
    standing = state.current
    no_op = counts_as_measured(state, run, step.built.candidate)
    candidate = state.measured[standing.stale_from if no_op else step.built.candidate.hash]
    current = state.measured.get(standing.stale_from or standing.skill.hash)
    if current is None:
        compared, candidate_score, current_score = len(candidate.items), candidate.score, None
    else:
        compared, candidate_score, current_score = _on_common_items(candidate, current)
    current_value = None if current_score is None else standing_value(standing, current_score, run)
    value = standing.value if no_op else run.gate_value(candidate_score, step.built.candidate)
    assert value is not None
    won, lost = _turned(candidate, current)
    best = not no_op and is_better(state, run, step.built.candidate, state.best.skill)
    return CandidateGated(
        step=step.number,
        candidate=step.built.candidate.hash,
        action=_verdict(value, current_value, best, use_gate=run.config.evaluation.use_gate),
        metric=run.config.evaluation.gate_metric,
        candidate_score=candidate_score,
        candidate_value=value,
        current_score=current_score,
        current_value=current_value,
        best_value=state.best.value,
        compared=compared,
        won=won,
        lost=lost,
        known_from="" if candidate.place == f"{place}/gate" else candidate.place,
        stale_from=standing.stale_from,
    )


def _verdict(value: float, current: float | None, better_than_best: bool, *, use_gate: bool) -> GateAction:
    """A candidate must be strictly better than the current skill to be taken, than the best to be the best."""
    if not use_gate:
        return "force_accept"
    assert current is not None
    if value <= current:
        return "reject"
    return "accept_new_best" if better_than_best else "accept"


def is_better(state: TrainerState, run: RunData, skill: SkillTree, other: SkillTree) -> bool:
    """Whether a measured skill is strictly better than another, on the items that were measured under both."""
    if skill.hash == other.hash:
        return False
    known = state.measured.get(other.hash)
    if known is None:
        return True
    _, left, right = _on_common_items(state.measured[skill.hash], known)
    return run.gate_value(left, skill) > run.gate_value(right, other)


def _on_common_items(candidate: Measurement, current: Measurement) -> tuple[int, Score, Score]:
    """Both scores over the items that were measured under both skills."""
    common = [item for item in candidate.items if item in current.items]
    if len(common) == len(candidate.items) == len(current.items):
        return len(common), candidate.score, current.score
    left = mean_score([candidate.items[item] for item in common])
    right = mean_score([current.items[item] for item in common])
    return len(common), left, right


def _turned(candidate: Measurement, current: Measurement | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The items that the candidate won and lost against the current skill, by their hard score."""
    if current is None:
        return (), ()
    common = [item for item in candidate.items if item in current.items]
    both = [(item, candidate.items[item].hard, current.items[item].hard) for item in common]
    won = tuple(item for item, new, old in both if new > old)
    lost = tuple(item for item, new, old in both if new < old)
    return won, lost


# --- the end of an epoch -------------------------------------------------------------------------------------------


def _place_slow_block(state: TrainerState, run: RunData) -> Event:
    assert state.current is not None
    skill = state.current.skill
    placed = skill.with_text(with_slow_placeholder(skill.text))
    known = state.measured.get(placed.hash)
    return SlowUpdateApplied(
        epoch=1,
        action="placeholder",
        skill=placed,
        candidate=placed.hash,
        candidate_score=known.score if known else None,
        candidate_value=run.gate_value(known.score, placed) if known else None,
        stale_from=kept_score(state.current, placed, run),
    )


def _skip_first_memory(state: TrainerState, run: RunData) -> Event:
    return MetaSkillWritten(epoch=1, result="first_epoch")


def _draw_comparison(state: TrainerState, run: RunData) -> Event:
    assert state.epoch is not None
    assert state.current is not None
    items = sampling.comparison_sample(
        run.started.splits.train,
        epoch=state.epoch.number,
        seed=run.config.train.seed,
        count=run.config.optimizer.slow_update_samples,
    )
    return ComparisonDrawn(
        epoch=state.epoch.number,
        items=items,
        previous=state.epoch.first_skill.hash,
        current=state.current.skill.hash,
    )


def _extend_comparison(state: TrainerState, run: RunData) -> Event:
    assert state.epoch is not None
    return ComparisonExtended(epoch=state.epoch.number, items=more_to_compare(state, run))


def more_to_compare(state: TrainerState, run: RunData) -> tuple[str, ...]:
    """The next tasks to compare, when the policy wants turned ones and there are too few; none when that is all."""
    assert state.epoch is not None
    assert state.epoch.comparison is not None
    optimizer = run.config.optimizer
    drawn = state.epoch.comparison
    one_text = drawn.previous == drawn.current and not optimizer.compare_equal_skills
    if optimizer.longitudinal_pair_policy != "changed" or one_text:
        return ()
    missing = optimizer.slow_update_samples - len(selected_pairs(state, run))
    candidates = sampling.comparison_candidates(
        run.started.splits.train, epoch=state.epoch.number, seed=run.config.train.seed, compared=drawn.items
    )
    return candidates[: max(0, missing)]


def _apply_slow_update(state: TrainerState, run: RunData) -> Event:
    assert state.epoch is not None
    assert state.epoch.proposed is not None
    assert state.current is not None
    proposed = state.epoch.proposed
    if proposed.candidate is None:
        return SlowUpdateApplied(epoch=proposed.epoch, action="postponed", skill=state.current.skill)
    if proposed.candidate.hash == state.current.skill.hash:
        return SlowUpdateApplied(
            epoch=proposed.epoch, action="unchanged", skill=state.current.skill, guidance=proposed.guidance
        )
    known = state.measured.get(proposed.candidate.hash)
    if not run.config.optimizer.slow_update_gate_with_selection:
        return SlowUpdateApplied(
            epoch=proposed.epoch,
            action="force_accept",
            skill=proposed.candidate,
            guidance=proposed.guidance,
            candidate=proposed.candidate.hash,
            candidate_score=known.score if known else None,
            candidate_value=run.gate_value(known.score, proposed.candidate) if known else None,
            stale_from=kept_score(state.current, proposed.candidate, run),
        )
    assert known is not None
    return _gated_slow_update(state, run, known, state.current)


def _apply_late_slow_update(state: TrainerState, run: RunData) -> Event:
    """The same for an epoch that is over."""
    return _apply_slow_update(at_owed_epoch(state), run)


def _gated_slow_update(state: TrainerState, run: RunData, known: Measurement, current: Standing) -> Event:
    assert state.epoch is not None
    assert state.epoch.proposed is not None
    assert state.epoch.proposed.candidate is not None
    assert state.best is not None
    proposed = state.epoch.proposed
    candidate = state.epoch.proposed.candidate
    _, score, standing = _on_common_items(known, state.measured[current.stale_from or current.skill.hash])
    value, current_value = run.gate_value(score, candidate), standing_value(current, standing, run)
    best = is_better(state, run, candidate, state.best.skill)
    action = _verdict(value, current_value, best, use_gate=True)
    assert action in ("accept", "accept_new_best", "reject")
    return SlowUpdateApplied(
        epoch=proposed.epoch,
        action=action,
        skill=current.skill if action == "reject" else candidate,
        guidance=proposed.guidance,
        candidate=candidate.hash,
        candidate_score=score,
        candidate_value=value,
        current_value=current_value,
        best_value=state.best.value,
        known_from="" if known.place == f"e{proposed.epoch}/slow/gate" else known.place,
        stale_from=current.stale_from,
    )


def _complete_epoch(state: TrainerState, run: RunData) -> Event:
    assert state.epoch is not None
    return EpochCompleted(epoch=state.epoch.number)


# --- the end of the run --------------------------------------------------------------------------------------------


def _promote_best(state: TrainerState, run: RunData) -> Event:
    assert state.current is not None
    assert state.best is not None
    value = state.measured[state.current.skill.hash].value
    assert value is not None
    return BestPromoted(
        skill=state.current.skill.hash,
        value=value,
        previous=state.best.skill.hash,
        previous_value=state.best.value,
    )


def _complete_run(state: TrainerState, run: RunData) -> Event:
    assert state.current is not None
    assert state.best is not None
    best, final = state.best.skill.hash, state.current.skill.hash
    tests = {skill: scored.score for skill, scored in state.tests.items()}
    return RunCompleted(
        best=best,
        final=final,
        test_initial=tests.get(run.started.skill.hash),
        test_best=tests.get(best),
        test_final=tests.get(final),
    )


_GUARDED: dict[tasks.Step, Callable[[TrainerState, RunData, LeakGuard], Event]] = {
    "extend_appendix": _extend_appendix,
    "build_candidate": _build_candidate,
}
_DECISIONS: dict[tasks.Step, Callable[[TrainerState, RunData], Event]] = {
    "plan_epoch": _plan_epoch,
    "plan_minibatches": _plan_minibatches,
    "pause_for_optimizer": _pause_for_optimizer,
    "gate_candidate": _gate_candidate,
    "write_appendix": _write_appendix,
    "place_slow_block": _place_slow_block,
    "skip_first_memory": _skip_first_memory,
    "draw_comparison": _draw_comparison,
    "extend_comparison": _extend_comparison,
    "apply_slow_update": _apply_slow_update,
    "apply_late_slow_update": _apply_late_slow_update,
    "complete_epoch": _complete_epoch,
    "promote_best": _promote_best,
    "complete_run": _complete_run,
}
