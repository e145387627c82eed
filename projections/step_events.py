"""How the events of a step change the state, from its minibatches to its verdict."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve as replace

from skillopt_es.events.catalog import (
    AppendixConsolidated,
    AppendixExtended,
    AppendixWritten,
    CandidateBuilt,
    CandidateGated,
    EditsRanked,
    LearningRateChosen,
    MinibatchesPlanned,
    PatchesMerged,
    PatchProposed,
    RolloutCompleted,
    SkillRewritten,
    StepImported,
    StepSkipped,
)
from skillopt_es.events.values import REFUSED_LEAK, Measured, Proposal
from skillopt_es.projections.state import (
    Attempt,
    Standing,
    StepState,
    TrainerState,
    is_train,
    outside_step,
    proposals_of,
    stated_score,
    step_after,
)


def _with_step(state: TrainerState, step: StepState) -> TrainerState:
    return replace(state, step=step)


def minibatches(state: TrainerState, event: MinibatchesPlanned) -> TrainerState:
    """Who analyses what."""
    assert state.step is not None
    return _with_step(state, replace(state.step, groups=event.groups))


def patch(state: TrainerState, event: PatchProposed) -> TrainerState:
    """An analyst's patch joins the step."""
    assert state.step is not None
    return _with_step(state, replace(state.step, patches=state.step.patches.put(event.patch, event)))


def appendix_extended(state: TrainerState, event: AppendixExtended) -> TrainerState:
    """New reminder notes."""
    assert state.step is not None
    return _with_step(state, replace(state.step, extended=event))


def appendix_consolidated(state: TrainerState, event: AppendixConsolidated) -> TrainerState:
    """The notes, made shorter."""
    assert state.step is not None
    return _with_step(state, replace(state.step, consolidated=event))


def appendix_written(state: TrainerState, event: AppendixWritten) -> TrainerState:
    """The score of the text before it is not its own: it has one when that very text was measured."""
    assert state.current is not None
    if event.skill.hash == state.current.skill.hash:
        return replace(state, unwritten=())
    measured = state.current if event.stale_from else state.measured.get(event.skill.hash)
    standing = Standing(
        skill=event.skill,
        origin=f"appendix_step_{event.step:04d}",
        step=event.step,
        score=stated_score(measured),
        value=measured.value if measured else None,
        stale_from=event.stale_from,
    )
    return replace(state, current=standing, unwritten=())


def merged(state: TrainerState, event: PatchesMerged) -> TrainerState:
    """Patches became one."""
    assert state.step is not None
    return _with_step(state, replace(state.step, merges=state.step.merges.put(event.merge, event)))


def learning_rate(state: TrainerState, event: LearningRateChosen) -> TrainerState:
    """How many edits the step may apply."""
    assert state.step is not None
    return _with_step(state, replace(state.step, learning_rate=event))


def ranked(state: TrainerState, event: EditsRanked) -> TrainerState:
    """Which edits are applied."""
    assert state.step is not None
    counts = replace(state.counts, selections=state.counts.selections + 1)
    return replace(state, step=replace(state.step, ranked=event), counts=counts)


def rewritten(state: TrainerState, event: SkillRewritten) -> TrainerState:
    """The skill, written anew."""
    assert state.step is not None
    return _with_step(state, replace(state.step, rewritten=event))


def built(state: TrainerState, event: CandidateBuilt) -> TrainerState:
    """The step's candidate."""
    assert state.step is not None
    return _with_step(state, replace(state.step, built=event))


def gated(state: TrainerState, event: CandidateGated) -> TrainerState:
    """The verdict: it closes the step."""
    assert state.step is not None
    verdict = event.verdict
    candidate = _candidate(state, state.step, event) if verdict.taken else state.current
    counts = replace(
        state.counts,
        accepted=state.counts.accepted + verdict.taken,
        rejected=state.counts.rejected + (verdict.action == "reject"),
        indecisive=state.counts.indecisive + (verdict.action == "indecisive"),
    )
    attempt = _attempt(state, state.step, verdict.action, verdict.current_value, verdict.candidate_value)
    attempt = replace(attempt, bound=not verdict.exact)
    state = replace(
        state,
        current=candidate,
        best=candidate if verdict.new_best else state.best,
        buffer=(*state.buffer, attempt),
        counts=counts,
    )
    return close_step(state)


def _candidate(state: TrainerState, step: StepState, event: CandidateGated) -> Standing:
    """The place that an accepted candidate takes."""
    assert step.built is not None
    skill, measured = step.built.candidate, state.measured[event.candidate]
    origin = f"step_{event.step:04d}"
    return Standing(skill=skill, score=measured.stated, value=measured.value, origin=origin, step=event.step)


def _attempt(state: TrainerState, step: StepState, action: str, before: float | None, after: float | None) -> Attempt:
    """What the optimizer is told of a step; only what was refused is told as not to be proposed again."""
    refused = action in ("reject", "too_large")
    rows = [row for place, done in state.rollouts.items() if is_train(place, step.number) for row in done.values()]
    failed = _failed(step, rows)
    codes: dict[str, list[str]] = {}
    for row in rows:
        if (row.place, row.item) in failed:
            codes.setdefault(row.failure or "unknown", []).append(row.item)
    rejected: tuple[Proposal, ...] = ()
    rejected_notes: tuple[str, ...] = ()
    if refused and step.ranked is not None:
        by_id = proposals_of(step)
        # What copies an item is not told to later analysts: they would hand it on.
        copied = {report.edit for report in step.built.reports if report.status == REFUSED_LEAK} if step.built else ()
        rejected = tuple(by_id[name] for name in step.ranked.chosen if name not in copied)
    if refused and step.extended is not None and step.extended.order == "measured":
        rejected_notes = step.extended.added
    return Attempt(
        step=step.number,
        action=action,
        total=len(rows),
        failed=sum(len(items) for items in codes.values()),
        codes=tuple((code, tuple(items)) for code, items in codes.items()),
        patterns=tuple(pattern for patch in step.patches.values() for pattern in patch.patterns),
        value_before=before,
        value_after=after,
        rejected=rejected,
        rejected_notes=rejected_notes,
    )


def _failed(step: StepState, rows: Iterable[RolloutCompleted]) -> set[tuple[str, str]]:
    """The rollouts that analysts saw as failures; of an imported step as recorded there, else all that are no pass."""
    if step.imported is None:
        return {(group.place, item) for group in step.groups or () if group.kind == "failure" for item in group.items}
    known = step.imported.failed
    if known is not None:
        return {(row.place, row.item) for row in rows if row.item in known}
    return {(row.place, row.item) for row in rows if isinstance(row.outcome, Measured) and not row.outcome.passed}


def skipped(state: TrainerState, event: StepSkipped) -> TrainerState:
    """The step ends without a candidate."""
    assert state.step is not None
    if event.reason == "too_large":
        attempt = _attempt(state, state.step, event.reason, None, None)
        state = replace(state, buffer=(*state.buffer, attempt))
    return close_step(replace(state, counts=replace(state.counts, skipped=state.counts.skipped + 1)))


def close_step(state: TrainerState) -> TrainerState:
    assert state.step is not None
    assert state.epoch is not None
    number = state.step.number
    after_the_verdict = state.step.extended is not None and state.step.extended.order == "upstream"
    return replace(
        state,
        steps_done=number,
        unwritten=state.step.notes if after_the_verdict else (),
        rollouts=outside_step(state.rollouts, number),
        scored=outside_step(state.scored, number),
        step=step_after(state, state.epoch, number + 1),
    )


def step_imported(state: TrainerState, event: StepImported) -> TrainerState:
    """What another trainer's folder says of the step."""
    assert state.step is not None
    return _with_step(state, replace(state.step, imported=event))
