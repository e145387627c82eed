"""Every type of event in a few words, for `log` and for those who watch a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import get_args

from skillopt_es.counting import counted
from skillopt_es.events.catalog import (
    AppendixConsolidated,
    AppendixExtended,
    AppendixWritten,
    BestPromoted,
    CandidateBuilt,
    CandidateGated,
    CertificateWagered,
    ComparisonDrawn,
    ComparisonExtended,
    EditsRanked,
    EpochCompleted,
    EpochPlanned,
    Event,
    EvidenceRetracted,
    GapFound,
    LearningRateChosen,
    MetaSkillWritten,
    MinibatchesPlanned,
    PatchesMerged,
    PatchProposed,
    Recorded,
    RolloutCompleted,
    RunCompleted,
    RunForked,
    RunImported,
    RunPaused,
    RunResumed,
    RunStarted,
    RunSteered,
    SealedTestOpened,
    SkillRewritten,
    SkillScored,
    SlowUpdateApplied,
    SlowUpdateProposed,
    StepImported,
    StepSkipped,
    TextsErased,
    TrainingStopped,
    TriesPlanned,
)
from skillopt_es.events.places import BASELINE, FINAL_VAL
from skillopt_es.events.values import (
    DRAWS_ONCE,
    Failed,
    GateVerdict,
    Measured,
    Order,
    Outcome,
    PatchSource,
    Rewrite,
    Score,
)
from skillopt_es.gate.comparing import REASONS
from skillopt_es.presenting.certificates import wager_words
from skillopt_es.presenting.numbers import shown_settings, shown_time, shown_value
from skillopt_es.presenting.palette import verdict_words
from skillopt_es.presenting.words import source_words
from skillopt_es.skill.alignment import lines_of

_CONTENT = 80  # of a text that a model wrote, in a line that is about something else
_TIMES = {1: "once", 2: "twice"}  # English has words of its own for these two


def event_line(recorded: Recorded) -> str:
    """One plain line: number, time (UTC), type and what it says."""
    kind = type(recorded.event).__name__
    what = in_words(recorded.event)
    return f"{recorded.seq:>6}  {shown_time(recorded.recorded_at)}  {kind:<18}  {what}".rstrip()


def in_words(event: Event) -> str:
    """What an event says, in one line."""
    return " ".join(_WORDS[type(event)](event).split())


_MILESTONES: Mapping[type[Event], str] = {
    EpochPlanned: "{}",
    AppendixExtended: "  appendix, {}",
    AppendixConsolidated: "  appendix, {}",
    CandidateGated: "  {}",
    StepSkipped: "  {}",
    AppendixWritten: "  appendix, {}",
    SlowUpdateApplied: "  slow update, {}",
    MetaSkillWritten: "  meta skill, {}",
    TrainingStopped: "  stopped, {}",
    BestPromoted: "  {}",
    CertificateWagered: "  certificate, {}",
    SealedTestOpened: "  {}",
    RunPaused: "paused, {}",
    RunSteered: "  steered, {}",
    RunCompleted: "done: {}",
}


def milestone(event: Event) -> str:
    """A line for an event that deserves one while a run is watched, else nothing."""
    if isinstance(event, SkillScored) and (event.place in (BASELINE, FINAL_VAL) or event.purpose == "test"):
        return f"  {in_words(event)}"
    form = _MILESTONES.get(type(event))
    return form.format(in_words(event)) if form else ""


def _content(text: str) -> str:
    """The beginning of what a model wrote."""
    line = " ".join(text.split())
    return line if len(line) <= _CONTENT else f"{line[: _CONTENT - 1]}…"


def _started(event: RunStarted) -> str:
    splits = event.splits
    if not splits.digests:
        return f"{counted(event.total_steps, 'step')}; {event.software}"
    data = f"{len(splits.train)} train, {len(splits.val)} validation, {len(splits.test)} test items"
    begun = "" if event.learned is None else f"; continues {event.learned.run}"
    return f"{counted(event.total_steps, 'step')} over {data}{begun}; {event.software}"


def _planned(event: EpochPlanned) -> str:
    return f"epoch {event.epoch}" + (f": {counted(len(event.batches), 'batch')}" if event.batches else "")


def _rollout(event: RolloutCompleted) -> str:
    failure = f" ({event.failure})" if event.failure and isinstance(event.outcome, Measured) else ""
    return f"{event.place}: {event.item} {_outcome(event.outcome)}{failure}"


def _outcome(outcome: Outcome) -> str:
    if isinstance(outcome, Measured):
        return f"{'pass' if outcome.passed else 'FAIL'} {outcome.hard:g}/{outcome.soft:.2f}"
    if isinstance(outcome, Failed):
        return f"not measured: {outcome.kind}, {outcome.message}"
    return f"not run: {outcome.why}"


def _scored(event: SkillScored) -> str:
    told = ", decides nothing" if event.repeat == 0 else ""
    if event.exact:
        return f"{event.place}: {_score(event.score)}, skill {event.skill[:8]}{told}"
    most = f"at most hard {event.score.hard:.4f}, soft {event.score.soft:.4f}"
    return f"{event.place}: cannot win, {counted(len(event.not_run), 'item')} not run; {most}, skill {event.skill[:8]}"


def _score(score: Score) -> str:
    unmeasured = f" ({score.unmeasured} not measured)" if score.unmeasured else ""
    items = "items that are not known" if score.measured is None else f"{counted(score.measured, 'item')}"
    return f"hard {score.hard:.4f}, soft {score.soft:.4f} on {items}{unmeasured}"


def _minibatches(event: MinibatchesPlanned) -> str:
    of = {kind: [group for group in event.groups if group.kind == kind] for kind in get_args(PatchSource)}
    items = {kind: sum(len(group.items) for group in groups) for kind, groups in of.items()}
    asked = f"{counted(len(of['failure']), 'group')} about failures ({counted(items['failure'], 'item')}), "
    asked += f"{len(of['success'])} of successes"
    unasked = [source_words(kind, items[kind]) for kind in ("examples", "pruning") if of[kind]]
    told = [asked] if of["failure"] or of["success"] or not unasked else []
    return f"step {event.step}: {', '.join([*told, *unasked])}"


def _patch(event: PatchProposed) -> str:
    notes = f" and {counted(len(event.notes), 'note')}" if event.notes else ""
    seen = f" from {counted(len(event.items), 'rollout')}" if event.items else ""
    if event.result == "nothing":
        return f"{event.patch}: nothing proposed{seen}"
    if event.result not in ("unusable", "failed"):
        return f"{event.patch}: {_proposed(event)}{notes}{seen}"
    return f"{event.patch}: {event.result}, {event.note}"


def _appendix_extended(event: AppendixExtended) -> str:
    proposed = counted(len(event.reports), "note")
    written = "with the candidate" if event.order == "measured" else "after the verdict"
    total = f"{len(event.notes)} in all, {written}" if event.added else "the appendix stays as it is"
    return f"step {event.step}: {len(event.added)} of {proposed} new, {total}"


def _appendix_consolidated(event: AppendixConsolidated) -> str:
    if event.result == "consolidated":
        return f"step {event.step}: {counted(len(event.before), 'note')} to {len(event.notes)}"
    return f"step {event.step}: {counted(len(event.before), 'note')} as they were, {event.result}, {event.note}"


def _appendix_written(event: AppendixWritten) -> str:
    notes = counted(len(event.notes), "note")
    measured = "is not measured" if event.value is None else f"had measured {shown_value(event.value)}"
    stale = f", with the score of skill {event.stale_from[:8]}" if event.stale_from else ""
    return f"step {event.step}: {notes} after the verdict, skill {event.skill.hash[:8]} {measured}{stale}"


def _merged(event: PatchesMerged) -> str:
    joined = f"; joined as they were, {event.fallback}" if event.fallback else ""
    joined += f"; not reached, {event.failed}" if event.failed else ""
    return f"{event.merge}: {counted(len(event.inputs), 'input')} to {_proposed(event)}{joined}"


def _proposed(event: PatchProposed | PatchesMerged) -> str:
    if event.suggestions:
        return counted(len(event.suggestions), "suggestion")
    return counted(len(event.drafts), "draft") if event.drafts else counted(len(event.edits), "edit")


def _learning_rate(event: LearningRateChosen) -> str:
    if event.result == "chosen":
        return f"step {event.step}: {event.budget} of {event.available}"
    return f"step {event.step}: {event.budget}, {event.result}, {event.note}"


def _tries(event: TriesPlanned) -> str:
    parts = " under parts of the candidate" if any(tries.edits for tries in event.tries) else ""
    return f"step {event.step}: {counted(sum(len(tries.items) for tries in event.tries), 'rollout')}{parts}"


def _ranked(event: EditsRanked) -> str:
    fallback = f"; the first of them, {event.fallback}" if event.fallback else ""
    fallback += f"; not reached, {event.failed}" if event.failed else ""
    budget = "" if event.budget is None else f", budget {event.budget}"
    together = "" if event.together is None else f", refused together{_turned(event.together)}"
    return f"step {event.step}: {len(event.chosen)} of {len(event.pool)} chosen{budget}{together}{fallback}"


def _rewritten(event: SkillRewritten) -> str:
    if event.result != "written":
        return f"step {event.step}: {event.result}, {event.note}"
    return f"step {event.step}: {counted(len(event.changes), 'change')}" + "".join(
        f"; {_content(each)}" for each in event.changes
    )


def _built(event: CandidateBuilt) -> str:
    if event.rewrite is not None:
        return _built_anew(event, event.rewrite)
    applied = len(event.applied)
    edits = counted(len(event.reports), "edit")
    notes = f" and {counted(event.notes, 'note')} added" if event.notes else ""
    return f"step {event.step}: {applied} of {edits} applied{notes}, skill {event.candidate.hash[:8]}"


def _built_anew(event: CandidateBuilt, rewrite: Rewrite) -> str:
    kept = sum(run.length for run in rewrite.kept)
    new = len(lines_of(event.candidate.text)) - kept
    repairs = "".join(f", {each.part.replace('_', ' ')} {each.action.replace('_', ' ')}" for each in rewrite.repairs)
    notes = f", {counted(event.notes, 'note')} added" if event.notes else ""
    lines = f"{counted(new, 'new line')}, {kept} kept{repairs}{notes}"
    return f"step {event.step}: rewritten, {lines}, skill {event.candidate.hash[:8]}"


def _gated(event: CandidateGated) -> str:
    verdict = event.verdict
    most = "" if verdict.exact else "at most "
    values = f"{shown_value(verdict.current_value)} -> {most}{shown_value(verdict.candidate_value)}"
    turned = ", not compared" if verdict.alone else _turned(verdict)
    turned += _weighed(verdict)
    turned += f", against the score of skill {verdict.stale_from[:8]}" if verdict.stale_from else ""
    return f"step {event.step}: {verdict.action.replace('_', ' ')}, {values} {verdict.metric}{turned}{_against(event)}"


def _against(event: CandidateGated) -> str:
    """For whose sake it was refused, where its rule would have taken it."""
    return f": {', '.join(event.against)}" if event.against else ""


def _turned(verdict: GateVerdict) -> str:
    if verdict.compared is None:
        return ""
    return f", won {len(verdict.won)}, lost {len(verdict.lost)} of {verdict.compared}"


def _weighed(verdict: GateVerdict) -> str:
    """By which rule, after how many draws and why, where that is more than one draw against one."""
    reason = REASONS.get(verdict.reason, verdict.reason.replace("_", " "))
    if verdict.rule is None or verdict.rule in DRAWS_ONCE:
        return f", {reason}" if reason else ""
    error = "" if verdict.error is None else f"; noise {verdict.error:.4f}"
    drawn = f"candidate drawn {_times(verdict.repeats)}, current {_times(verdict.current_repeats)}"
    return f"; {verdict.rule}: {reason} ({drawn}{error})"


def _times(count: int) -> str:
    return _TIMES.get(count, f"{count} times")


def _skipped(event: StepSkipped) -> str:
    detail = f"; {said_of(event)}" if event.detail else ""
    return f"step {event.step}: {event.reason.replace('_', ' ')}{detail}"


def said_of(event: StepSkipped) -> str:
    """What led to a skipped step; logs say of one analyst what they say of several."""
    return re.sub(r"^1 analysts ", "1 analyst ", event.detail)


def _compared(event: ComparisonDrawn) -> str:
    return (
        f"epoch {event.epoch}: {counted(len(event.items), 'item')}, skills {event.previous[:8]} and {event.current[:8]}"
    )


def _slow_proposed(event: SlowUpdateProposed) -> str:
    what = _content(event.guidance) if event.result == "guidance" else event.note
    return f"epoch {event.epoch}: {event.result}, {what}"


def _slow_applied(event: SlowUpdateApplied) -> str:
    verdict, skill = event.verdict, event.skill.hash[:8]
    most = "" if verdict.exact else "at most "
    value = "" if verdict.candidate_value is None else f" ({most}{shown_value(verdict.candidate_value)})"
    stale = f", with the score of skill {verdict.stale_from[:8]}" if verdict.stale_from else ""
    more = f"{stale}{_turned(verdict)}{_weighed(verdict)}"
    return f"epoch {event.epoch}: {verdict_words(verdict.action)}{value}, skill {skill}{more}"


def _meta(event: MetaSkillWritten) -> str:
    what = _content(event.content) or event.note
    return f"epoch {event.epoch}: {event.result.replace('_', ' ')}" + (f", {what}" if what else "")


def _promoted(event: BestPromoted) -> str:
    values = f"{shown_value(event.previous_value)} -> {shown_value(event.value)}"
    return f"the final skill {event.skill[:8]} is the best, {values}"


def _wagered(event: CertificateWagered) -> str:
    met = f"{event.challenger[:8]} against certified {event.certified[:8]}: {wager_words(event)}"
    return f"{event.place}: {counted(len(event.by_item.gains), 'fresh item')}, {met}"


def _opened(event: SealedTestOpened) -> str:
    by = "the final evaluation" if event.by == "final" else f"eval of skill {event.skill[:8]}, in {event.evaluation}"
    return f"look {event.look} at the sealed test split, by {by}"


def _completed(event: RunCompleted) -> str:
    tests = (("initial", event.test_initial), ("best", event.test_best), ("final", event.test_final))
    said = ", ".join(f"{name} {score.hard:.4f}" for name, score in tests if score is not None)
    return f"best skill {event.best[:8]}" + (f"; test: {said}" if said else "")


def _forked(event: RunForked) -> str:
    changes = shown_settings(event.overrides)
    return f"of {event.parent} after event {event.seq}, with its {counted(event.inherited, 'call')}" + (
        f"; {changes}" if changes else "; nothing changed"
    )


_ORDERS: Mapping[Order, str] = {
    "pause": "to pause",
    "stop": "to end the training",
    "budget": "another budget",
    "hint": "a hint",
    "pin": "a line pinned",
    "unpin": "a line no longer pinned",
    "strike": "a line struck",
    "take": "the candidate is taken by hand",
    "refuse": "the candidate is refused by hand",
    "retract": "an item retracted",
}


def _steered(event: RunSteered) -> str:
    text = event.text[:8] if event.order in ("take", "refuse") else f"“{_content(event.text)}”" if event.text else ""
    what = text or shown_settings(event.settings)
    return f"{_ORDERS[event.order]}{f', {what}' if what else ''}, by {event.by}: {event.why}"


def _stopped(event: TrainingStopped) -> str:
    best = f"best {shown_value(event.best_value)} since {f'step {event.since}' if event.since else 'the start'}"
    limit = "" if event.limit is None else f" {event.limit:g}"
    return f"{event.reason}{limit} after step {event.step}: {best}"


def _retracted(event: EvidenceRetracted) -> str:
    where = f" at {event.place}" if event.place else ""
    return f"{', '.join(event.items)}{where}, by {event.by}: {event.reason}"


def _erased(event: TextsErased) -> str:
    what = f"{counted(len(event.texts), 'text')} and parts of {counted(len(event.events), 'event')}"
    return f"{what} about {', '.join(event.items)}, by {event.by}: {event.reason}"


_WORDS: Mapping[type[Event], Callable[..., str]] = {
    RunStarted: _started,
    RunResumed: lambda event: event.software,
    RunForked: _forked,
    EvidenceRetracted: _retracted,
    TextsErased: _erased,
    RunPaused: lambda event: f"{event.reason}: {event.message}",
    RunSteered: _steered,
    EpochPlanned: _planned,
    RolloutCompleted: _rollout,
    SkillScored: _scored,
    MinibatchesPlanned: _minibatches,
    PatchProposed: _patch,
    AppendixExtended: _appendix_extended,
    AppendixConsolidated: _appendix_consolidated,
    PatchesMerged: _merged,
    LearningRateChosen: _learning_rate,
    TriesPlanned: _tries,
    EditsRanked: _ranked,
    SkillRewritten: _rewritten,
    CandidateBuilt: _built,
    CandidateGated: _gated,
    StepSkipped: _skipped,
    AppendixWritten: _appendix_written,
    ComparisonDrawn: _compared,
    ComparisonExtended: lambda event: f"epoch {event.epoch}: {counted(len(event.items), 'item')} more",
    SlowUpdateProposed: _slow_proposed,
    SlowUpdateApplied: _slow_applied,
    MetaSkillWritten: _meta,
    TrainingStopped: _stopped,
    EpochCompleted: lambda event: f"epoch {event.epoch}",
    BestPromoted: _promoted,
    CertificateWagered: _wagered,
    SealedTestOpened: _opened,
    RunCompleted: _completed,
    RunImported: lambda event: f"from the result files of {event.source} in {event.folder}",
    StepImported: lambda event: f"step {event.step}: as it was recorded there",
    GapFound: lambda event: f"{event.place}: {event.what} is unknown: {event.why}",
}
