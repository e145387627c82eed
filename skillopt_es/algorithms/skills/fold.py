"""How events change the state of this algorithm: `FACTS` has a function for each. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve as replace

from skillopt_es.algorithms.skills.state import (
    WHOLE,
    Gone,
    Key,
    Outcome,
    Refused,
    Sighting,
    Skills,
    SkillsState,
    Waiting,
    applied_edits,
    became,
    grouped_by,
    ring_of,
    said_of,
    where_of,
)
from skillopt_es.engine.algorithm import Handler
from skillopt_es.events.catalog import (
    CandidateBuilt,
    CandidateGated,
    EditsRanked,
    EpochPlanned,
    Event,
    EvidenceRetracted,
    MinibatchesPlanned,
    PatchProposed,
    RolloutCompleted,
    RunResumed,
    SkillScored,
    StepSkipped,
    TriesPlanned,
)
from skillopt_es.events.places import Place
from skillopt_es.events.values import Attempt, Measured
from skillopt_es.projections.core import waiting, without_items
from skillopt_es.skill.folders import files_of, ids_of, skill_of, skills_in

_MOST_RETURNS = 2  # after so many questions that nobody answered, an attempt is not shown any more
_MOST_HISTORY = 24  # outcomes that questions show a part of; without a bound each state holds all edits of the run


def _with(state: SkillsState, algorithm: Skills) -> SkillsState:
    return replace(state, algorithm=algorithm)


def _epoch_planned(state: SkillsState, event: EpochPlanned) -> SkillsState:
    """An epoch begins: what is counted for its end is counted anew."""
    return _with(state, replace(state.algorithm, epoch=event, sightings=()))


def _scored(state: SkillsState, event: SkillScored) -> SkillsState:
    """A batch was tried: its attempts wait for others like them, and count for the skills that were there."""
    if event.purpose != "train":
        return _viewed(state, event)
    if Place(event.place).batch is None:  # a candidate's trigger set: it is no evidence about the current folder
        return state
    rows: Mapping[str, RolloutCompleted] = state.rollouts.get(event.place, {})
    seen = tuple(
        Sighting(
            attempt=Attempt(event.place, row.item), kind=row.task_type, key=skills_in(row.viewed), outcome=row.outcome
        )
        for row in rows.values()
        if isinstance(row.outcome, Measured)
    )
    keys = {item: grouped_by(state, row) for item, row in rows.items()}
    new = tuple(
        Waiting(attempt=each.attempt, key=keys[each.attempt.item], outcome=each.outcome)
        for each in seen
        if keys[each.attempt.item] or not each.outcome.passed  # what passed without a skill says nothing about any
    )
    algorithm, there = state.algorithm, ids_of(state.current.skill)
    return _with(
        state,
        replace(
            algorithm,
            waiting=(*algorithm.waiting, *new),
            sightings=(*algorithm.sightings, *seen),
            trials={skill: algorithm.trials.get(skill, 0) + len(seen) for skill in there},
        ),
    )


def _viewed(state: SkillsState, event: SkillScored) -> SkillsState:
    """What the validation items opened in a first draw; of those that were carried, what they opened before."""
    algorithm, known = state.algorithm, state.algorithm.views
    if event.purpose != "selection" or event.repeat != 1 or event.skill in known:
        return state
    begun = state.partial.get((event.skill, event.repeat))
    rows = {**(begun.rows if begun is not None else {}), **state.rollouts.get(event.place, {})}
    before = known.get(event.carried_from, {})
    keys = {item: before[item] for item in event.carried}
    keys |= {item: skills_in(row.viewed) for item, row in rows.items()}
    return _with(state, replace(algorithm, views={**known, event.skill: keys}))


def _grouped(state: SkillsState, event: MinibatchesPlanned) -> SkillsState:
    """What is shown to the optimizer waits no more, in the same event: nothing is ever shown twice."""
    used = {Attempt(*each) for group in event.groups for each in group.attempts} | set(event.dropped)
    waiting = tuple(each for each in state.algorithm.waiting if each.attempt not in used)
    return _with(state, replace(state.algorithm, groups=event.groups, waiting=waiting))


def _proposed(state: SkillsState, event: PatchProposed) -> SkillsState:
    """An answer joins the step."""
    return _with(state, replace(state.algorithm, patches={**state.algorithm.patches, event.patch: event}))


def _tries_planned(state: SkillsState, event: TriesPlanned) -> SkillsState:
    """The training items that the candidate has to meet because it changes what is listed, or items for its parts."""
    if any(tries.edits for tries in event.tries):
        return _with(state, replace(state.algorithm, parts=event.tries))
    return _with(state, replace(state.algorithm, triggers=event.tries))


def _ranked(state: SkillsState, event: EditsRanked) -> SkillsState:
    """Of a candidate that was refused as a whole some changes may stay; the others are remembered."""
    algorithm = replace(state.algorithm, ranked=event, triggers=(), parts=())
    edits, refused = {edit.id: edit for edit in algorithm.edits}, dict(algorithm.refused)
    worse = {name: each for each in event.effects for name in each.edits}
    for name in (each for each in event.pool if each not in event.chosen):
        key = WHOLE if where_of(state).managing else algorithm.group_of(edits[name]).viewed
        why = f"tasks got worse with it, by {-worse[name].effect:.2f} each"
        row = Refused(step=event.step, edit=edits[name], why=why)
        refused[key] = (*refused.get(key, ()), row)[-ring_of(state) :]
    return _with(state, replace(algorithm, refused=refused))


def _gated(state: SkillsState, event: CandidateGated) -> SkillsState:
    """The verdict ends the step: what was refused is remembered for what it was about, what was taken moves names."""
    verdict = event.verdict
    if not verdict.taken:
        lost = f"validation lost {len(verdict.lost)} tasks and won {len(verdict.won)}"
        return _forgetting(_closed(state, lost), event)
    return _forgetting(_closed(_renamed(state, waiting(state)), ""), event)


def _forgetting(state: SkillsState, event: CandidateGated) -> SkillsState:
    """What items opened is kept for the folders that hold a place after the verdict."""
    held = {standing.skill.hash for standing in state.standings.values()} | {event.candidate}
    views = {name: keys for name, keys in state.algorithm.views.items() if name in held}
    return _with(state, replace(state.algorithm, views=views))


def _skipped(state: SkillsState, event: StepSkipped) -> SkillsState:
    """No candidate came to the gate."""
    return _closed(state, event.detail or event.reason.replace("_", " "))


def _closed(state: SkillsState, why: str) -> SkillsState:
    """After the step; `why` is what its candidate was refused for, where it was."""
    algorithm = state.algorithm
    if state.built is not None:
        algorithm = _remembering(algorithm, state.built, why, ring_of(state), managing=where_of(state).managing)
    back = tuple(each for each in _unanswered(state) if algorithm.returns.get(each.attempt, 0) < _MOST_RETURNS)
    returns = {each.attempt: algorithm.returns.get(each.attempt, 0) + 1 for each in back}
    if where_of(state).managing:
        algorithm = _counted_quiet(state, algorithm)
    waiting, returns = (*algorithm.waiting, *back), {**algorithm.returns, **returns}
    return _with(
        state,
        replace(
            algorithm,
            groups=None,
            patches={},
            ranked=None,
            triggers=(),
            parts=(),
            waiting=waiting,
            returns=returns,
        ),
    )


def _remembering(algorithm: Skills, built: CandidateBuilt, why: str, ring: int, *, managing: bool) -> Skills:
    step, said, edits = built.step, said_of(built), {edit.id: edit for edit in algorithm.edits}
    refused, doomed = dict(algorithm.refused), dict(algorithm.doomed)
    for name, missing in said.items():
        edit = edits[name]
        if edit.op == "retire" and not edit.change:
            doomed.setdefault(skill_of(edit.file), step)
        if missing or why:
            key = WHOLE if managing else algorithm.group_of(edit).viewed
            refused[key] = (*refused.get(key, ()), Refused(step=step, edit=edit, why=missing or why))[-ring:]
    done = Outcome(step=step, taken=not why, edits=tuple(edits[name] for name, missing in said.items() if not missing))
    history = (*algorithm.history, done)[-_MOST_HISTORY:] if done.edits else algorithm.history
    return replace(algorithm, refused=refused, doomed=doomed, history=history)


def _unanswered(state: SkillsState) -> list[Waiting]:
    """The attempts of questions that nobody answered."""
    algorithm = state.algorithm
    lost = [each for each in algorithm.groups or () if each.id in algorithm.patches]
    found = []
    for group in lost:
        if algorithm.patches[group.id].result == "failed":
            for place, item in group.attempts:
                outcome = state.rollouts[place][item].outcome
                if isinstance(outcome, Measured):  # as all are that a question shows
                    found.append(Waiting(attempt=Attempt(place, item), key=group.viewed, outcome=outcome))
    return found


def _counted_quiet(state: SkillsState, algorithm: Skills) -> Skills:
    """At an epoch's end: in how many epochs in a row each skill was not opened."""
    opened = {skill for seen in algorithm.sightings for skill in seen.key}
    there = ids_of(state.current.skill)
    return replace(algorithm, quiet={each: 0 if each in opened else algorithm.quiet.get(each, 0) + 1 for each in there})


def _renamed(state: SkillsState, built: CandidateBuilt) -> SkillsState:
    """What waits and what was refused is known by the names that the skills have now; retired ones are kept aside."""
    algorithm, before, after = state.algorithm, state.current.skill, built.candidate
    now, edits = set(ids_of(after)), applied_edits(state.algorithm.edits, built)
    into = became(edits)
    gone = {skill: each for skill, each in algorithm.gone.items() if skill not in now}
    for edit in edits:
        if edit.op == "retire" and not edit.change:
            skill = skill_of(edit.file)
            gone[skill] = Gone(step=built.step, files=files_of(before, skill))

    def named(key: Key) -> Key:
        if key == WHOLE:
            return key
        new = (name for skill in key for name in into.get(skill, (skill,)))
        return tuple(sorted({name for name in new if name in now}))

    refused: dict[Key, tuple[Refused, ...]] = {}
    for key, rows in algorithm.refused.items():
        together = sorted((*refused.get(named(key), ()), *rows), key=lambda row: row.step)
        refused[named(key)] = tuple(together[-ring_of(state) :])
    trials = {
        skill: max([algorithm.trials.get(old, 0) for old, new in into.items() if skill in new], default=0)
        if skill not in algorithm.trials
        else algorithm.trials[skill]
        for skill in sorted(now)
    }
    return _with(
        state,
        replace(
            algorithm,
            refused=refused,
            waiting=tuple(replace(each, key=named(each.key)) for each in algorithm.waiting),
            gone=gone,
            trials=trials,
            doomed={skill: step for skill, step in algorithm.doomed.items() if skill in now},
        ),
    )


def _resumed(state: SkillsState, event: RunResumed) -> SkillsState:
    """Questions that nobody answered are asked again."""
    if state.paused is None or state.paused.reason != "optimizer":
        return state
    answered = {name: patch for name, patch in state.algorithm.patches.items() if patch.result != "failed"}
    return _with(state, replace(state.algorithm, patches=answered))


def _retracted(state: SkillsState, event: EvidenceRetracted) -> SkillsState:
    """What is no evidence is not tried in the open epoch, waits no more, and is counted no more at its end."""
    algorithm = state.algorithm

    def stays(at: Attempt) -> bool:
        return at.item not in event.items or event.place not in ("", at.place)

    waiting = tuple(each for each in algorithm.waiting if stays(each.attempt))
    sightings = tuple(each for each in algorithm.sightings if stays(each.attempt))
    epoch, barred = algorithm.epoch, algorithm.barred
    if event.place:  # a fork begins before the step that tried them there
        barred = {**barred, event.place: (*barred.get(event.place, ()), *event.items)}
    elif epoch is not None:
        batches = tuple(replace(batch, items=without_items(batch.items, event.items)) for batch in epoch.batches)
        epoch = replace(epoch, batches=batches)
    return _with(state, replace(algorithm, waiting=waiting, sightings=sightings, epoch=epoch, barred=barred))


FACTS: Mapping[type[Event], Handler[Skills]] = {
    RunResumed: _resumed,
    EvidenceRetracted: _retracted,
    EpochPlanned: _epoch_planned,
    SkillScored: _scored,
    MinibatchesPlanned: _grouped,
    PatchProposed: _proposed,
    EditsRanked: _ranked,
    TriesPlanned: _tries_planned,
    CandidateGated: _gated,
    StepSkipped: _skipped,
}
