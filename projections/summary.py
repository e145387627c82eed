"""
A run in one line a step: scores, edits and verdicts, read from the events without folding the trainer's whole state.

Events that are left out only leave their own numbers at zero, so that an overview can skip the many small ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from attrs import evolve, field, frozen

from skillopt_es.events.catalog import (
    AppendixExtended,
    AppendixWritten,
    BestPromoted,
    CandidateBuilt,
    CandidateGated,
    CertificateWagered,
    EditsRanked,
    EpochCompleted,
    EpochPlanned,
    Event,
    EvidenceRetracted,
    GapFound,
    MetaSkillWritten,
    PatchProposed,
    RunCompleted,
    RunForked,
    RunImported,
    RunPaused,
    RunResumed,
    RunStarted,
    RunSteered,
    SealedTestOpened,
    SkillScored,
    SlowUpdateApplied,
    StepImported,
    StepSkipped,
    TextsErased,
    TrainingStopped,
    names_of,
)
from skillopt_es.events.places import Place
from skillopt_es.events.values import GateVerdict, Score, Setting, SplitIds
from skillopt_es.projections.by_hand import ByHand, after_hand
from skillopt_es.projections.certificate import Certificate
from skillopt_es.projections.core import moved
from skillopt_es.projections.deciding import (
    CERTIFICATE,
    MOST_CALLS,
    calls_allowed,
    metric_after,
    metric_in,
    setting_after,
    setting_in,
)
from skillopt_es.projections.lines import (
    EpochLine,
    EvaluationLine,
    Part,
    StepLine,
    last_whole,
    part_of,
    pooled,
    stated_score,
    stated_value,
)
from skillopt_es.projections.seal import Looks
from skillopt_es.projections.state import proposals_in


@frozen(kw_only=True)
class Holder:
    """The skill that is current or best, by hash, and its value if it was measured."""

    skill: str = ""
    value: float | None = None

    def measured(self, event: SkillScored, stated: float | None) -> Holder:
        """The same holder once its skill is measured for the first time, or once more."""
        # As in the state's own fold: a first draw of a text that has a value changes nothing.
        changed = event.skill == self.skill and (self.value is None or event.repeat != 1 or event.goes_on)
        return evolve(self, value=stated) if changed else self


@frozen(kw_only=True)
class OpenStep:
    """What is known of the step that is under way."""

    train: tuple[Score, ...] = ()
    proposed: int | None = 0
    merged: int | None = 0
    chosen: int | None = 0
    applied: int | None = 0
    imported: StepImported | None = None
    notes: int = 0


@frozen(kw_only=True)
class Summary:
    """
    A run so far: where it stands, and its lines in the order in which they happened.

    `paused` is the message of a pause, `pause` its reason, `hint` what is to be done about it. `total_steps` were
    planned at its start, and `most_calls` are those that it may make, where there is a limit. `validation` is how many
    validation items there are, and `metric` says which score of them a skill's value is.
    """

    status: Literal["new", "running", "paused", "completed"] = "new"
    paused: str = ""
    pause: str = ""
    pause_key: str = ""
    hint: str = ""
    algorithm: str = ""
    epoch: int = 0
    epochs: int = 0
    step: int = 0
    total_steps: int = 0
    most_calls: int | None = None
    validation: int = 0
    metric: str = ""
    initial: str = ""
    current: Holder = field(factory=Holder)
    best: Holder = field(factory=Holder)
    resumed: int = 0
    lines: tuple[StepLine | EpochLine, ...] = ()
    evaluations: tuple[EvaluationLine, ...] = ()
    open: OpenStep = field(factory=OpenStep)
    slow: GateVerdict | None = None
    meta_skill: str = ""
    completed: RunCompleted | None = None
    looks: Looks = field(factory=Looks)
    certifies: bool = False
    wagers: tuple[CertificateWagered, ...] = ()
    stopped: TrainingStopped | None = None
    imported: RunImported | None = None
    forked: RunForked | None = None
    retracted: tuple[EvidenceRetracted, ...] = ()
    erased: tuple[TextsErased, ...] = ()
    gaps: tuple[GapFound, ...] = ()
    steered: tuple[RunSteered, ...] = ()
    by_hand: ByHand = field(factory=ByHand)
    splits: SplitIds | None = None

    @property
    def is_evaluation(self) -> bool:
        """Whether this is no training run but an evaluation of one skill."""
        return self.algorithm == "evaluation"

    @property
    def baseline(self) -> EvaluationLine | None:
        """The initial skill on the validation items, once it is measured."""
        first = next((line for line in self.evaluations if line.purpose == "selection"), None)
        return first and next(iter(self.selections(first.skill)), first)

    def selections(self, skill: str) -> tuple[EvaluationLine, ...]:
        """The whole evaluations of a skill on the validation items."""
        return last_whole(self._whole(skill))

    def before_all(self, skill: str) -> tuple[EvaluationLine, ...]:
        """Its whole evaluations on fewer items, before it met the others; none for most."""
        whole = self._whole(skill)
        return last_whole(whole[: len(whole) - len(last_whole(whole))])

    def _whole(self, skill: str) -> list[EvaluationLine]:
        own = (line for line in self.evaluations if line.purpose == "selection" and line.skill == skill)
        return [line for line in own if line.exact]

    def over(self, skill: str) -> Part | None:
        """Over how many of the validation items a skill's score is; None where it is over all."""
        return part_of(stated_score(self.selections(skill)), self.validation)

    def was_chosen(self, skill: str) -> bool:
        """Whether its score is of the very results that it was chosen by: the first text was not chosen."""
        return skill != self.initial and all(line.repeat != 0 for line in self.selections(skill))

    @property
    def certificate(self) -> Certificate:
        """What is certified, and what was bet."""
        return Certificate(wanted=self.certifies, initial=self.initial, best=self.best.skill, wagers=self.wagers)

    @property
    def step_lines(self) -> tuple[StepLine, ...]:
        """The steps alone."""
        return tuple(line for line in self.lines if isinstance(line, StepLine))

    @property
    def tests(self) -> tuple[EvaluationLine, ...]:
        """The evaluations on the test split."""
        return tuple(line for line in self.evaluations if line.purpose == "test")


def summarize(events: Iterable[Event], before: Summary | None = None) -> Summary:
    """The summary of a run's events: all, or those of DETAILS or OVERVIEW; from an earlier one on."""
    summary = Summary() if before is None else before
    for event in events:
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            summary = handler(summary, event)
    return summary


def _started(summary: Summary, event: RunStarted) -> Summary:
    holder = Holder(skill=event.skill.hash)
    epochs = event.total_steps // max(1, event.steps_per_epoch)
    return evolve(
        summary,
        status="running",
        algorithm=event.algorithm,
        total_steps=event.total_steps,
        most_calls=calls_allowed(setting_in(event, MOST_CALLS)),
        epochs=epochs,
        validation=len(event.splits.val),
        splits=event.splits,
        metric=metric_in(event),
        initial=holder.skill,
        current=holder,
        best=holder,
        certifies=setting_in(event, CERTIFICATE) is True,
    )


def _reset(summary: Summary, settings: Iterable[Setting]) -> Summary:
    """Some keys have another value from here on."""
    settings = tuple(settings)
    return evolve(
        summary,
        metric=metric_after(summary.metric, settings),
        certifies=setting_after(summary.certifies, CERTIFICATE, settings) is True,
        most_calls=calls_allowed(setting_after(summary.most_calls, MOST_CALLS, settings)),
    )


def _resumed(summary: Summary, event: RunResumed) -> Summary:
    summary = evolve(summary, status="running", paused="", pause="", pause_key="", hint="", resumed=summary.resumed + 1)
    return _reset(summary, event.overrides)


def _forked(summary: Summary, event: RunForked) -> Summary:
    summary = _reset(_revalued(summary, event.values), event.overrides)
    return evolve(summary, forked=event, looks=summary.looks.forked())


def _retracted(summary: Summary, event: EvidenceRetracted) -> Summary:
    summary = summary if event.values is None else _revalued(summary, event.values)
    found = after_hand(summary.by_hand, event, summary.splits)
    return evolve(summary, retracted=(*summary.retracted, event), by_hand=found)


def _revalued(summary: Summary, values: Mapping[str, float]) -> Summary:
    """What was measured counts otherwise from here on."""
    current, best = (
        evolve(place, value=values.get(place.skill, place.value)) for place in (summary.current, summary.best)
    )
    evaluations = tuple(
        evolve(line, value=values.get(line.skill, line.value)) if line.purpose == "selection" else line
        for line in summary.evaluations
    )
    return evolve(summary, current=current, best=best, evaluations=evaluations)


def _steered(summary: Summary, event: RunSteered) -> Summary:
    found = after_hand(summary.by_hand, event, summary.splits)
    summary = _reset(evolve(summary, steered=(*summary.steered, event), by_hand=found), event.settings)
    return summary if event.skill is None else _placed(summary, event, Holder(skill=event.skill.hash))


def _scored(summary: Summary, event: SkillScored) -> Summary:
    if event.purpose == "train" and Place(event.place).batch is None:  # edits that were tried, not the current skill
        return summary
    if event.purpose == "train":
        return evolve(summary, open=evolve(summary.open, train=(*summary.open.train, event.score)))
    line = EvaluationLine(
        place=event.place,
        purpose=event.purpose,
        skill=event.skill,
        score=event.score,
        value=event.value,
        by_type=event.by_type,
        repeat=event.repeat,
        exact=event.exact,
        goes_on=event.goes_on,
    )
    looks = summary.looks.tested() if event.purpose == "test" and event.split == "test" else summary.looks
    summary = evolve(summary, evaluations=(*summary.evaluations, line), looks=looks)
    if event.purpose != "selection" or not event.exact:
        return summary
    value = stated_value(summary.selections(event.skill))
    return evolve(summary, current=summary.current.measured(event, value), best=summary.best.measured(event, value))


def _at_work(summary: Summary, step: OpenStep) -> Summary:
    """The open step as it is now; of an imported one the recorded counts stay, known or not."""
    return summary if summary.open.imported is not None else evolve(summary, open=step)


def _proposed(summary: Summary, event: PatchProposed) -> Summary:
    proposed = (summary.open.proposed or 0) + len(proposals_in(event))
    return _at_work(summary, evolve(summary.open, proposed=proposed))


def _ranked(summary: Summary, event: EditsRanked) -> Summary:

    return _at_work(summary, evolve(summary.open, merged=len(event.pool), chosen=len(event.chosen)))


def _built(summary: Summary, event: CandidateBuilt) -> Summary:
    applied = len(event.applied)
    return _at_work(summary, evolve(summary.open, applied=applied))


def _paused(summary: Summary, event: RunPaused) -> Summary:
    return evolve(
        summary, status="paused", paused=event.message, pause=event.reason, pause_key=event.key, hint=event.hint
    )


def _step_imported(summary: Summary, event: StepImported) -> Summary:
    counts = {name: getattr(event, name) for name in ("proposed", "merged", "chosen", "applied")}
    return evolve(summary, open=evolve(summary.open, imported=event, **counts))


def _appendix_written(summary: Summary, event: AppendixWritten) -> Summary:
    """The current skill is another text now; its value is known if that very text was measured, or once it is."""
    if event.skill.hash == summary.current.skill:
        return summary
    value = summary.current.value if event.stale_from else event.value
    return _placed(summary, event, Holder(skill=event.skill.hash, value=value))


def _placed(summary: Summary, event: Event, holder: Holder) -> Summary:
    held = moved({"current": summary.current, "best": summary.best}, event, holder)
    return evolve(summary, current=held["current"], best=held["best"])


def _gated(summary: Summary, event: CandidateGated) -> Summary:
    verdict, value = event.verdict, event.verdict.candidate_value
    own = summary.selections(event.candidate)
    candidate = Holder(skill=event.candidate, value=value if len(own) < 2 else stated_value(own))
    summary = _placed(summary, event, candidate)
    return _end_step(summary, event.step, verdict.action, value, verdict.current_value, bound=not verdict.exact)


def _end_step(
    summary: Summary, number: int, verdict: str, candidate: float | None, current: float | None, *, bound: bool = False
) -> Summary:
    done = summary.open
    line = StepLine(
        step=number,
        epoch=summary.epoch,
        train=pooled(done.train),
        proposed=done.proposed,
        merged=done.merged,
        chosen=done.chosen,
        applied=done.applied,
        notes=done.notes,
        candidate=candidate,
        current=current,
        verdict=verdict,
        best=summary.best.value,
        bound=bound,
    )
    return evolve(summary, step=number, open=OpenStep(), lines=(*summary.lines, line))


def _slow_applied(summary: Summary, event: SlowUpdateApplied) -> Summary:
    summary = evolve(summary, slow=event.verdict)
    if event.skill.hash == summary.current.skill:
        return summary
    verdict = event.verdict
    kept = verdict.stale_from and verdict.action in ("placeholder", "force_accept")
    holder = Holder(skill=event.skill.hash, value=summary.current.value if kept else verdict.candidate_value)
    return _placed(summary, event, holder)


def _epoch_completed(summary: Summary, event: EpochCompleted) -> Summary:
    slow = summary.slow
    line = EpochLine(
        epoch=event.epoch,
        slow_update=slow.action if slow else "",
        candidate=slow.candidate_value if slow else None,
        current=slow.current_value if slow else None,
        meta_skill=summary.meta_skill,
        best=summary.best.value,
        bound=slow is not None and not slow.exact,
    )
    return evolve(summary, lines=(*summary.lines, line))


def _gap(summary: Summary, event: GapFound) -> Summary:
    summary = evolve(summary, gaps=(*summary.gaps, event))
    if event.skill is not None:
        summary = _placed(summary, event, Holder(skill=event.skill.hash))
    if event.step is None:
        return summary
    known = summary.open.imported
    candidate, current = (known.candidate_value, known.current_value) if known else (None, None)
    return _end_step(summary, event.step, "unknown", candidate, current)


_HANDLERS: Mapping[type[Event], Callable[..., Summary]] = {
    RunStarted: _started,
    RunResumed: _resumed,
    RunForked: _forked,
    EvidenceRetracted: _retracted,
    TextsErased: lambda summary, event: evolve(summary, erased=(*summary.erased, event)),
    RunPaused: _paused,
    RunSteered: _steered,
    EpochPlanned: lambda summary, event: evolve(summary, epoch=event.epoch, slow=None, meta_skill=""),
    SkillScored: _scored,
    PatchProposed: _proposed,
    AppendixExtended: lambda summary, event: evolve(summary, open=evolve(summary.open, notes=len(event.added))),
    EditsRanked: _ranked,
    CandidateBuilt: _built,
    CandidateGated: _gated,
    StepSkipped: lambda summary, event: _end_step(summary, event.step, event.reason, None, summary.current.value),
    AppendixWritten: _appendix_written,
    SlowUpdateApplied: _slow_applied,
    MetaSkillWritten: lambda summary, event: evolve(summary, meta_skill=event.result),
    TrainingStopped: lambda summary, event: evolve(summary, stopped=event),
    EpochCompleted: _epoch_completed,
    BestPromoted: lambda summary, event: _placed(summary, event, Holder(skill=event.skill, value=event.value)),
    CertificateWagered: lambda summary, event: evolve(summary, wagers=(*summary.wagers, event)),
    SealedTestOpened: lambda summary, event: evolve(summary, looks=summary.looks.after(event)),
    RunCompleted: lambda summary, event: evolve(summary, status="completed", completed=event),
    RunImported: lambda summary, event: evolve(summary, imported=event),
    StepImported: _step_imported,
    GapFound: _gap,
}
_NUMBERS = {PatchProposed, AppendixExtended, EditsRanked, CandidateBuilt, MetaSkillWritten}
DETAILS = names_of(_HANDLERS)
"""All types of event that a summary looks at."""
OVERVIEW = names_of(kind for kind in _HANDLERS if kind not in _NUMBERS)
"""Those that say where a run stands; all others only add numbers to its lines."""
