"""What only the search knows: its open step, what is known of each training item, and which edits were refused."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve as replace
from attrs import field, frozen

from skillopt_es.events.catalog import (
    CandidateBuilt,
    CandidateGated,
    EditsRanked,
    EpochPlanned,
    EvidenceRetracted,
    MinibatchesPlanned,
    PatchProposed,
    RolloutCompleted,
    RunResumed,
    RunStarted,
    SkillScored,
    StepSkipped,
)
from skillopt_es.events.places import Place
from skillopt_es.events.values import Batch, Edit, Measured, Minibatch
from skillopt_es.projections.core import without_items
from skillopt_es.projections.state import RunState

_MOST_TRIED = 24  # what is older is not told any more


@frozen(kw_only=True)
class Tried:
    """An edit that did not get into the skill, at which step, and why."""

    step: int
    edit: Edit
    why: str


@frozen(kw_only=True)
class OpenStep:
    """What has been collected of the step that is under way; `alone` are the texts with one change each."""

    number: int
    batch: Batch
    groups: tuple[Minibatch, ...] | None = None
    patches: Mapping[str, PatchProposed] = field(factory=dict)
    alone: tuple[CandidateBuilt, ...] = ()
    ranked: EditsRanked | None = None

    @property
    def place(self) -> Place:
        """Where it is recorded; an epoch has one step."""
        return Place.of_step(self.number, self.number)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """
        All that was proposed, in the order in which it is applied: what is for many tasks before what is for few.

        Where two rules speak of one task an agent mostly keeps to the last, which thus is the one for that task.
        """
        proposed = (edit for group in self.groups or () for edit in self._of(group))
        return tuple(sorted(proposed, key=lambda edit: -(len(edit.claims) or len(self.batch.items) + 1)))

    @property
    def changes(self) -> tuple[tuple[Edit, ...], ...]:
        """The edits one by one, but for a line that is moved: it is taken out and put back as one change."""
        edits = self.edits
        out = {edit.target: edit for edit in edits if edit.op == "delete"}
        back = {edit.content.strip() for edit in edits if edit.op == "append"} & set(out)
        first = [edit for edit in edits if not (edit.op == "delete" and edit.target in back)]
        return tuple(
            (out[edit.content.strip()], edit) if edit.op == "append" and edit.content.strip() in back else (edit,)
            for edit in first
        )

    def screen(self, index: int) -> Place:
        """Where a change is tried alone."""
        return self.place / "screen" / f"edit-{index + 1}"

    def _of(self, group: Minibatch) -> tuple[Edit, ...]:
        return self.patches[group.id].edits if group.id in self.patches else ()


@frozen(kw_only=True)
class Search:
    """
    The open step, and what all steps so far have found out.

    `known` is each training item's last result on the way to the current skill, and `under` the hash of the text that
    it is from; `shown` is how many batches had it.
    `tries` counts the results, `calls` those that they came from, and `questions` those to the optimizer.
    """

    step: OpenStep | None = None
    known: Mapping[str, Measured] = field(factory=dict)
    under: Mapping[str, str] = field(factory=dict)
    shown: Mapping[str, int] = field(factory=dict)
    tried: tuple[Tried, ...] = ()
    tries: int = 0
    calls: int = 0
    questions: int = 0


SearchState = RunState[Search]
"""A run that is trained by the search."""


def initial(started: RunStarted) -> Search:
    """Nothing is known yet."""
    return Search()


def open_step(state: SearchState) -> OpenStep:
    """The step that is under way."""
    assert state.program.step is not None
    return state.program.step


def _with(state: SearchState, program: Search) -> SearchState:
    return replace(state, program=program)


def planned(state: SearchState, event: EpochPlanned) -> SearchState:
    """A step begins with its batch."""
    [batch] = event.batches
    shown = {**state.program.shown, **{item: state.program.shown.get(item, 0) + 1 for item in batch.items}}
    return _with(state, replace(state.program, step=OpenStep(number=event.epoch, batch=batch), shown=shown))


def scored(state: SearchState, event: SkillScored) -> SearchState:
    """Calls are counted; the results of the batch are known of the current skill."""
    rows: Mapping[str, RolloutCompleted] = state.rollouts.get(event.place, {})
    calls = sum(len(row.calls) for row in rows.values())
    program = replace(state.program, calls=state.program.calls + calls, tries=state.program.tries + len(rows))
    if program.step is not None and event.place == program.step.place.in_batch(0):
        program = _knowing(program, rows)
    return _with(state, program)


def _knowing(program: Search, rows: Mapping[str, RolloutCompleted]) -> Search:
    found = {item: row.outcome for item, row in rows.items() if isinstance(row.outcome, Measured)}
    under = {item: rows[item].skill for item in found}
    return replace(program, known={**program.known, **found}, under={**program.under, **under})


def grouped(state: SearchState, event: MinibatchesPlanned) -> SearchState:
    """What is shown to the optimizer together."""
    return _with(state, replace(state.program, step=replace(open_step(state), groups=event.groups)))


def proposed(state: SearchState, event: PatchProposed) -> SearchState:
    """An answer joins the step."""
    step = open_step(state)
    step = replace(step, patches={**step.patches, event.patch: event})
    return _with(state, replace(state.program, step=step, questions=state.program.questions + len(event.calls)))


def built(state: SearchState, event: CandidateBuilt) -> SearchState:
    """A change alone, until it is known which are kept."""
    step = open_step(state)
    if step.ranked is not None:
        return state
    return _with(state, replace(state.program, step=replace(step, alone=(*step.alone, event))))


def ranked(state: SearchState, event: EditsRanked) -> SearchState:
    """What the screen left over; what it dropped is remembered."""
    step = open_step(state)
    dropped = [edit for edit in step.edits if edit.id in event.pool and edit.id not in event.chosen]
    state = _remembered(state, dropped, "alone it made no task better, or as many worse")
    return _with(state, replace(state.program, step=replace(step, ranked=event)))


def gated(state: SearchState, event: CandidateGated) -> SearchState:
    """The verdict ends the step: what was taken is what the screened items are known by, the rest is remembered."""
    step, verdict = open_step(state), event.verdict
    if not verdict.taken:
        lost = f"validation lost {len(verdict.lost)} tasks and won {len(verdict.won)}"
        return _closed(_remembered(state, kept_edits(step), lost))
    program = state.program
    kept = {edit.id for edit in kept_edits(step)}
    for index, change in enumerate(step.changes):
        if all(edit.id in kept for edit in change):
            program = _knowing(program, state.rollouts.get(step.screen(index), {}))
    return _closed(_with(state, program))


def skipped(state: SearchState, event: StepSkipped) -> SearchState:
    """No candidate reached the gate."""
    return _closed(
        _remembered(state, kept_edits(open_step(state)), "it was too much, or nobody vouches for what it rests on")
    )


def kept_edits(step: OpenStep) -> tuple[Edit, ...]:
    """The edits that the screen left over; none before it."""
    chosen = () if step.ranked is None else step.ranked.chosen
    return tuple(edit for edit in step.edits if edit.id in chosen)


def _remembered(state: SearchState, edits: list[Edit] | tuple[Edit, ...], why: str) -> SearchState:
    new = tuple(Tried(step=open_step(state).number, edit=edit, why=why) for edit in edits)
    return _with(state, replace(state.program, tried=(*state.program.tried, *new)[-_MOST_TRIED:]))


def _closed(state: SearchState) -> SearchState:
    return _with(state, replace(state.program, step=None))


def resumed(state: SearchState, event: RunResumed) -> SearchState:
    """Questions that nobody answered are asked again."""
    step = state.program.step
    if step is None or state.paused is None or state.paused.reason != "optimizer":
        return state
    answered = {name: patch for name, patch in step.patches.items() if patch.result != "failed"}
    return _with(state, replace(state.program, step=replace(step, patches=answered)))


def retracted(state: SearchState, event: EvidenceRetracted) -> SearchState:
    """What is no evidence is not tried in the open step, and is no longer known."""
    step = state.program.step
    known = {item: found for item, found in state.program.known.items() if item not in event.items}
    if step is not None and event.place in ("", step.place.in_batch(0)):
        step = replace(step, batch=replace(step.batch, items=without_items(step.batch.items, event.items)))
    return _with(state, replace(state.program, known=known, step=step))
