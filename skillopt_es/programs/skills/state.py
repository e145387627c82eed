"""
What only this program knows: attempts that wait for others like them, refused updates, and what skills were good for.

Attempts are known by where they were made; their texts are in the log.
"""

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
    TriesPlanned,
)
from skillopt_es.events.places import Place
from skillopt_es.events.values import Attempt, Edit, Measured, Minibatch, Tries
from skillopt_es.projections.core import without_items
from skillopt_es.projections.state import RunState
from skillopt_es.skill.folders import files_of, ids_of, skill_of, skills_in

Key = tuple[str, ...]
"""The skills that an attempt opened, by name; none is a key, too."""

WHOLE: Key = ("*",)
"""Whose refused updates are remembered for the folder as a whole; no skill can have that name."""

_MOST_RETURNS = 2  # after so many questions that nobody answered, an attempt is not shown any more
_MOST_HISTORY = 24


@frozen(kw_only=True)
class Waiting:
    """An attempt that no question has shown yet, what it opened, and its result."""

    attempt: Attempt
    key: Key
    outcome: Measured


@frozen(kw_only=True)
class Refused:
    """An edit that did not get into the folder, at which step, and why."""

    step: int
    edit: Edit
    why: str


@frozen(kw_only=True)
class Sighting:
    """One training attempt of the epoch: its kind of task, what it opened, and its result."""

    attempt: Attempt
    kind: str
    key: Key
    outcome: Measured


@frozen(kw_only=True)
class Outcome:
    """What became of a step's edits, told to whoever manages the folder."""

    step: int
    taken: bool
    edits: tuple[Edit, ...]


@frozen(kw_only=True)
class Gone:
    """A skill that was retired: when, and its files, so that it can come back."""

    step: int
    files: Mapping[str, str]


@frozen(kw_only=True)
class Skills:
    """
    The open step, and what all steps so far have found out.

    `trials` counts the training attempts in which a skill could have been opened, `quiet` the epochs in a row in which
    it was not. `doomed` has the step at which a skill was first proposed to be retired, `returns` how often the
    question about an attempt came to nothing. `views` has what each validation item opened, by the hash of the folder.
    """

    epoch: EpochPlanned | None = None
    groups: tuple[Minibatch, ...] | None = None
    patches: Mapping[str, PatchProposed] = field(factory=dict)
    ranked: EditsRanked | None = None
    triggers: tuple[Tries, ...] = ()
    parts: tuple[Tries, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    refused: Mapping[Key, tuple[Refused, ...]] = field(factory=dict)
    sightings: tuple[Sighting, ...] = ()
    history: tuple[Outcome, ...] = ()
    trials: Mapping[str, int] = field(factory=dict)
    quiet: Mapping[str, int] = field(factory=dict)
    doomed: Mapping[str, int] = field(factory=dict)
    gone: Mapping[str, Gone] = field(factory=dict)
    returns: Mapping[Attempt, int] = field(factory=dict)
    views: Mapping[str, Mapping[str, Key]] = field(factory=dict)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """All that was proposed in the open step, group by group."""
        proposed = (self.patches[group.id] for group in self.groups or () if group.id in self.patches)
        return tuple(edit for patch in proposed for edit in patch.edits)

    def group_of(self, edit: Edit) -> Minibatch:
        """The group whose question an edit answers."""
        return next(group for group in self.groups or () if group.id in edit.origins)


SkillsState = RunState[Skills]
"""A run that is trained by this program."""


def initial(started: RunStarted) -> Skills:
    """Nothing is known yet."""
    return Skills()


# --- where a run stands ----------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Where:
    """A step by its number, the epoch that it is of, and its index there; the last one manages the whole folder."""

    number: int
    epoch: int
    index: int
    managing: bool

    @property
    def place(self) -> Place:
        """Where it is recorded."""
        return Place.of_step(self.epoch, self.number)


def where_of(state: SkillsState) -> Where:
    """The step that is under way, or comes next."""
    assert state.started is not None
    number, steps = state.steps_done + 1, state.started.steps_per_epoch
    epoch, index = divmod(number - 1, steps)
    return Where(number=number, epoch=epoch + 1, index=index, managing=index == steps - 1)


def place_of(state: SkillsState) -> Place:
    """Where the open step's candidate is judged: what stayed of a refused one has a place of its own."""
    place = where_of(state).place
    return place if state.program.ranked is None else place / "kept"


def begun(state: SkillsState) -> bool:
    """Whether anything of the step has been recorded."""
    place = where_of(state).place
    return state.program.groups is not None or state.built is not None or any(place.holds(at) for at in state.rollouts)


def ring_of(state: SkillsState) -> int:
    """How many refused updates are remembered for each set of skills."""
    assert state.started is not None
    section = state.started.config.get("skills")
    size = section.get("max_rejected_update_buffer_size") if isinstance(section, dict) else None
    assert isinstance(size, int)
    return size


# --- facts -----------------------------------------------------------------------------------------------------------


def _with(state: SkillsState, program: Skills) -> SkillsState:
    return replace(state, program=program)


def epoch_planned(state: SkillsState, event: EpochPlanned) -> SkillsState:
    """An epoch begins: what is counted for its end is counted anew."""
    return _with(state, replace(state.program, epoch=event, sightings=()))


def scored(state: SkillsState, event: SkillScored) -> SkillsState:
    """A batch was tried: its attempts wait for others like them, and count for the skills that were there."""
    if event.purpose != "train":
        return _viewed(state, event)
    if Place(event.place).batch is None:  # a candidate's trigger set: it is no evidence about the current folder
        return state
    assert state.current is not None
    rows: Mapping[str, RolloutCompleted] = state.rollouts.get(event.place, {})
    seen = tuple(
        Sighting(
            attempt=Attempt(event.place, row.item), kind=row.task_type, key=skills_in(row.viewed), outcome=row.outcome
        )
        for row in rows.values()
        if isinstance(row.outcome, Measured)
    )
    new = tuple(
        Waiting(attempt=each.attempt, key=each.key, outcome=each.outcome)
        for each in seen
        if each.key or not each.outcome.passed  # what passed without a skill has nothing to say about any
    )
    program, there = state.program, ids_of(state.current.skill)
    return _with(
        state,
        replace(
            program,
            waiting=(*program.waiting, *new),
            sightings=(*program.sightings, *seen),
            trials={skill: program.trials.get(skill, 0) + len(seen) for skill in there},
        ),
    )


def _viewed(state: SkillsState, event: SkillScored) -> SkillsState:
    """What the validation items opened in a first draw; of those that were carried, what they opened before."""
    program, known = state.program, state.program.views
    if event.purpose != "selection" or event.draw != 1 or event.skill in known:
        return state
    begun = state.partial.get((event.skill, event.draw))
    rows = {**(begun.rows if begun is not None else {}), **state.rollouts.get(event.place, {})}
    before = known.get(event.carried_from, {})
    keys = {item: before[item] for item in event.carried}
    keys |= {item: skills_in(row.viewed) for item, row in rows.items()}
    return _with(state, replace(program, views={**known, event.skill: keys}))


def grouped(state: SkillsState, event: MinibatchesPlanned) -> SkillsState:
    """What is shown to the optimizer waits no more, in the same event: nothing is ever shown twice."""
    used = {Attempt(*each) for group in event.groups for each in group.attempts} | set(event.dropped)
    waiting = tuple(each for each in state.program.waiting if each.attempt not in used)
    return _with(state, replace(state.program, groups=event.groups, waiting=waiting))


def proposed(state: SkillsState, event: PatchProposed) -> SkillsState:
    """An answer joins the step."""
    return _with(state, replace(state.program, patches={**state.program.patches, event.patch: event}))


def tries_planned(state: SkillsState, event: TriesPlanned) -> SkillsState:
    """The training items that the candidate has to meet because it changes what is listed, or items for its parts."""
    if any(tries.edits for tries in event.tries):
        return _with(state, replace(state.program, parts=event.tries))
    return _with(state, replace(state.program, triggers=event.tries))


def ranked(state: SkillsState, event: EditsRanked) -> SkillsState:
    """Of a candidate that was refused as a whole some changes may stay; the others are remembered."""
    program = replace(state.program, ranked=event, triggers=(), parts=())
    edits, refused = {edit.id: edit for edit in program.edits}, dict(program.refused)
    worse = {name: each for each in event.effects for name in each.edits}
    for name in (each for each in event.pool if each not in event.chosen):
        key = WHOLE if where_of(state).managing else program.group_of(edits[name]).viewed
        why = f"tasks got worse with it, by {-worse[name].effect:.2f} each"
        row = Refused(step=event.step, edit=edits[name], why=why)
        refused[key] = (*refused.get(key, ()), row)[-ring_of(state) :]
    return _with(state, replace(program, refused=refused))


def gated(state: SkillsState, event: CandidateGated) -> SkillsState:
    """The verdict ends the step: what was refused is remembered for what it was about, what was taken moves names."""
    verdict = event.verdict
    if not verdict.taken:
        lost = f"validation lost {len(verdict.lost)} tasks and won {len(verdict.won)}"
        return _forgetting(_closed(state, lost), event)
    return _forgetting(_closed(_renamed(state), ""), event)


def _forgetting(state: SkillsState, event: CandidateGated) -> SkillsState:
    """What items opened is kept for the folders that hold a place after the verdict."""
    held = {standing.skill.hash for standing in state.standings.values()} | {event.candidate}
    views = {name: keys for name, keys in state.program.views.items() if name in held}
    return _with(state, replace(state.program, views=views))


def skipped(state: SkillsState, event: StepSkipped) -> SkillsState:
    """No candidate came to the gate."""
    return _closed(state, event.detail or event.reason.replace("_", " "))


def _applied(built: CandidateBuilt) -> dict[str, str]:
    """The edits of a candidate that are not in it, and why; of those that are, nothing."""
    return {
        report.edit: "" if report.status.startswith("applied") else report.note or report.status.replace("_", " ")
        for report in built.reports
    }


def applied_edits(edits: tuple[Edit, ...], built: CandidateBuilt) -> tuple[Edit, ...]:
    """The edits that are in a candidate, in their order."""
    said = _applied(built)
    return tuple(edit for edit in edits if said.get(edit.id) == "")


def became(edits: tuple[Edit, ...]) -> dict[str, tuple[str, ...]]:
    """What has become of each skill that these edits rename, merge or split."""
    into: dict[str, tuple[str, ...]] = {}
    for edit in edits:
        if edit.op in ("rename", "merge", "split"):
            into |= {old: (*into.get(old, ()), skill_of(edit.file)) for old in edit.target.split()}
    return into


def _closed(state: SkillsState, why: str) -> SkillsState:
    """After the step; `why` is what its candidate was refused for, where it was."""
    program = state.program
    if state.built is not None:
        program = _remembering(program, state.built, why, ring_of(state), managing=where_of(state).managing)
    back = tuple(each for each in _unanswered(state) if program.returns.get(each.attempt, 0) < _MOST_RETURNS)
    returns = {each.attempt: program.returns.get(each.attempt, 0) + 1 for each in back}
    if where_of(state).managing:
        program = _counted_quiet(state, program)
    waiting, returns = (*program.waiting, *back), {**program.returns, **returns}
    return _with(
        state,
        replace(
            program,
            groups=None,
            patches={},
            ranked=None,
            triggers=(),
            parts=(),
            waiting=waiting,
            returns=returns,
        ),
    )


def _remembering(program: Skills, built: CandidateBuilt, why: str, ring: int, *, managing: bool) -> Skills:
    step, said, edits = built.step, _applied(built), {edit.id: edit for edit in program.edits}
    refused, doomed = dict(program.refused), dict(program.doomed)
    for name, missing in said.items():
        edit = edits[name]
        if edit.op == "retire" and not edit.change:
            doomed.setdefault(skill_of(edit.file), step)
        if missing or why:
            key = WHOLE if managing else program.group_of(edit).viewed
            refused[key] = (*refused.get(key, ()), Refused(step=step, edit=edit, why=missing or why))[-ring:]
    done = Outcome(step=step, taken=not why, edits=tuple(edits[name] for name, missing in said.items() if not missing))
    history = (*program.history, done)[-_MOST_HISTORY:] if done.edits else program.history
    return replace(program, refused=refused, doomed=doomed, history=history)


def _unanswered(state: SkillsState) -> list[Waiting]:
    """The attempts of questions that nobody answered."""
    program = state.program
    lost = [each for each in program.groups or () if each.id in program.patches]
    found = []
    for group in lost:
        if program.patches[group.id].result == "failed":
            for place, item in group.attempts:
                outcome = state.rollouts[place][item].outcome
                assert isinstance(outcome, Measured)
                found.append(Waiting(attempt=Attempt(place, item), key=group.viewed, outcome=outcome))
    return found


def _counted_quiet(state: SkillsState, program: Skills) -> Skills:
    """At an epoch's end: in how many epochs in a row each skill was not opened."""
    assert state.current is not None
    opened = {skill for seen in program.sightings for skill in seen.key}
    there = ids_of(state.current.skill)
    return replace(program, quiet={each: 0 if each in opened else program.quiet.get(each, 0) + 1 for each in there})


def _renamed(state: SkillsState) -> SkillsState:
    """What waits and what was refused is known by the names that the skills have now; retired ones are kept aside."""
    assert state.built is not None
    assert state.current is not None
    program, before, after = state.program, state.current.skill, state.built.candidate
    now, edits = set(ids_of(after)), applied_edits(state.program.edits, state.built)
    into = became(edits)
    gone = {skill: each for skill, each in program.gone.items() if skill not in now}
    for edit in edits:
        if edit.op == "retire" and not edit.change:
            skill = skill_of(edit.file)
            gone[skill] = Gone(step=state.built.step, files=files_of(before, skill))

    def named(key: Key) -> Key:
        if key == WHOLE:
            return key
        new = (name for skill in key for name in into.get(skill, (skill,)))
        return tuple(sorted({name for name in new if name in now}))

    refused: dict[Key, tuple[Refused, ...]] = {}
    for key, rows in program.refused.items():
        together = sorted((*refused.get(named(key), ()), *rows), key=lambda row: row.step)
        refused[named(key)] = tuple(together[-ring_of(state) :])
    trials = {
        skill: max([program.trials.get(old, 0) for old, new in into.items() if skill in new], default=0)
        if skill not in program.trials
        else program.trials[skill]
        for skill in sorted(now)
    }
    return _with(
        state,
        replace(
            program,
            refused=refused,
            waiting=tuple(replace(each, key=named(each.key)) for each in program.waiting),
            gone=gone,
            trials=trials,
            doomed={skill: step for skill, step in program.doomed.items() if skill in now},
        ),
    )


def resumed(state: SkillsState, event: RunResumed) -> SkillsState:
    """Questions that nobody answered are asked again."""
    if state.paused is None or state.paused.reason != "optimizer":
        return state
    answered = {name: patch for name, patch in state.program.patches.items() if patch.result != "failed"}
    return _with(state, replace(state.program, patches=answered))


def retracted(state: SkillsState, event: EvidenceRetracted) -> SkillsState:
    """What is no evidence is not tried in the open epoch, waits no more, and is counted no more at its end."""
    program = state.program

    def stays(at: Attempt) -> bool:
        return at.item not in event.items or event.place not in ("", at.place)

    waiting = tuple(each for each in program.waiting if stays(each.attempt))
    sightings = tuple(each for each in program.sightings if stays(each.attempt))
    epoch = program.epoch
    if epoch is not None and not event.place:
        batches = tuple(replace(batch, items=without_items(batch.items, event.items)) for batch in epoch.batches)
        epoch = replace(epoch, batches=batches)
    return _with(state, replace(program, waiting=waiting, sightings=sightings, epoch=epoch))
