"""What only the search knows: its open step, what is known of each training item, and which edits were refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
    TriesPlanned,
)
from skillopt_es.events.places import Place
from skillopt_es.events.values import Batch, Edit, Measured, Minibatch, Tries
from skillopt_es.projections.core import without_items
from skillopt_es.projections.state import RunState

EARNED_NOTHING = "alone it made no task better, or as many worse"
_MOST_TRIED = 24  # what is older is not told any more


@frozen(kw_only=True)
class Tried:
    """An edit that did not get into the skill, at which step, and why."""

    step: int
    edit: Edit
    why: str


Change = tuple[Edit, ...]
"""What is tried together: one edit, but for a line that is moved, which is taken out and put back."""


@frozen(kw_only=True)
class OpenStep:
    """
    What has been collected of the step that is under way.

    `rounds` are the groups of each round of questions; `alone` has the text with each change alone, in their order.
    """

    number: int
    batch: Batch
    rounds: tuple[tuple[Minibatch, ...], ...] = ()
    patches: Mapping[str, PatchProposed] = field(factory=dict)
    alone: tuple[CandidateBuilt, ...] = ()
    tries: tuple[Tries, ...] = ()
    ranked: EditsRanked | None = None

    @property
    def place(self) -> Place:
        """Where it is recorded; an epoch has one step."""
        return Place.of_step(self.number, self.number)

    @property
    def groups(self) -> tuple[Minibatch, ...]:
        """What has been asked about so far."""
        return tuple(group for groups in self.rounds for group in groups)

    @property
    def changes(self) -> tuple[Change, ...]:
        """All that was proposed, round by round; once there, a change keeps its number."""
        return tuple(change for groups in self.rounds for change in self._changes_of(groups))

    @property
    def edits(self) -> tuple[Edit, ...]:
        """All that was proposed, in the order in which it is applied."""
        return self.in_order(range(len(self.changes)))

    def in_order(self, changes: Iterable[int]) -> tuple[Edit, ...]:
        """
        The edits of these changes in the order in which they are applied: for many tasks before for few.

        Where two rules speak of one task an agent mostly keeps to the last, which thus is the one for that task. What
        changes lines that an earlier round may have brought comes after all of them.
        """

        def order(index: int) -> tuple[bool, int]:
            change = self.changes[index]
            late = self.round_of(index) > 0 and any(edit.op != "append" for edit in change)
            return late, -(len(change[-1].claims) or len(self.batch.items) + 1)

        return tuple(edit for index in sorted(changes, key=order) for edit in self.changes[index])

    def round_of(self, index: int) -> int:
        """In which round of questions, counted from 0, a change was proposed."""
        for number, groups in enumerate(self.rounds):
            index -= len(self._changes_of(groups))
            if index < 0:
                return number
        raise IndexError(index)

    def _changes_of(self, groups: tuple[Minibatch, ...]) -> tuple[Change, ...]:
        edits = [edit for group in groups for edit in self._of(group)]
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
    it is from; `shown` is how many batches had it. `again` counts further draws of turned tasks for an edit's credit,
    `varied` how often one did not stay so; `fickle` are those tasks.
    `tries` counts the results, `calls` those that they came from, and `questions` those to the optimizer.
    """

    step: OpenStep | None = None
    known: Mapping[str, Measured] = field(factory=dict)
    under: Mapping[str, str] = field(factory=dict)
    shown: Mapping[str, int] = field(factory=dict)
    tried: tuple[Tried, ...] = ()
    again: int = 0
    varied: int = 0
    fickle: frozenset[str] = frozenset()
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
    """What is shown to the optimizer together, in one more round of questions."""
    step = open_step(state)
    return _with(state, replace(state.program, step=replace(step, rounds=(*step.rounds, event.groups))))


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


def tries_planned(state: SearchState, event: TriesPlanned) -> SearchState:
    """What is tried next."""
    step = open_step(state)
    return _with(state, replace(state.program, step=replace(step, tries=(*step.tries, *event.tries))))


def ranked(state: SearchState, event: EditsRanked) -> SearchState:
    """What the screen left over; what it dropped is remembered, and how many turned tasks varied."""
    step, program = open_step(state), state.program
    again = program.again + sum(credit.again for credit in event.credits)
    varied = program.varied + sum(len(credit.varied) for credit in event.credits)
    fickle = program.fickle.union(*(credit.varied for credit in event.credits))
    state = _with(state, replace(program, again=again, varied=varied, fickle=fickle))
    dropped = [edit for edit in step.edits if edit.id in event.pool and edit.id not in event.chosen]
    state = _remembered(state, dropped, EARNED_NOTHING)
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
            for tries in step.tries:
                if tries.place == step.screen(index):
                    program = _knowing(program, state.rollouts.get(step.screen(index).drawn(tries.draw), {}))
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
