"""How the events of a step change the state, from its minibatches to its verdict. The core changes after them."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve as replace

from skillopt_es.algorithms.classic.phases import open_epoch, open_step
from skillopt_es.algorithms.classic.state import (
    ClassicState,
    StepState,
    is_train,
    outside_step,
    proposals_of,
    step_after,
    updated,
)
from skillopt_es.events.catalog import (
    AppendixConsolidated,
    AppendixExtended,
    AppendixWritten,
    CandidateGated,
    EditsRanked,
    GapFound,
    LearningRateChosen,
    MinibatchesPlanned,
    PatchesMerged,
    PatchProposed,
    RolloutCompleted,
    RunResumed,
    SkillRewritten,
    StepImported,
    StepSkipped,
)
from skillopt_es.events.values import REFUSED_LEAK, BufferEntry, FailureCode, Measured, Proposal
from skillopt_es.projections.persistent import Ledger


def _with(state: ClassicState, step: StepState) -> ClassicState:
    return updated(state, replace(state.algorithm, step=step))


def minibatches(state: ClassicState, step: StepState, event: MinibatchesPlanned) -> ClassicState:
    """Who analyses what."""
    return _with(state, replace(step, groups=event.groups))


def patch(state: ClassicState, step: StepState, event: PatchProposed) -> ClassicState:
    """An analyst's patch joins the step."""
    return _with(state, replace(step, patches=step.patches.put(event.patch, event)))


def appendix_extended(state: ClassicState, step: StepState, event: AppendixExtended) -> ClassicState:
    """New reminder notes."""
    return _with(state, replace(step, extended=event))


def appendix_consolidated(state: ClassicState, step: StepState, event: AppendixConsolidated) -> ClassicState:
    """The notes, made shorter."""
    return _with(state, replace(step, consolidated=event))


def appendix_written(state: ClassicState, event: AppendixWritten) -> ClassicState:
    """The notes are in the skill."""
    return updated(state, replace(state.algorithm, unwritten=()))


def merged(state: ClassicState, step: StepState, event: PatchesMerged) -> ClassicState:
    """Patches became one."""
    return _with(state, replace(step, merges=step.merges.put(event.merge, event)))


def learning_rate(state: ClassicState, step: StepState, event: LearningRateChosen) -> ClassicState:
    """How many edits the step may apply."""
    return _with(state, replace(step, learning_rate=event))


def ranked(state: ClassicState, step: StepState, event: EditsRanked) -> ClassicState:
    """Which edits are applied."""
    state = _with(state, replace(step, ranked=event))
    # Counted whatever was chosen: a schedule may go by choices, and a step without any has none.
    return replace(state, counts=replace(state.counts, selections=state.counts.selections + 1))


def rewritten(state: ClassicState, step: StepState, event: SkillRewritten) -> ClassicState:
    """The skill, written anew."""
    return _with(state, replace(step, rewritten=event))


def step_imported(state: ClassicState, step: StepState, event: StepImported) -> ClassicState:
    """What another trainer's folder says of the step."""
    return _with(state, replace(step, imported=event))


def gated(state: ClassicState, step: StepState, event: CandidateGated) -> ClassicState:
    """The verdict: it closes the step."""
    verdict = event.verdict
    attempt = _attempt(state, step, verdict.action, verdict.current_value, verdict.candidate_value)
    attempt = replace(attempt, bound=not verdict.exact)
    return close_step(updated(state, replace(state.algorithm, buffer=(*state.algorithm.buffer, attempt))), step)


def _attempt(
    state: ClassicState, step: StepState, action: str, before: float | None, after: float | None
) -> BufferEntry:
    """What the optimizer is told about a step; only what was refused is told as not to be proposed again."""
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
        reports = () if state.built is None else state.built.reports
        copied = {report.edit for report in reports if report.status == REFUSED_LEAK}
        rejected = tuple(by_id[name] for name in step.ranked.chosen if name not in copied)
    if refused and step.extended is not None and step.extended.order == "measured":
        rejected_notes = step.extended.added
    return BufferEntry(
        step=step.number,
        action=action,
        total=len(rows),
        failed=sum(len(items) for items in codes.values()),
        codes=tuple(FailureCode(code, tuple(items)) for code, items in codes.items()),
        patterns=tuple(pattern for patch in step.patches.values() for pattern in patch.patterns),
        value_before=before,
        value_after=after,
        rejected=rejected,
        rejected_notes=rejected_notes,
    )


def _failed(step: StepState, rows: Iterable[RolloutCompleted]) -> set[tuple[str, str]]:
    """The rollouts that analysts saw as failures; of an imported step as recorded there, else all that are no pass."""
    if step.imported is None:
        return {(group.place, item) for group in step.planned if group.kind == "failure" for item in group.items}
    known = step.imported.failed
    if known is not None:
        return {(row.place, row.item) for row in rows if row.item in known}
    return {(row.place, row.item) for row in rows if isinstance(row.outcome, Measured) and not row.outcome.passed}


def skipped(state: ClassicState, step: StepState, event: StepSkipped) -> ClassicState:
    """The step ends without a candidate."""
    if event.reason == "too_large":
        attempt = _attempt(state, step, event.reason, None, None)
        state = updated(state, replace(state.algorithm, buffer=(*state.algorithm.buffer, attempt)))
    return close_step(state, step)


def gap(state: ClassicState, event: GapFound) -> ClassicState:
    """A step whose end is not known is over."""
    return state if event.step is None else close_step(state, open_step(state).step)


def close_step(state: ClassicState, step: StepState) -> ClassicState:
    """The state after a step: its results are not needed any more."""
    after_the_verdict = step.extended is not None and step.extended.order == "after_verdict"
    state = updated(
        state,
        replace(
            state.algorithm,
            unwritten=step.notes if after_the_verdict else (),
            step=step_after(state, open_epoch(state), step.number + 1),
        ),
    )
    return replace(
        state,
        rollouts=outside_step(state.rollouts, step.number),
        scored=outside_step(state.scored, step.number),
    )


def resumed(state: ClassicState, event: RunResumed) -> ClassicState:
    """The open step forgets what could not be asked; single analysts only when nothing was built without them yet."""
    step = state.algorithm.step
    if step is None or state.paused is None or state.paused.reason != "optimizer":
        return state
    if all(patch.result == "failed" for patch in step.patches.values()):
        return _with(state, replace(step, patches=Ledger()))
    merges: Ledger[str, PatchesMerged] = Ledger()
    for name, merge in step.merges.items():
        if not merge.failed:
            merges = merges.put(name, merge)
    rate, ranked, rewritten = step.learning_rate, step.ranked, step.rewritten
    step = replace(
        step,
        merges=merges,
        learning_rate=None if rate is not None and rate.result == "failed" else rate,
        ranked=None if ranked is not None and ranked.failed else ranked,
        rewritten=None if rewritten is not None and rewritten.result == "failed" else rewritten,
    )
    return _with(state, step)
