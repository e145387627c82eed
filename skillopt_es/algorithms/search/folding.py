"""What each event makes of a search: the handlers of its fold, which apply what was decided and decide nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from attrs import evolve as replace

from skillopt_es.algorithms.search.state import (
    PRUNING,
    TOO_NARROW,
    Drawn,
    Earned,
    Kept,
    Search,
    SearchState,
    Tried,
    asked_form,
    checks_together,
    is_recalled,
    is_wider,
    kept_edits,
    names_type,
    open_step,
    replaced_by,
    solved_types,
    types_of,
    why_dropped,
)
from skillopt_es.algorithms.search.steps import Change, OpenStep, Saved
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
from skillopt_es.events.values import Credit, Edit, GateVerdict, Measured, Minibatch
from skillopt_es.projections.core import waiting, without_items
from skillopt_es.skill.alignment import Origin, carried, changes, lines_of

_MOST_TRIED = 60  # what is older is not told any more


def initial(started: RunStarted) -> Search:
    """Nothing is known yet."""
    return Search()


def _with(state: SearchState, algorithm: Search) -> SearchState:
    return replace(state, algorithm=algorithm)


def planned(state: SearchState, event: EpochPlanned) -> SearchState:
    """A step begins with its batch."""
    [batch] = event.batches
    place = Place.of_step(event.epoch, event.epoch).in_batch(0)
    batch = replace(batch, items=without_items(batch.items, state.algorithm.barred.get(place, ())))
    shown = {**state.algorithm.shown, **{item: state.algorithm.shown.get(item, 0) + 1 for item in batch.items}}
    step = OpenStep(number=event.epoch, batch=batch)
    return _with(state, replace(state.algorithm, step=step, shown=shown))


def scored(state: SearchState, event: SkillScored) -> SearchState:
    """Calls are counted; the results of the batch are known of the current skill."""
    rows: Mapping[str, RolloutCompleted] = state.rollouts.get(event.place, {})
    calls = sum(len(row.calls) for row in rows.values())
    algorithm = replace(state.algorithm, calls=state.algorithm.calls + calls, tries=state.algorithm.tries + len(rows))
    last = state.current is not None and event.skill == state.current.skill.hash  # the best one comes before it
    algorithm = replace(algorithm, widened=algorithm.widened or (last and is_wider(event.place)))
    if algorithm.step is not None:
        algorithm = _drawing(algorithm, algorithm.step, Place(event.place), rows)
    if algorithm.step is not None and event.place == algorithm.step.place.in_batch(0):
        algorithm = _knowing(_repeated(algorithm, rows), rows)
    elif algorithm.step is not None:
        rows = {item: rows[item] for item in _solved_before(algorithm, algorithm.step, event.place) if item in rows}
        algorithm = _knowing(_repeated(algorithm, rows), rows)
    return _with(state, algorithm)


def _solved_before(algorithm: Search, step: OpenStep, place: str) -> list[str]:
    """Solved tasks that were tried at a place under the current text, because an edit seemed to break them."""
    at = step.place.in_batch(0)
    planned = [tries for tries in step.tries if tries.place == at and at.drawn(tries.draw) == place]
    return [
        item for tries in planned for item in tries.items if item in algorithm.known and algorithm.known[item].hard > 0
    ]


def _repeated(algorithm: Search, rows: Mapping[str, RolloutCompleted]) -> Search:
    """What tells whether the target varies: tasks that were tried under this very text before."""
    again = {
        item: row.outcome
        for item, row in rows.items()
        if isinstance(row.outcome, Measured) and algorithm.under.get(item) == row.skill
    }
    flipped = [item for item, outcome in again.items() if outcome.hard != algorithm.known[item].hard]
    return replace(
        algorithm,
        again=algorithm.again + len(again),
        varied=algorithm.varied + len(flipped),
        fickle=algorithm.fickle.union(flipped),
    )


def _drawing(algorithm: Search, step: OpenStep, place: Place, rows: Mapping[str, RolloutCompleted]) -> Search:
    """The draws of training tasks, each with the text that it was made under, and how often none could be measured."""
    batch = step.place.in_batch(0)
    own = place == batch or any(tries.place == batch and batch.drawn(tries.draw) == place for tries in step.tries)
    if not own and not any(Place(tries.place).drawn(tries.draw) == place for tries in step.tries):
        return algorithm
    drawn, repeated, failed = dict(algorithm.drawn), dict(algorithm.repeated), dict(algorithm.failed)
    for item, row in rows.items():
        if not isinstance(row.outcome, Measured):
            failed[item] = failed.get(item, 0) + 1
            continue
        failed.pop(item, None)
        before = drawn.get(item, ())
        same = next((each for each in before if each.text == row.skill), Drawn(text=row.skill, own=False))
        now = replace(same, own=same.own or own, outcomes=(*same.outcomes, row.outcome))
        drawn[item] = (*(each for each in before if each is not same), now)
        if same.outcomes:
            repeated[item, row.skill] = now.outcomes
    return replace(algorithm, drawn=drawn, repeated=repeated, failed=failed)


def _knowing(algorithm: Search, rows: Mapping[str, RolloutCompleted]) -> Search:
    found = {item: row.outcome for item, row in rows.items() if isinstance(row.outcome, Measured)}
    return replace(
        algorithm,
        known={**algorithm.known, **found},
        under={**algorithm.under, **{item: rows[item].skill for item in found}},
        at={**algorithm.at, **{item: Place(rows[item].place) for item in found}},
    )


def grouped(state: SearchState, event: MinibatchesPlanned) -> SearchState:
    """What is shown to the optimizer together, in one more round of questions."""
    step, algorithm = open_step(state), state.algorithm
    anew = dict(algorithm.asked_anew)
    for group in event.groups:
        old = replaced_by(algorithm, group)
        if old is not None:
            anew[old.types] = anew.get(old.types, 0) + 1
    if any(group.kind == PRUNING for group in event.groups):
        algorithm = replace(algorithm, pruned=state.current.skill.hash)
    if any(map(is_recalled, event.groups)):
        step, algorithm = replace(step, recalled=algorithm.saved), replace(algorithm, saved=())
    step = replace(step, rounds=(*step.rounds, event.groups))
    return _with(state, replace(algorithm, step=step, asked_anew=anew))


def proposed(state: SearchState, event: PatchProposed) -> SearchState:
    """An answer joins the step."""
    step = open_step(state)
    step = replace(step, patches={**step.patches, event.patch: event})
    return _with(state, replace(state.algorithm, step=step, questions=state.algorithm.questions + len(event.calls)))


def built(state: SearchState, event: CandidateBuilt) -> SearchState:
    """A change alone, until it is known which are kept."""
    step = open_step(state)
    if step.ranked is not None:
        return state
    return _with(state, replace(state.algorithm, step=replace(step, alone=(*step.alone, event))))


def tries_planned(state: SearchState, event: TriesPlanned) -> SearchState:
    """What is tried next."""
    step = open_step(state)
    return _with(state, replace(state.algorithm, step=replace(step, tries=(*step.tries, *event.tries))))


def ranked(state: SearchState, event: EditsRanked) -> SearchState:
    """What the screen left over; what it dropped is remembered, and how many turned tasks varied."""
    step, algorithm = open_step(state), state.algorithm
    again = algorithm.again + sum(credit.again for credit in event.credits)
    varied = algorithm.varied + sum(len(credit.varied) for credit in event.credits)
    fickle = algorithm.fickle.union(*(credit.varied for credit in event.credits))
    state = _with(state, replace(algorithm, again=again, varied=varied, fickle=fickle))
    untried = {credit.edit for credit in event.credits if not credit.tries}
    given = {credit.edit: credit for credit in event.credits}
    dropped = [
        edit
        for edit in [change[-1] for change in step.changes]
        if edit.id in event.pool and edit.id not in event.chosen and edit.id not in untried
        if edit.source != PRUNING  # nobody has to know
    ]
    for edit in dropped:
        credit = given.get(edit.id, Credit(edit=edit.id))
        perhaps = bool(credit.fixed) and not credit.broke  # it may be given once more
        state = _remembered(state, [edit], why_dropped(credit.fixed, credit.broke), alone=not perhaps)
    return _with(state, replace(state.algorithm, step=replace(step, ranked=event)))


def gated(state: SearchState, event: CandidateGated) -> SearchState:
    """The verdict ends the step: what was taken is what the screened items are known by, the rest is remembered."""
    step, verdict = open_step(state), event.verdict
    edits = kept_edits(step)
    if not verdict.taken:
        types = frozenset(state.types[item] for item in verdict.lost if state.types.get(item))
        of_types = f" of {', '.join(sorted(types))}" if types else ""
        lost = f"validation lost {len(verdict.lost)} tasks{of_types} and won {len(verdict.won)}"
        saved = _without_suspects(state, edits, verdict)
        refused = [edit for edit in edits if edit not in {each.edit for each in saved}]
        state = _remembered(state, refused, lost, alone=len(edits) == 1)
        return _closed(_with(state, replace(state.algorithm, saved=saved, lost=types)))
    algorithm, built = state.algorithm, waiting(state)
    chosen = {edit.id for edit in edits}
    for index, change in enumerate(step.changes):
        if all(edit.id in chosen for edit in change):
            for tries in step.tries:
                if tries.place == step.screen(index):
                    algorithm = _knowing(algorithm, state.rollouts.get(step.screen(index).drawn(tries.draw), {}))
    wrote = _lines_written(state, built, edits)
    new = [
        replace(_kept(state, step, change), lines=wrote.get(change[-1].id) or _filled(change[-1].content))
        for change in step.changes
        if change[-1].id in chosen and change[-1].content
    ]
    candidate = built.candidate
    there = {file: frozenset(_filled(text)) for file, text in candidate.files.items()}
    kept = tuple(
        each
        for each in (*algorithm.kept, *new)  # an edit that was chosen may not have found its target any more
        if there.get(each.edit.file or candidate.main, frozenset()).issuperset(each.lines)
    )
    gone = [each for each in algorithm.kept if each not in kept]
    out = {line for edit in edits if edit.source == PRUNING for line in _filled(edit.target)}
    narrow = [each.edit for each in gone if out.isdisjoint(each.lines)]
    state = _remembered(_with(state, algorithm), narrow, TOO_NARROW)
    shown = {name for edit in edits if edit.source == "examples" for name in step.group_of((edit,)).items}
    algorithm = replace(state.algorithm, kept=kept, lost=frozenset(), examples=state.algorithm.examples | shown)
    return _closed(_with(state, algorithm))


def _lines_written(state: SearchState, built: CandidateBuilt, edits: Iterable[Edit]) -> dict[str, tuple[str, ...]]:
    """The lines of a candidate that each of its edits wrote, by the edit's name; of a changed word, the whole line."""
    before = state.current.skill
    origin = Origin(reports=built.reports, proposals={edit.id: edit for edit in edits}, gaps_closed=built.gaps_closed)
    makers = {file: ("",) * len(lines_of(text)) for file, text in before.files.items()}
    for change in changes(before, built.candidate, origin):
        own = [maker for source in change.sources for maker in makers[source]]
        makers[change.file] = carried(own, change, next(iter(change.made_by), ""))
    found: dict[str, tuple[str, ...]] = {}
    for file, text in built.candidate.files.items():
        for maker, line in zip(makers[file], lines_of(text), strict=True):
            if line.strip():
                found[maker] = (*found.get(maker, ()), line.strip())
    return found


def _filled(text: str) -> tuple[str, ...]:
    """The lines of a text, but for blank ones."""
    return tuple(line.strip() for line in lines_of(text) if line.strip())


def _kept(state: SearchState, step: OpenStep, change: Change) -> Kept:
    group, edit = step.group_of(change), change[-1]
    fixed = _shown_of(state, group, next((each.fixed for each in step.credits if each.edit == edit.id), ()))
    return Kept(
        step=step.number, edit=edit, items=fixed, place=Place(group.place), types=types_of(state, group.place, fixed)
    )


def _shown_of(state: SearchState, group: Minibatch, items: Iterable[str]) -> tuple[str, ...]:
    """Those of the tasks that the optimizer was shown for it: of others nobody can ask as they were without it."""
    rows: Mapping[str, RolloutCompleted] = state.rollouts.get(group.place, {})
    return tuple(item for item in items if item in rows)


def _without_suspects(state: SearchState, edits: Iterable[Edit], verdict: GateVerdict) -> tuple[Saved, ...]:
    """
    The edits of a refused candidate that are worth another try without the others, each once.

    Under suspicion are those that speak of a type that lost or are for tasks of it, those that are for no tasks in
    particular, and lines that were tried without: they have fixed nothing. Where there are none, the one that is for
    most tasks, or says most, is, unless the target varies: then nothing may be wrong with any. Where solved training
    tasks of the lost types can tell, nobody is under suspicion of several.
    """
    step = open_step(state)
    before = {each.edit.content for each in step.recalled}
    lost = {state.types[item] for item in verdict.lost if item in state.types}
    told = checks_together(state) and bool(lost & solved_types(state))
    rows = []
    for edit in edits:
        group = step.group_of((edit,))
        fixed = _shown_of(state, group, next((each.fixed for each in step.credits if each.edit == edit.id), ()))
        suspected = not edit.claims or bool(lost & types_of(state, group.place, fixed))
        suspected = suspected or any(names_type(edit.content, kind) for kind in lost)
        suspected = edit.source == PRUNING or (suspected and not (told and len(step.chosen) > 1))
        rows.append((suspected, Saved(edit=edit, items=fixed, place=Place(group.place))))
    nobody = not state.algorithm.varied and not any(suspected for suspected, _ in rows)
    if rows and nobody and (len(rows) == 1 or not told):
        worst = max(range(len(rows)), key=lambda at: (len(rows[at][1].edit.claims), len(rows[at][1].edit.content)))
        rows[worst] = (True, rows[worst][1])
    return tuple(each for suspected, each in rows if not suspected and each.items and each.edit.content not in before)


def skipped(state: SearchState, event: StepSkipped) -> SearchState:
    """No candidate reached the gate."""
    return _closed(
        _remembered(state, kept_edits(open_step(state)), "it was too much, or nobody vouches for what it rests on")
    )


def _remembered(
    state: SearchState, edits: list[Edit] | tuple[Edit, ...], why: str, *, alone: bool = True
) -> SearchState:
    """What was refused; nobody is to find another idea in the place of examples, so those are only counted."""
    step, algorithm = open_step(state), state.algorithm
    shown = [edit for edit in edits if edit.source == "examples"]
    new = tuple(
        Tried(step=step.number, edit=edit, why=why, types=_types_behind(state, step, edit), alone=alone)
        for edit in edits
        if edit not in shown
    )
    tried, spoiled = (*algorithm.tried, *new)[-_MOST_TRIED:], algorithm.spoiled + len(shown)
    return _with(state, replace(algorithm, tried=tried, spoiled=spoiled))


def _types_behind(state: SearchState, step: OpenStep, edit: Edit) -> frozenset[str]:
    found = [types_of(state, group.place, edit.claims) for group in step.groups if group.id in edit.origins]
    found += [each.types for each in state.algorithm.kept if each.edit == edit]
    return frozenset(kind for types in found for kind in types)


def _closed(state: SearchState) -> SearchState:
    step, algorithm = open_step(state), state.algorithm
    form = asked_form(state)
    before = algorithm.forms.get(form, Earned())
    groups = {group.id for group in step.groups if group.kind == "failure" and not is_recalled(group)}
    kept = sum(bool(groups.intersection(edit.origins)) for edit in kept_edits(step))
    forms = {**algorithm.forms, form: Earned(before.asked + len(groups), before.kept + kept)}
    return _with(state, replace(algorithm, step=None, forms=forms))


def resumed(state: SearchState, event: RunResumed) -> SearchState:
    """Questions that nobody answered are asked again."""
    step = state.algorithm.step
    if step is None or state.paused is None or state.paused.reason != "optimizer":
        return state
    answered = {name: patch for name, patch in step.patches.items() if patch.result != "failed"}
    return _with(state, replace(state.algorithm, step=replace(step, patches=answered)))


def retracted(state: SearchState, event: EvidenceRetracted) -> SearchState:
    """What is no evidence is not tried in the open step, is no longer known, and is shown beside no other task."""
    algorithm, step = state.algorithm, state.algorithm.step
    if step is not None and event.place in ("", step.place.in_batch(0)):
        step = replace(step, batch=replace(step.batch, items=without_items(step.batch.items, event.items)))
    algorithm = replace(algorithm, step=step)
    algorithm = _without_place(state, algorithm, event) if event.place else _without_items(algorithm, event.items)
    return _with(state, algorithm)


def _without_place(state: SearchState, algorithm: Search, event: EvidenceRetracted) -> Search:
    """
    What some items came to at one place is no evidence; what they came to elsewhere stays.

    A fork begins before the step that tried them there: what has been drawn, kept or saved so far is of other places.
    """
    barred = {**algorithm.barred, event.place: (*algorithm.barred.get(event.place, ()), *event.items)}
    return _not_knowing(
        algorithm, [item for item in event.items if algorithm.at.get(item) == event.place], barred=barred
    )


def _without_items(algorithm: Search, items: tuple[str, ...]) -> Search:
    """Items that are no evidence at all: nothing is known of them any more."""
    return _not_knowing(
        replace(
            algorithm,
            drawn={item: found for item, found in algorithm.drawn.items() if item not in items},
            repeated={at: found for at, found in algorithm.repeated.items() if at[0] not in items},
            # In their order and number: open questions name kept edits by it.
            kept=tuple(replace(each, items=without_items(each.items, items)) for each in algorithm.kept),
            saved=tuple(each for each in algorithm.saved if without_items(each.items, items) == each.items),
        ),
        items,
        barred=algorithm.barred,
    )


def _not_knowing(algorithm: Search, items: Collection[str], *, barred: Mapping[str, tuple[str, ...]]) -> Search:
    """A result, its text and its place are known together, or none of them is."""
    return replace(
        algorithm,
        barred=barred,
        known={item: found for item, found in algorithm.known.items() if item not in items},
        under={item: skill for item, skill in algorithm.under.items() if item not in items},
        at={item: place for item, place in algorithm.at.items() if item not in items},
    )
