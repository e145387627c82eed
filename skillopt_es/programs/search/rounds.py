"""
The rounds of a step: what each change is tried on alone, what is drawn again, and what is asked about once more.

Pure functions of the state. A step's batch is tried once. Its failing tasks are asked about; each change that comes of
that is tried alone, on the current text and what earlier rounds have kept. What is not fixed then is asked about again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil

from skillopt_es.engine.tasks import Evaluation, RunData, chunks, draw_seed, shuffled
from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.places import Place
from skillopt_es.events.values import Measured, Minibatch, SkillTree, Tries
from skillopt_es.programs.search.budget import most_tries, spare_tries
from skillopt_es.programs.search.credit import Results, Screened, share_of_luck
from skillopt_es.programs.search.state import (
    PRUNING,
    Kept,
    OpenStep,
    SearchState,
    anew_at,
    open_step,
    recalled_at,
    replaced_by,
)
from skillopt_es.projections.state import never_varies
from skillopt_es.skill.edits import apply_edits

TASKS = 3
"""Of what an edit claims: enough to tell whether it does anything."""
_PASSING = 2  # solved tasks beside the failing ones of a question
_BESIDE = 2  # that pass, for an edit that is for many
_AT_FIRST = 6  # drawn again before anybody knows whether the target varies: enough, if none does
DRAWS_TO_BLAME = 3
"""Of a solved task that fails under edits, before any of them is blamed; a coin fails them all once in eight times."""
MOST_DRAWS = 4
"""Of one task under one text, for the credit of an edit."""


def rows_at(state: SearchState, place: Place) -> Mapping[str, RolloutCompleted]:
    """What was tried at a place, by item."""
    return state.rollouts.get(place, {})


def solved(state: SearchState, run: RunData, item: str) -> bool:
    """Whether something on the way to the current skill has passed a training item."""
    known = state.program.known.get(item)
    return known is not None and run.passes(known)


def ground(state: SearchState, run: RunData, number: int) -> SkillTree:
    """What the changes of a round are tried on: the current skill with all that earlier rounds have kept."""
    assert state.current is not None
    step = open_step(state)
    found = screened(state, run, earlier=number)
    kept = [index for index, each in found.items() if each.won]
    edits = step.in_order(kept)
    return apply_edits(
        state.current.skill, edits, close_gaps=run.config.optimizer.close_gaps, pins=state.steering.pins
    )[0]


def screened(state: SearchState, run: RunData, *, earlier: int | None = None) -> dict[int, Screened]:
    """What each change has done alone, by its number; those of rounds before one, where one is named."""
    step = open_step(state)
    share = luck_so_far(state, run)
    numbers = [index for index in range(len(step.alone)) if earlier is None or step.round_of(index) < earlier]
    results = {index: _results(state, run, index) for index in numbers}
    fickle = state.program.fickle
    if run.config.search.version > 1:
        fickle = fickle.union(item for each in results.values() for item, found in each.items() if found.both_ways)
    return {
        index: Screened(
            results=results[index],
            share=share,
            fickle=fickle,
            deletes=step.changes[index][-1].source == PRUNING,
        )
        for index in numbers
    }


def luck_so_far(state: SearchState, run: RunData) -> float:
    """The share of turned tasks that turn by luck, from all further draws so far; none where nothing is drawn again."""
    if not run.config.search.draw_again:
        return 0.0
    return share_of_luck(*_again_so_far(state, run))


def _again_so_far(state: SearchState, run: RunData) -> tuple[int, int]:
    """How many further draws there were in the whole run, and how many tasks came out otherwise in them."""
    step, program = open_step(state), state.program
    again, varied = program.again, program.varied
    for index in range(len(step.alone)):
        found = Screened(results=_results(state, run, index))
        again, varied = again + found.again, varied + len(found.varied)
    return again, varied


def _results(state: SearchState, run: RunData, index: int) -> dict[str, Results]:
    """The draws of each task that a change was tried on, and of the same task as the optimizer was shown it."""
    step, known = open_step(state), state.program.known
    at = Place(step.group_of(step.changes[index]).place)
    without = _drawn(state, run, at)
    found = {}
    for item, after in _drawn(state, run, step.screen(index)).items():
        before = without.get(item, [])
        if item not in rows_at(state, at) and item in known:
            before = [run.worth(known[item].hard, known[item].soft), *before]
        if before:
            found[item] = Results(before=tuple(before), after=tuple(after))
    return found


def _drawn(state: SearchState, run: RunData, place: Place) -> dict[str, list[float]]:
    """What was measured of each task at a place, draw by draw."""
    step = open_step(state)
    found: dict[str, list[float]] = {}
    for draw in sorted({1, *(tries.draw for tries in step.tries if tries.place == place)}):
        for item, row in rows_at(state, place.drawn(draw)).items():
            if isinstance(row.outcome, Measured):
                found.setdefault(item, []).append(run.worth(row.outcome.hard, row.outcome.soft))
    return found


# --- what is tried next ----------------------------------------------------------------------------------------------


def evaluations(state: SearchState, run: RunData) -> list[Evaluation]:
    """All that was planned for the open step so far."""
    step = open_step(state)
    return [
        Evaluation(
            place=Place(tries.place).drawn(tries.draw),
            purpose="train",
            split="train",
            items=tries.items,
            skill=_text_at(state, run, Place(tries.place)),
            seed=draw_seed(run.config.train.seed, tries.draw),
            draw=tries.draw,
        )
        for tries in step.tries
    ]


def _text_at(state: SearchState, run: RunData, place: Place) -> SkillTree:
    step = open_step(state)
    assert state.current is not None
    if place == step.together:
        return ground(state, run, len(step.rounds))
    alone = {step.screen(index): built.candidate for index, built in enumerate(step.alone)}
    return alone.get(place, state.current.skill)


def next_tries(state: SearchState, run: RunData) -> tuple[Tries, ...]:
    """What has to be tried before anybody can say what the changes so far are worth."""
    return _first_tries(state, run) or _tries_without(state, run) or _second_tries(state, run)


def _first_tries(state: SearchState, run: RunData) -> tuple[Tries, ...]:
    """
    Each change alone, on one task that it is to fix; then on another, while none has come out better.

    One that is for many tasks meets some that pass as well.
    """
    step, draw = open_step(state), next_draw(state)
    found = screened(state, run)
    used = sum(len(tries.items) for tries in step.tries)
    asked = len({item for group in step.asked for item in group.items})
    shown = TASKS * any(group.kind == "examples" for group in step.asked)
    most, spare = most_tries(asked) + shown - used, spare_tries(state, run)
    wanted: list[Tries] = []
    for index, built in enumerate(step.alone):
        items = _items_for(state, run, index, found[index])
        if built.candidate.hash != built.parent and items:
            wanted.append(Tries(place=step.screen(index), items=items, draw=draw))
    room = max(0, most if spare is None else min(most, spare))
    return tuple(tries for at, tries in enumerate(wanted) if sum(len(each.items) for each in wanted[: at + 1]) <= room)


def _items_for(state: SearchState, run: RunData, index: int, found: Screened) -> tuple[str, ...]:
    """What a change is tried on next; nothing when it has had its tasks, or made more of them better than worse."""
    step = open_step(state)
    tried = tries_of(step, step.screen(index))
    aim, beside = _tasks_for(state, run, index)
    waiting = [item for item in aim if item not in tried]
    if not tried:
        return (*waiting[:1], *beside)
    return () if found.ahead else tuple(waiting[:1])


def tries_of(step: OpenStep, place: Place) -> set[str]:
    """The tasks that were planned at a place, whatever has become of it."""
    return {item for tries in step.tries if tries.place == place for item in tries.items}


def _tasks_for(state: SearchState, run: RunData, index: int) -> tuple[Sequence[str], Sequence[str]]:
    """The tasks that tell what a change is worth: some to fix, and for one that is for many, some that pass."""
    step = open_step(state)
    edit, group = step.changes[index][-1], step.group_of(step.changes[index])
    failing, _ = parted(state, run, group)
    if replaced_by(state.program, group) is not None:
        return failing[:TASKS], ()
    if edit.claims and 2 * len(edit.claims) <= max(2, len(failing)):
        return edit.claims[:TASKS], ()
    if group.kind == "examples":  # what stands in the text tells nothing about it
        number = step.round_of(index)
        failing = [item for item in untouched(state, run, number) if item not in group.items]
    shown = state.program.examples.union(group.items if group.kind == "examples" else ())
    passing = [item for item in run.started.splits.train if solved(state, run, item) and item not in shown]
    beside = known_first(state, run, shuffled(passing, step.batch.seed))[:_BESIDE]
    return (edit.claims or shuffled(failing, step.batch.seed))[:TASKS], beside


def known_first(state: SearchState, run: RunData, items: Iterable[str]) -> list[str]:
    """Tasks in their order, but first those that were tried under the current text: no older one speaks for them."""
    first = run.config.search.version > 1
    return sorted(items, key=lambda item: first and not known_without(state, item))


def known_without(state: SearchState, item: str) -> bool:
    """Whether it is known, or about to be, what a task comes to under the current text, not under an older one."""
    assert state.current is not None
    under, step = state.program.under.get(item), open_step(state)
    return under == state.current.skill.hash or item in tries_of(step, step.place.in_batch(0))


def fails_without(state: SearchState, run: RunData) -> frozenset[str]:
    """Solved tasks that failed under the current text when an edit seemed to break them."""
    at = open_step(state).place.in_batch(0)
    again = [rows_at(state, at.drawn(tries.draw)) for tries in open_step(state).tries if tries.place == at]
    return frozenset(item for rows in again for item, row in rows.items() if not passed(row, run))


def _tries_without(state: SearchState, run: RunData) -> tuple[Tries, ...]:
    """
    What tells whether an edit that has fixed something has broken what came out worse, one try for each such task.

    One that an older text had solved is tried under the current one, which may fail it as well. Where the target may
    vary it is tried again until the edit has failed it each time and the current text has passed it each time.
    """
    if run.config.search.version == 1:
        return ()
    step = open_step(state)
    now, wanted = step.place.in_batch(0), dict[Place, dict[str, None]]()
    for index, found in screened(state, run).items():
        alone, lucky = step.screen(index), may_vary(state, run)
        doubts: list[tuple[Place, str]] = []
        for item in found.worse:
            if not known_without(state, item):
                doubts.append((now, item))
            elif lucky and planned(step, alone, item) < DRAWS_TO_BLAME:
                doubts.append((alone, item))
            elif lucky and planned(step, now, item) < DRAWS_TO_BLAME - 1:
                doubts.append((now, item))
        if doubts and len(found.worse) - len(doubts) < len(found.better):  # else it is not ahead, whatever they tell
            place, item = doubts[0]
            wanted.setdefault(place, {})[item] = None
    spare = spare_tries(state, run)
    if spare is not None and spare < sum(map(len, wanted.values())):
        return ()
    draw = max(2, next_draw(state))
    return tuple(Tries(place=place, items=tuple(items), draw=draw) for place, items in wanted.items())


def may_vary(state: SearchState, run: RunData) -> bool:
    """Whether a solved task may have failed by luck: of that, the share of luck among what was mended tells little."""
    return run.config.search.draw_again and not never_varies(*_again_so_far(state, run))


def next_draw(state: SearchState) -> int:
    """The number of the next wave of tries: all draws of a place differ by it."""
    return 1 + max((tries.draw for tries in open_step(state).tries), default=0)


def _second_tries(state: SearchState, run: RunData) -> tuple[Tries, ...]:
    """
    For each change of which luck is not ruled out, one more try.

    That is another task that it is to fix; or else one that turned, once more under the text with fewer draws of it.
    """
    if not run.config.search.draw_again:
        return ()
    wanted: dict[Place, dict[str, None]] = {}
    for index, found in screened(state, run).items():
        if found.ahead and not found.won:
            place, item = _most_telling(state, run, index, found)
            if place is not None:
                wanted.setdefault(place, {})[item] = None
    pairs = [(place, item) for place, items in wanted.items() for item in items]
    pairs = pairs[: _AT_FIRST if state.program.again == 0 else len(pairs)]
    spare = spare_tries(state, run)
    if spare is not None and spare < len(pairs):
        return ()
    places, draw = dict.fromkeys(place for place, _ in pairs), next_draw(state)
    return tuple(
        Tries(place=place, items=tuple(item for at, item in pairs if at == place), draw=draw) for place in places
    )


def _most_telling(state: SearchState, run: RunData, index: int, found: Screened) -> tuple[Place | None, str]:
    """Where a change is tried once more, and on what."""
    step = open_step(state)
    group, alone = step.group_of(step.changes[index]), step.screen(index)
    # What was shown of an earlier step was tried under another text than the current one: that is not drawn again.
    without = [Place(group.place)] if step.place.holds(group.place) else []
    for item in _tasks_for(state, run, index)[0]:
        if not planned(step, alone, item):
            return alone, item
    for item in sorted(found.better, key=lambda item: -found.results[item].evidence):
        draws = {**{at: 1 + planned(step, at, item) for at in without}, alone: planned(step, alone, item)}
        place = min(draws, key=lambda place: draws[place])
        if draws[place] < MOST_DRAWS:
            return place, item
    return None, ""


def planned(step: OpenStep, place: Place, item: str) -> int:
    """How often a task was to be tried at a place; a try that could not be measured counts, too."""
    return sum(tries.place == place and item in tries.items for tries in step.tries)


# --- what is asked next ----------------------------------------------------------------------------------------------


def parted(state: SearchState, run: RunData, group: Minibatch) -> tuple[list[str], list[str]]:
    """The items of a group that failed, and those that passed."""
    rows = state.rollouts[group.place]
    failing = [item for item in group.items if not passed(rows.get(item), run)]
    return failing, [item for item in group.items if item not in failing]


def passed(row: RolloutCompleted | None, run: RunData) -> bool:
    """Whether a result was measured and counts as solved."""
    return row is not None and isinstance(row.outcome, Measured) and run.passes(row.outcome)


def left_over(state: SearchState, run: RunData) -> tuple[str, ...]:
    """
    The failing tasks of the batch that the next round asks about: all in the first, then what nothing kept has touched.

    What is better than it was has to be tried with all that was kept, before anybody can learn more from it.
    """
    step = open_step(state)
    number = len(step.rounds)
    if number:
        won = {index: each for index, each in screened(state, run).items() if each.won and not each.deletes}
        last = any(step.round_of(index) == number - 1 for index in won)
        shown = any(step.group_of(step.changes[index]).kind == "examples" for index in won)  # which touch every task
        if number >= run.config.search.rounds or not last or shown:
            return ()
    return untouched(state, run, number)


def untouched(state: SearchState, run: RunData, number: int) -> tuple[str, ...]:
    """The failing tasks of the batch that nothing kept before a round is known or said to have touched."""
    step = open_step(state)
    rows = rows_at(state, step.place.in_batch(0))
    failing = [item for item in step.batch.items if _measured(rows.get(item)) and not passed(rows.get(item), run)]
    found = {
        index: each for index, each in screened(state, run, earlier=number).items() if each.won and not each.deletes
    }
    touched = {item for index, each in found.items() for item in each.better}
    touched |= {
        item for index, each in found.items() for item in step.changes[index][-1].claims if item not in each.results
    }
    return tuple(item for item in failing if item not in touched)


def _measured(row: RolloutCompleted | None) -> bool:
    return row is not None and isinstance(row.outcome, Measured)


def groups_to_ask(state: SearchState, run: RunData) -> tuple[Minibatch, ...]:
    """
    The failing tasks in groups of about the same size, each followed by the solved ones that are shown beside it.

    In a step's first round there are also the tasks of edits in whose place another is wanted, and of saved edits.
    """
    step = open_step(state)
    number, waiting = len(step.rounds), left_over(state, run)
    spare = spare_tries(state, run)
    if number and spare is not None and spare < 2 * len(waiting):
        return ()
    groups = _grouped(state, run, step.place.in_batch(0), waiting, number)
    if not number:
        groups += _groups_anew(state, run)
        groups += _groups_saved(state) if run.config.search.backlog else []
    return tuple(groups)


def _grouped(state: SearchState, run: RunData, at: Place, items: Sequence[str], number: int) -> list[Minibatch]:
    rows = rows_at(state, at)
    # Tasks of one type stand together: several examples say more of a rule than one.
    failing = sorted(items, key=lambda item: rows[item].task_type)
    if not failing:
        return []
    size = run.config.gradient.minibatch_size
    even = ceil(len(failing) / ceil(len(failing) / size))
    kind = "failure" if not number else f"failure-{number + 1}"
    groups: list[Minibatch] = []
    for index, chunk in enumerate(chunks(failing, even)):
        types = {rows[item].task_type for item in chunk}
        passing = [item for item, row in rows.items() if passed(row, run)]
        passing.sort(key=lambda item: rows[item].task_type not in types)
        group = Minibatch(id=at.analyst(kind, index), kind="failure", place=at, items=(*chunk, *passing[:_PASSING]))
        groups += [group, *_beside(state, run, group, types)]
    return groups


def _beside(state: SearchState, run: RunData, group: Minibatch, types: set[str]) -> list[Minibatch]:
    """Solved tasks of the types of a group's failing ones that were tried elsewhere: one rule has to fit both."""
    at: dict[Place, list[str]] = {}
    for item, place in state.program.at.items():
        row = rows_at(state, place).get(item)
        if (
            row is None
            or place == group.place
            or item in group.items
            or sum(map(len, at.values())) == run.config.search.beside
        ):
            continue
        if row.task_type and row.task_type in types and passed(row, run):
            at.setdefault(place, []).append(item)
    return [
        Minibatch(id=f"{group.id}-beside-{number}", kind="success", place=place, items=tuple(items))
        for number, (place, items) in enumerate(at.items())
    ]


def _groups_anew(state: SearchState, run: RunData) -> list[Minibatch]:
    """The tasks of edits that have turned out to be too narrow, as they failed without them."""
    step = open_step(state)
    at = step.place.in_batch(0)
    return [
        Minibatch(id=anew_at(at, index), kind="failure", place=each.place, items=each.items)
        for index, each in too_narrow(state, run).items()
    ]


def too_narrow(state: SearchState, run: RunData) -> dict[int, Kept]:
    """
    The kept edits, by their number, that fixed tasks of types of which every validation task fails nevertheless.

    For each type so many others are asked for as `search.anew` says. One that most validation tasks have tells nothing.
    """
    assert state.current is not None
    measured = state.measured.get(state.current.skill.hash)
    if measured is None or not run.config.search.anew:
        return {}
    found = {}
    for index, each in enumerate(state.program.kept):
        told = [item for item in measured.items if state.types.get(item) in each.types]
        if run.config.search.version > 1:  # what fails now and then says nothing
            told = [item for item in told if item not in state.flipped]
        few = 2 * len(told) <= len(measured.items)
        fails = bool(told) and not any(run.passes(measured.items[item]) for item in told)
        left = state.program.asked_anew.get(each.types, 0) < run.config.search.anew
        rule = each.edit.op != "delete" and each.edit.source != "examples"
        if each.items and few and fails and left and rule:
            found[index] = each
    return found


def _groups_saved(state: SearchState) -> list[Minibatch]:
    """The tasks of edits that are tried again, by where they had failed."""
    at = open_step(state).place.in_batch(0)
    places: dict[Place, dict[str, None]] = {}
    for each in state.program.saved:
        places.setdefault(each.place, {}).update(dict.fromkeys(each.items))
    return [
        Minibatch(id=recalled_at(at, number), kind="failure", place=place, items=tuple(items))
        for number, (place, items) in enumerate(places.items())
    ]
