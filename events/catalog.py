"""
Every event, in the order a run meets them: past tense, one fact each.

A released class is never edited, its defaults included (they are not written): a change gets a new version here and an
upcast in `upcasts.py`.
`place` names where in the algorithm something happened (`e1/s2/gate`); with an item id it is a unit of work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, Literal, TypeVar, get_args, get_type_hints

from attrs import field, frozen

from skillopt_es.events.values import (
    AppendixOrder,
    Attempt,
    Batch,
    Bets,
    CallRef,
    ConfigFile,
    Credit,
    Draft,
    Edit,
    EditReport,
    Effect,
    FailurePattern,
    GateVerdict,
    ImportedBatch,
    ImportedUsage,
    Json,
    Learned,
    LostCall,
    Minibatch,
    NoteReport,
    Order,
    Outcome,
    Pair,
    PatchSource,
    Purpose,
    Redaction,
    Rewrite,
    Score,
    Setting,
    SkillTree,
    Split,
    SplitIds,
    Suggestion,
    Tries,
    Trust,
)

K = TypeVar("K", bound="Event")


@frozen(kw_only=True)
class Event:
    """Base of all events."""

    VERSION: ClassVar[int] = 1


@frozen(kw_only=True)
class RunStarted(Event):
    """
    A run began: everything that was decided before the first call; `guide` is what analysts read about the tasks.

    `algorithm` is the way it is trained; `learned` is there in a run that continues another one. `worked` is how
    an accepted answer looks as a right reply, with `{answer}` in it, where training items may be shown as examples in
    the skill; `twins` are those of them that ask what an item of validation or test asks. `config_file` is there where
    a file of the user's own was read. `limit_chosen` says that the user has set `env.max_completion_tokens`: a reply
    that is cut there is graded as it stands.
    """

    software: str
    config: Mapping[str, Json]
    algorithm: str
    folder: str
    skill: SkillTree
    splits: SplitIds
    steps_per_epoch: int
    total_steps: int
    notes: tuple[str, ...] = ()
    guide: str = ""
    learned: Learned | None = None
    worked: str = ""
    twins: tuple[str, ...] = ()
    config_file: ConfigFile | None = None
    limit_chosen: bool = False


@frozen(kw_only=True)
class RunResumed(Event):
    """
    A writer took over a run that had stopped; `overrides` are settings that never decide anything.

    `lost` are the calls under a budget that were in flight when the last writer was killed, and count as paid for.
    `accepted_loss` says what was missing at the log's end, where somebody went on from what was left.
    """

    software: str
    overrides: tuple[Setting, ...] = ()
    lost: tuple[LostCall, ...] = ()
    accepted_loss: str = ""


@frozen(kw_only=True)
class RunForked(Event):
    """
    From here on the run goes its own way: what stands before this, and `inherited` recorded calls, are its parent's.

    `overrides` may change what decides. `values` is what measured skills (by hash) count from here on, where the
    gate's rule has changed; without such a change it is empty.
    """

    software: str
    parent: str
    parent_id: str
    seq: int
    inherited: int
    values: Mapping[str, float]
    overrides: tuple[Setting, ...] = ()


@frozen(kw_only=True)
class EvidenceRetracted(Event):
    """
    From here on these items are in no split and no batch, because `by` says that they are no evidence.

    With `place`, only what was (or will be) tried there is none. `values` is what skills (by hash) count from here on
    that were measured with these items; None where none was.
    """

    items: tuple[str, ...]
    reason: str
    by: str
    place: str = ""
    values: Mapping[str, float] | None = None


@frozen(kw_only=True)
class TextsErased(Event):
    """
    Texts about these items were taken out of this log: blobs (by digest), and parts of events.

    An event keeps its hash, which vouches for those around it; `content` says what its payload is since then.
    """

    items: tuple[str, ...]
    reason: str
    by: str
    texts: tuple[str, ...]
    events: tuple[Redaction, ...]
    place: str = ""


@frozen(kw_only=True)
class RunPaused(Event):
    """
    The run stopped before its end, why, and what is to be done before `resume` continues it.

    `key` is the setting that decides it: the limit of a budget that is used up.
    """

    reason: Literal["interrupt", "error", "unmeasured", "unanswered", "optimizer", "handoff", "budget", "asked"]
    message: str
    hint: str = ""
    key: str = ""


@frozen(kw_only=True)
class RunSteered(Event):
    """
    Somebody steered the run while it was open: the order, `by` whom and why; it holds from here on.

    `name` tells orders apart. `text` is a hint for those who propose edits, a line of the skill that is pinned (no edit
    may take it away), unpinned or struck, the hash of the candidate that is taken or refused by hand, or the item that
    the EvidenceRetracted after it leaves out. `settings` are limits of the budget. `skill` is the current skill without
    the line that was struck.
    """

    name: str
    order: Order
    by: str
    why: str
    text: str = ""
    settings: tuple[Setting, ...] = ()
    skill: SkillTree | None = None


@frozen(kw_only=True)
class EpochPlanned(Event):
    """The batches of an epoch were drawn, and the meta skill that is in force was chosen."""

    epoch: int
    batches: tuple[Batch, ...]
    meta_skill: str = ""


@frozen(kw_only=True)
class RolloutCompleted(Event):
    """
    One item was tried once under one skill; `trust` says whether somebody vouches for the texts it saw.

    Of a folder of skills, `viewed` are the files that were opened, and `injected` those shown without being asked for.
    `near` says how like a wrong answer is to an accepted one, where that was asked for: it is no score. `truncated`
    says that the answer ends where the user has limited it; it was graded as it stands.
    """

    place: str
    purpose: Purpose
    item: str
    skill: str
    outcome: Outcome
    task_type: str
    turns: int | None
    failure: str = ""
    detail: str = ""
    prediction: str = ""
    trajectory: str = ""
    calls: tuple[CallRef, ...] = ()
    trust: Trust = "trusted"
    viewed: tuple[str, ...] = ()
    injected: tuple[str, ...] = ()
    near: float | None = None
    truncated: bool = False


@frozen(kw_only=True)
class SkillScored(Event):
    """
    A whole evaluation was added up.

    `repeat` counts a text's evaluations for the gate, each from its own `seed`; 0 is one that decides nothing, and is
    reported.
    Where items were not run because nothing that they can come to would matter, the score is not `exact`: it is the
    most that the whole evaluation could have given. `begun_at` is where the other items of the draw were run before.
    The `carried` items were not run, either: they would have seen what they saw under the skill that their results are
    `carried_from`.
    """

    place: str
    purpose: Purpose
    split: Split
    skill: str
    score: Score
    value: float | None = None
    by_type: Mapping[str, Score]
    exact: bool = True
    repeat: int = 1
    seed: int | None = None
    not_run: tuple[str, ...] = ()
    begun_at: str = ""
    carried: tuple[str, ...] = ()
    carried_from: str = ""

    @property
    def goes_on(self) -> bool:
        """Whether a text's first evaluation goes on with more items: this one takes the place of what was known."""
        return self.repeat == 1 and self.carried_from == self.skill


@frozen(kw_only=True)
class MinibatchesPlanned(Event):
    """
    A step's trajectories were drawn into analyst groups; none of them is ever drawn again.

    `dropped` are attempts that waited too long for others like them, and are not looked at any more.
    """

    step: int
    groups: tuple[Minibatch, ...]
    dropped: tuple[Attempt, ...] = ()


@frozen(kw_only=True)
class PatchProposed(Event):
    """One analyst looked at one minibatch: its edits (or suggestions, or draft) and notes, or why there are none."""

    patch: str
    step: int
    kind: PatchSource
    items: tuple[str, ...]
    result: Literal["edits", "suggestions", "draft", "notes", "nothing", "unusable", "failed"]
    edits: tuple[Edit, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
    drafts: tuple[Draft, ...] = ()
    notes: tuple[str, ...] = ()
    patterns: tuple[FailurePattern, ...] = ()
    reasoning: str = ""
    note: str = ""
    calls: tuple[CallRef, ...] = ()


@frozen(kw_only=True)
class AppendixExtended(Event):
    """A step's reminder notes met those that the skill has: what became of each, and the list that follows."""

    step: int
    order: AppendixOrder
    reports: tuple[NoteReport, ...]
    notes: tuple[str, ...]

    @property
    def added(self) -> tuple[str, ...]:
        """The notes that are new."""
        return tuple(report.note for report in self.reports if report.status == "added")


@frozen(kw_only=True)
class AppendixConsolidated(Event):
    """The optimizer was asked for fewer reminder notes that say the same: its list, or the old one and why."""

    step: int
    result: Literal["consolidated", "unusable", "failed"]
    before: tuple[str, ...]
    notes: tuple[str, ...]
    reasoning: str = ""
    note: str = ""
    calls: tuple[CallRef, ...] = ()


@frozen(kw_only=True)
class PatchesMerged(Event):
    """
    Several patches became one; `fallback` says why they were only concatenated, if they were.

    `failed` says why there is nothing: the optimizer could not be reached.
    """

    merge: str
    step: int
    group: Literal[PatchSource, "final"]
    level: int
    inputs: tuple[str, ...]
    edits: tuple[Edit, ...]
    suggestions: tuple[Suggestion, ...] = ()
    drafts: tuple[Draft, ...] = ()
    reasoning: str = ""
    fallback: str = ""
    failed: str = ""
    calls: tuple[CallRef, ...] = ()


@frozen(kw_only=True)
class LearningRateChosen(Event):
    """The optimizer decided how many edits a step may apply, or why it did not."""

    step: int
    result: Literal["chosen", "unusable", "failed"]
    available: int
    budget: int
    asked: int | None = None
    confidence: str = ""
    risks: tuple[str, ...] = ()
    reasoning: str = ""
    note: str = ""
    calls: tuple[CallRef, ...] = ()


@frozen(kw_only=True)
class TriesPlanned(Event):
    """Which items are tried next to tell what a step's edits are worth, each under which text."""

    step: int
    tries: tuple[Tries, ...]


@frozen(kw_only=True)
class EditsRanked(Event):
    """
    The step's budget was spent: which edits were chosen, in order; `failed`: the optimizer could not be reached.

    Where edits were tried alone, `credits` say what each has earned. Where all of them were refused `together`, by that
    verdict, `effects` say what each was found to do.
    """

    step: int
    budget: int | None
    pool: tuple[str, ...]
    chosen: tuple[str, ...]
    reasoning: str = ""
    fallback: str = ""
    failed: str = ""
    calls: tuple[CallRef, ...] = ()
    credits: tuple[Credit, ...] = ()
    effects: tuple[Effect, ...] = ()
    together: GateVerdict | None = None


@frozen(kw_only=True)
class SkillRewritten(Event):
    """The optimizer wrote the whole skill anew from the chosen suggestions, or why it did not."""

    step: int
    result: Literal["written", "unusable", "failed"]
    text: str = ""
    changes: tuple[str, ...] = ()
    reasoning: str = ""
    note: str = ""
    calls: tuple[CallRef, ...] = ()


@frozen(kw_only=True)
class CandidateBuilt(Event):
    """
    The chosen edits were applied to the current skill, or a whole new text took its place (`rewrite`).

    `notes` reminder notes were added to its appendix. Where `gaps_closed`, edits left no blank lines behind; else they
    left what the original leaves.
    """

    step: int
    parent: str
    candidate: SkillTree
    reports: tuple[EditReport, ...]
    rewrite: Rewrite | None = None
    notes: int = 0
    gaps_closed: bool = False

    @property
    def applied(self) -> tuple[str, ...]:
        """The edits that are in the candidate, by id."""
        return tuple(report.edit for report in self.reports if report.applied)


@frozen(kw_only=True)
class CandidateGated(Event):
    """
    The candidate met the current skill on the validation items, and this is the verdict.

    `against` are the items for whose sake a candidate was refused that the rule would have taken.
    """

    step: int
    candidate: str
    verdict: GateVerdict
    against: tuple[str, ...] = ()


@frozen(kw_only=True)
class StepSkipped(Event):
    """
    A step ended without a candidate; the last two reasons are all that an imported run says.

    Nothing to fix: no task failed that the optimizer could be asked about. Nothing asked: it was not time for a
    question. Nothing proposed: the optimizer was asked, and gave no edit.
    """

    step: int
    reason: Literal[
        "nothing_to_fix",
        "nothing_asked",
        "nothing_proposed",
        "no_usable_patch",
        "no_edit_chosen",
        "no_rewrite",
        "unchanged",
        "too_large",
        "untrusted_only",
        "skip_no_patches",
        "skip_no_rewrite",
    ]
    detail: str = ""


@frozen(kw_only=True)
class AppendixWritten(Event):
    """
    After the verdict a step's notes went into the current skill, which was not measured for it.

    `previous_value` is of the text before; `value` is null unless the new text had been measured at another time.
    `stale_from` is the skill whose score goes on to stand for the new text, where that was asked for.
    """

    step: int
    previous: str
    previous_value: float | None
    skill: SkillTree
    notes: tuple[str, ...]
    value: float | None = None
    stale_from: str = ""


@frozen(kw_only=True)
class ComparisonDrawn(Event):
    """The tasks on which an epoch's first and last skill are compared were drawn."""

    epoch: int
    items: tuple[str, ...]
    previous: str
    current: str


@frozen(kw_only=True)
class ComparisonExtended(Event):
    """Further tasks were drawn, because too few of those compared so far had turned."""

    epoch: int
    items: tuple[str, ...]


@frozen(kw_only=True)
class SlowUpdateProposed(Event):
    """The optimizer wrote epoch-level guidance, or why not; then it is asked again after the next step."""

    epoch: int
    result: Literal["guidance", "unusable", "failed"]
    pairs: tuple[Pair, ...]
    guidance: str = ""
    candidate: SkillTree | None = None
    reasoning: str = ""
    note: str = ""
    calls: tuple[CallRef, ...] = ()


@frozen(kw_only=True)
class SlowUpdateApplied(Event):
    """
    What became of an epoch's guidance, and the skill that is current afterwards.

    Without guidance it is `postponed`: asked for again later; or `no_content`: an imported run did without.
    """

    epoch: int
    skill: SkillTree
    verdict: GateVerdict
    guidance: str = ""
    candidate: str = ""


@frozen(kw_only=True)
class MetaSkillWritten(Event):
    """The optimizer's meta skill for later epochs, or why there is none; then it is asked again after the next step."""

    epoch: int
    result: Literal["written", "first_epoch", "unusable", "failed"]
    content: str = ""
    reasoning: str = ""
    note: str = ""
    calls: tuple[CallRef, ...] = ()


@frozen(kw_only=True)
class TrainingStopped(Event):
    """
    A stop rule ended the training after this step; the final evaluation follows, the epoch's own end does not.

    `best_value` has stood since step `since` (0: the initial skill); `limit` is the rule's number, where it has one.
    """

    step: int
    reason: Literal["patience", "target_score", "no_progress", "budget", "order"]
    best_value: float | None
    since: int
    limit: float | None = None


@frozen(kw_only=True)
class EpochCompleted(Event):
    """All steps and the epoch-end work of an epoch are done."""

    epoch: int


@frozen(kw_only=True)
class BestPromoted(Event):
    """The final skill beat the best one and took its place."""

    skill: str
    value: float
    previous: str
    previous_value: float | None


@frozen(kw_only=True)
class CertificateWagered(Event):
    """
    Fresh items met the certified skill and its challenger, and the bet that the challenger is better was settled.

    `gains` are those of the items of the batches at `place` that nothing had met before, as far as they were measured
    under both texts; where items have types, each type's mean is bet on as well. `pairs`, `gain` and `least` are of all
    that this challenger has met: how many items, by how much it is ahead on average, and the least that this can be for
    all tasks like these, at the certificate's error. `moved`: it has won, and is the certified one now.
    """

    place: str
    certified: str
    challenger: str
    by_item: Bets
    by_type: Bets | None = None
    pairs: int
    gain: float
    least: float | None = None
    moved: bool = False


@frozen(kw_only=True)
class SealedTestOpened(Event):
    """
    Somebody looked at the sealed test split for the `look`-th time: the run's own final evaluation, or `eval`.

    Of an `eval`, `skill` is what it scored and `evaluation` the name of the folder that holds what came of it.
    """

    look: int
    by: Literal["final", "eval"]
    skill: str = ""
    evaluation: str = ""


@frozen(kw_only=True)
class RunCompleted(Event):
    """The run reached its end: test scores of the initial, best and final skill (none when tests are off)."""

    best: str
    final: str
    test_initial: Score | None = None
    test_best: Score | None = None
    test_final: Score | None = None


@frozen(kw_only=True)
class RunImported(Event):
    """The run was trained elsewhere: what follows was read from its result files, and it cannot be resumed here."""

    source: Literal["skillopt"]
    folder: str
    seconds: Mapping[str, float]
    usage: Mapping[str, ImportedUsage]


@frozen(kw_only=True)
class StepImported(Event):
    """What another trainer recorded of a step beside its decisions; None for what is not there."""

    step: int
    batches: tuple[ImportedBatch, ...]
    failed: tuple[str, ...] | None
    proposed: int | None
    merged: int | None
    chosen: int | None
    applied: int | None
    candidate_value: float | None
    current_value: float | None
    best_value: float | None
    seconds: Mapping[str, float]
    usage: Mapping[str, ImportedUsage]


@frozen(kw_only=True)
class GapFound(Event):
    """Something of an imported run is unknown; `step` is one whose end is, `skill` is what is current afterwards."""

    place: str
    what: str
    why: str
    step: int | None = None
    skill: SkillTree | None = None


CATALOG: tuple[type[Event], ...] = (
    RunStarted,
    RunResumed,
    RunForked,
    EvidenceRetracted,
    TextsErased,
    RunPaused,
    RunSteered,
    EpochPlanned,
    RolloutCompleted,
    SkillScored,
    MinibatchesPlanned,
    PatchProposed,
    AppendixExtended,
    AppendixConsolidated,
    PatchesMerged,
    LearningRateChosen,
    TriesPlanned,
    EditsRanked,
    SkillRewritten,
    CandidateBuilt,
    CandidateGated,
    StepSkipped,
    AppendixWritten,
    ComparisonDrawn,
    ComparisonExtended,
    SlowUpdateProposed,
    SlowUpdateApplied,
    MetaSkillWritten,
    TrainingStopped,
    EpochCompleted,
    BestPromoted,
    CertificateWagered,
    SealedTestOpened,
    RunCompleted,
    RunImported,
    StepImported,
    GapFound,
)
BY_NAME: Mapping[str, type[Event]] = {event.__name__: event for event in CATALOG}


def only(kind: type[K], records: Iterable[Recorded]) -> Iterator[tuple[int, K]]:
    """The events of one type, each with its number."""
    return ((recorded.seq, recorded.event) for recorded in records if isinstance(recorded.event, kind))


def names_of(kinds: Iterable[type[Event]]) -> tuple[str, ...]:
    """The names of some types of event, as a log is asked for them."""
    return tuple(kind.__name__ for kind in kinds)


STEP_ENDS: tuple[type[Event], ...] = (CandidateGated, StepSkipped, GapFound)
"""The events that may end a step."""
MILESTONES: tuple[type[Event], ...] = (*STEP_ENDS, EpochCompleted)
"""The events after which the head of a log is noted outside of it, and what follows has evidence of its own."""


def ended_step(event: Event) -> int | None:
    """The step that an event ends: by a verdict, without a candidate, or not so that it is known; None for others."""
    return event.step if isinstance(event, CandidateGated | StepSkipped | GapFound) else None


def _skill_fields(kind: type[Event]) -> tuple[str, ...]:
    return tuple(name for name, hint in get_type_hints(kind).items() if SkillTree in (hint, *get_args(hint)))


_SKILL_FIELDS = {kind: names for kind in CATALOG if (names := _skill_fields(kind))}
SKILL_TYPES = names_of(_SKILL_FIELDS)
"""The events that can have a whole skill."""


def skills_in(event: Event) -> tuple[SkillTree, ...]:
    """The skills that an event has in full."""
    found = (getattr(event, name) for name in _SKILL_FIELDS.get(type(event), ()))
    return tuple(skill for skill in found if skill is not None)


@frozen(kw_only=True)
class Recorded:
    """An event as it stands in the log."""

    seq: int
    recorded_at: str
    event: Event
    hash: str
    prev_hash: str = field(repr=False)
