"""What only the search knows: its open step, what is known of each training item, and which edits were refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

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
from skillopt_es.events.values import Batch, Edit, GateVerdict, Measured, Minibatch, Tries
from skillopt_es.projections.core import without_items
from skillopt_es.projections.state import RunState

PRUNING: Literal["pruning"] = "pruning"
"""What a group of lines is called that are tried without."""
EARNED_NOTHING = "alone it made no task better, or as many worse"
TOO_NARROW = "it fixed the tasks that it was made for, and no other task of their type"
_ALL = 1_000_000  # tasks that an edit is for that names none
_ENOUGH_ASKED = 2  # questions that tell whether a form of reply is any good
_MOST_TRIED = 60  # what is older is not told any more


@frozen(kw_only=True)
class Tried:
    """An edit that is not in the skill, at which step it was refused, and why; `types` are those of its tasks."""

    step: int
    edit: Edit
    why: str
    types: frozenset[str] = frozenset()


@frozen(kw_only=True)
class Kept:
    """An edit that got into the skill: the tasks that it fixed, where they had failed, and their types."""

    step: int
    edit: Edit
    items: tuple[str, ...]
    place: Place
    types: frozenset[str]


@frozen(kw_only=True)
class Saved:
    """An edit that had earned its credit, and was refused with others at the gate: it is tried again without them."""

    edit: Edit
    items: tuple[str, ...]
    place: Place


ReplyForm = Literal["json", "text"]


@frozen
class Earned:
    """How many questions wanted their answer in a form, and how many edits of these answers the screen has kept."""

    asked: int = 0
    kept: int = 0

    @property
    def rate(self) -> float:
        """Kept edits for a question."""
        return self.kept / self.asked if self.asked else 0.0


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
    recalled: tuple[Saved, ...] = ()
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
        """All that was proposed, round by round; once there, a change keeps its number. Said again, it claims more."""
        said: dict[object, Change] = {}
        for change in (change for groups in self.rounds for change in self._changes_of(groups)):
            what = tuple((edit.op, edit.file, edit.target, edit.content.strip()) for edit in change)
            first = said.get(what, change)
            claims = dict.fromkeys((*first[-1].claims, *change[-1].claims))
            said[what] = (*first[:-1], replace(first[-1], claims=tuple(claims)))
        return tuple(said.values())

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
            return late, -(len(change[-1].claims) or _ALL)

        return tuple(edit for index in sorted(changes, key=order) for edit in self.changes[index])

    def round_of(self, index: int) -> int:
        """In which round of questions, counted from 0, a change was proposed."""
        group = self.group_of(self.changes[index])
        return next(number for number, groups in enumerate(self.rounds) if group in groups)

    def group_of(self, change: Change) -> Minibatch:
        """What a change was proposed for."""
        return next(group for group in self.groups if group.id in change[-1].origins)

    def beside(self, group: Minibatch) -> tuple[Minibatch, ...]:
        """Solved tasks that are shown beside a group's failing ones: they follow it."""
        at = self.groups.index(group) + 1
        until = next((n for n in range(at, len(self.groups)) if self.groups[n].kind != "success"), len(self.groups))
        return self.groups[at:until]

    @property
    def asked(self) -> tuple[Minibatch, ...]:
        """What somebody answers: the groups that edits come of."""
        return tuple(group for group in self.groups if group.kind != "success")

    def _changes_of(self, groups: tuple[Minibatch, ...]) -> tuple[Change, ...]:
        edits = [edit for group in groups for edit in self._of(group)]
        out = {edit.target: edit for edit in edits if edit.op == "delete"}
        back = {edit.content.strip() for edit in edits if edit.op == "append"} & set(out)
        first = [edit for edit in edits if not (edit.op == "delete" and edit.target in back)]
        return tuple(
            (out[edit.content.strip()], edit) if edit.op == "append" and edit.content.strip() in back else (edit,)
            for edit in first
        )

    @property
    def together(self) -> Place:
        """Where all kept changes are tried."""
        return self.place / "screen" / "together"

    def screen(self, index: int) -> Place:
        """Where a change is tried alone."""
        return self.place / "screen" / f"edit-{index + 1}"

    def _of(self, group: Minibatch) -> tuple[Edit, ...]:
        return self.patches[group.id].edits if group.id in self.patches else ()


@frozen(kw_only=True)
class Search:
    """
    The open step, and what all steps so far have found out.

    `known` is each training item's last result on the way to the current skill, `under` the hash of the text that it is
    from, and `at` where it is recorded; `shown` is how many batches had it. `again` counts tasks that were tried under
    the same text once more, in a batch or for an edit's credit, `varied` how often one came out otherwise; `fickle` are
    those tasks.

    `kept` are the edits that are in the current skill, `saved` those to be tried again. `asked_anew` counts how often
    another edit was asked for in the place of one, by the types of its tasks. `examples` are the items that stand in
    the current skill, `spoiled` how often such a proposal was refused. `forms` is what answers in each form have
    earned, up to the last step. `tries` counts the results, `calls` those that they came from, and `questions` those to
    the optimizer.
    """

    step: OpenStep | None = None
    known: Mapping[str, Measured] = field(factory=dict)
    under: Mapping[str, str] = field(factory=dict)
    at: Mapping[str, Place] = field(factory=dict)
    shown: Mapping[str, int] = field(factory=dict)
    kept: tuple[Kept, ...] = ()
    saved: tuple[Saved, ...] = ()
    asked_anew: Mapping[frozenset[str], int] = field(factory=dict)
    tried: tuple[Tried, ...] = ()
    pruned: str = ""
    examples: frozenset[str] = frozenset()
    spoiled: int = 0
    forms: Mapping[ReplyForm, Earned] = field(factory=dict)
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
        program = _knowing(_repeated(program, rows), rows)
    return _with(state, program)


def _repeated(program: Search, rows: Mapping[str, RolloutCompleted]) -> Search:
    """What tells whether the target varies: tasks that were tried under this very text before."""
    again = {
        item: row.outcome
        for item, row in rows.items()
        if isinstance(row.outcome, Measured) and program.under.get(item) == row.skill
    }
    flipped = [item for item, outcome in again.items() if outcome.hard != program.known[item].hard]
    return replace(
        program,
        again=program.again + len(again),
        varied=program.varied + len(flipped),
        fickle=program.fickle.union(flipped),
    )


def _knowing(program: Search, rows: Mapping[str, RolloutCompleted]) -> Search:
    found = {item: row.outcome for item, row in rows.items() if isinstance(row.outcome, Measured)}
    return replace(
        program,
        known={**program.known, **found},
        under={**program.under, **{item: rows[item].skill for item in found}},
        at={**program.at, **{item: Place(rows[item].place) for item in found}},
    )


def grouped(state: SearchState, event: MinibatchesPlanned) -> SearchState:
    """What is shown to the optimizer together, in one more round of questions."""
    step, program = open_step(state), state.program
    anew = dict(program.asked_anew)
    for group in event.groups:
        old = replaced_by(program, group)
        if old is not None:
            anew[old.types] = anew.get(old.types, 0) + 1
    if any(group.kind == PRUNING for group in event.groups):
        assert state.current is not None
        program = replace(program, pruned=state.current.skill.hash)
    if any(map(is_recalled, event.groups)):
        step, program = replace(step, recalled=program.saved), replace(program, saved=())
    step = replace(step, rounds=(*step.rounds, event.groups))
    return _with(state, replace(program, step=step, asked_anew=anew))


_ANEW, _RECALLED = "anew", "saved"


def anew_at(place: Place, index: int) -> Place:
    """The question for another edit in the place of one that is kept."""
    return place.analyst(_ANEW, index)


def recalled_at(place: Place, index: int) -> Place:
    """The group of edits that are tried again: nobody is asked about it."""
    return place.analyst(_RECALLED, index)


def replaced_by(program: Search, group: Minibatch) -> Kept | None:
    """The edit in whose place a group's question wants another; None for most, and where it was not kept."""
    name, _, number = Place(group.id).name.rpartition("-")
    return program.kept[int(number)] if name == _ANEW and int(number) < len(program.kept) else None


def is_recalled(group: Minibatch) -> bool:
    """Whether a group's edits were proposed before."""
    return Place(group.id).name.startswith(f"{_RECALLED}-")


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
    dropped = [
        edit
        for edit in step.edits
        if edit.id in event.pool and edit.id not in event.chosen and edit.source != PRUNING  # nobody has to know
    ]
    state = _remembered(state, dropped, EARNED_NOTHING)
    return _with(state, replace(state.program, step=replace(step, ranked=event)))


def gated(state: SearchState, event: CandidateGated) -> SearchState:
    """The verdict ends the step: what was taken is what the screened items are known by, the rest is remembered."""
    step, verdict = open_step(state), event.verdict
    edits = kept_edits(step)
    if not verdict.taken:
        lost = f"validation lost {len(verdict.lost)} tasks and won {len(verdict.won)}"
        saved = _without_suspects(state, edits, verdict)
        refused = [edit for edit in edits if edit not in {each.edit for each in saved}]
        state = _remembered(state, refused, lost)
        return _closed(_with(state, replace(state.program, saved=saved)))
    assert state.built is not None
    program = state.program
    chosen = {edit.id for edit in edits}
    for index, change in enumerate(step.changes):
        if all(edit.id in chosen for edit in change):
            for tries in step.tries:
                if tries.place == step.screen(index):
                    program = _knowing(program, state.rollouts.get(step.screen(index).drawn(tries.draw), {}))
    text = "\n".join(state.built.candidate.files.values())
    new = [_kept(state, step, change) for change in step.changes if change[-1].id in chosen and change[-1].content]
    gone = [each for each in program.kept if each.edit.content.strip() not in text]
    kept = (*(each for each in program.kept if each not in gone), *new)
    out = "\n".join(edit.target for edit in edits if edit.source == PRUNING)
    narrow = [each.edit for each in gone if not any(line and line in out for line in each.edit.content.splitlines())]
    state = _remembered(_with(state, program), narrow, TOO_NARROW)
    shown = {name for edit in edits if edit.source == "examples" for name in step.group_of((edit,)).items}
    return _closed(_with(state, replace(state.program, kept=kept, examples=state.program.examples | shown)))


def _kept(state: SearchState, step: OpenStep, change: Change) -> Kept:
    assert step.ranked is not None
    group, edit = step.group_of(change), change[-1]
    fixed = next((credit.fixed for credit in step.ranked.credits if credit.edit == edit.id), ())
    return Kept(
        step=step.number, edit=edit, items=fixed, place=Place(group.place), types=types_of(state, group.place, fixed)
    )


def types_of(state: SearchState, place: str, items: Iterable[str]) -> frozenset[str]:
    """The types of tasks that were tried at a place."""
    rows: Mapping[str, RolloutCompleted] = state.rollouts.get(place, {})
    return frozenset(rows[item].task_type for item in items if item in rows and rows[item].task_type)


def _without_suspects(state: SearchState, edits: Iterable[Edit], verdict: GateVerdict) -> tuple[Saved, ...]:
    """
    The edits of a refused candidate that are worth another try without the others, each once.

    Under suspicion are those that speak of a type that lost or are for tasks of it, and those that are for no tasks in
    particular. Where there are none, the one that is for most tasks, or says most, is, unless the target varies: then
    nothing may be wrong with any.
    """
    step = open_step(state)
    assert step.ranked is not None
    before = {each.edit.content for each in step.recalled}
    lost = {state.types[item] for item in verdict.lost if item in state.types}
    rows = []
    for edit in edits:
        group = step.group_of((edit,))
        fixed = next((credit.fixed for credit in step.ranked.credits if credit.edit == edit.id), ())
        suspected = not edit.claims or bool(lost & types_of(state, group.place, fixed))
        suspected = suspected or any(kind and kind in edit.content for kind in lost)
        rows.append((suspected, Saved(edit=edit, items=fixed, place=Place(group.place))))
    if rows and not state.program.varied and not any(suspected for suspected, _ in rows):
        worst = max(range(len(rows)), key=lambda at: (len(rows[at][1].edit.claims), len(rows[at][1].edit.content)))
        rows[worst] = (True, rows[worst][1])
    return tuple(each for suspected, each in rows if not suspected and each.items and each.edit.content not in before)


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
    """What was refused; nobody is to find another idea in the place of examples, so those are only counted."""
    step, program = open_step(state), state.program
    shown = [edit for edit in edits if edit.source == "examples"]
    new = tuple(
        Tried(step=step.number, edit=edit, why=why, types=_types_behind(state, step, edit))
        for edit in edits
        if edit not in shown
    )
    tried, spoiled = (*program.tried, *new)[-_MOST_TRIED:], program.spoiled + len(shown)
    return _with(state, replace(program, tried=tried, spoiled=spoiled))


def _types_behind(state: SearchState, step: OpenStep, edit: Edit) -> frozenset[str]:
    found = [types_of(state, group.place, edit.claims) for group in step.groups if group.id in edit.origins]
    found += [each.types for each in state.program.kept if each.edit == edit]
    return frozenset(kind for types in found for kind in types)


def better_form(program: Search) -> ReplyForm:
    """JSON, unless it has earned nothing at first, and plain text more, or was not asked for as often."""
    plain, usual = program.forms.get("text", Earned()), program.forms.get("json", Earned())
    if usual.asked < _ENOUGH_ASKED or (usual.kept and not plain.asked):
        return "json"
    if plain.asked < _ENOUGH_ASKED:
        return "text"
    if plain.rate == usual.rate:
        return "json" if usual.asked <= plain.asked else "text"
    return "json" if usual.rate > plain.rate else "text"


def _closed(state: SearchState) -> SearchState:
    step, program = open_step(state), state.program
    form = better_form(program)
    before = program.forms.get(form, Earned())
    groups = {group.id for group in step.groups if group.kind == "failure" and not is_recalled(group)}
    kept = sum(bool(groups.intersection(edit.origins)) for edit in kept_edits(step))
    forms = {**program.forms, form: Earned(before.asked + len(groups), before.kept + kept)}
    return _with(state, replace(program, step=None, forms=forms))


def resumed(state: SearchState, event: RunResumed) -> SearchState:
    """Questions that nobody answered are asked again."""
    step = state.program.step
    if step is None or state.paused is None or state.paused.reason != "optimizer":
        return state
    answered = {name: patch for name, patch in step.patches.items() if patch.result != "failed"}
    return _with(state, replace(state.program, step=replace(step, patches=answered)))


def retracted(state: SearchState, event: EvidenceRetracted) -> SearchState:
    """What is no evidence is not tried in the open step, is no longer known, and is shown beside no other task."""
    program, step = state.program, state.program.step
    if step is not None and event.place in ("", step.place.in_batch(0)):
        step = replace(step, batch=replace(step.batch, items=without_items(step.batch.items, event.items)))
    program = replace(
        program,
        step=step,
        known={item: found for item, found in program.known.items() if item not in event.items},
        at={item: place for item, place in program.at.items() if item not in event.items},
        # In their order and number: open questions name kept edits by it.
        kept=tuple(replace(each, items=without_items(each.items, event.items)) for each in program.kept),
        saved=tuple(each for each in program.saved if without_items(each.items, event.items) == each.items),
    )
    return _with(state, program)
