"""
The rounds of a step: what each change is tried on alone, what is drawn again, and what is asked about once more.

Pure functions of the state. A step's batch is tried once. Its failing tasks are asked about; each change that comes of
that is tried alone, on the current text and what earlier rounds have kept. What is not fixed then is asked about again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from skillopt_es.engine.tasks import Evaluation, RunData, chunks, draw_seed, shuffled
from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.places import Place
from skillopt_es.events.values import Measured, Minibatch, SkillTree, Tries
from skillopt_es.programs.search.budget import most_tries, spare_tries
from skillopt_es.programs.search.credit import Results, Screened, share_of_luck
from skillopt_es.programs.search.state import OpenStep, SearchState, open_step
from skillopt_es.skill.edits import apply_edits

TASKS = 3
"""Of what an edit claims: enough to tell whether it does anything."""
_PASSING = 2  # solved tasks beside the failing ones of a question
_BESIDE = 2  # that pass, for an edit that is for many
_AT_FIRST = 6  # drawn again before anybody knows whether the target varies: enough, if none does
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
    return {
        index: Screened(results=_results(state, run, index), share=share, fickle=state.program.fickle)
        for index in range(len(step.alone))
        if earlier is None or step.round_of(index) < earlier
    }


def luck_so_far(state: SearchState, run: RunData) -> float:
    """The share of turned tasks that turn by luck: from this step's draws, and those of all steps before."""
    step, program = open_step(state), state.program
    again, varied = program.again, program.varied
    for index in range(len(step.alone)):
        found = Screened(results=_results(state, run, index))
        again, varied = again + found.again, varied + len(found.varied)
    return share_of_luck(again, varied)


def _results(state: SearchState, run: RunData, index: int) -> dict[str, Results]:
    """The draws of each task that a change was tried on, and of the same task without it."""
    step, known = open_step(state), state.program.known
    at = step.place.in_batch(step.round_of(index))
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
    for index, built in enumerate(step.alone):
        if step.screen(index) == place:
            return built.candidate
    assert place.batch is not None
    return ground(state, run, place.batch)


def next_tries(state: SearchState, run: RunData) -> tuple[Tries, ...]:
    """What has to be tried before anybody can say what the changes so far are worth, or before more is asked."""
    return _first_tries(state, run) or _second_tries(state, run) or _tries_for_round(state, run)


def _first_tries(state: SearchState, run: RunData) -> tuple[Tries, ...]:
    """
    Each change alone, on one task that it is to fix; then on another, while none has come out better.

    One that is for many tasks meets some that pass as well.
    """
    step, draw = open_step(state), _next_draw(state)
    found = screened(state, run)
    used = sum(len(tries.items) for tries in step.tries)
    most, spare = most_tries(len(step.batch.items)) - used, spare_tries(state, run)
    wanted: list[Tries] = []
    for index, built in enumerate(step.alone):
        items = _items_for(state, run, index, found[index])
        if built.candidate.hash != built.parent and items:
            wanted.append(Tries(place=step.screen(index), items=items, draw=draw))
    room = max(0, most if spare is None else min(most, spare))
    return tuple(tries for at, tries in enumerate(wanted) if sum(len(each.items) for each in wanted[: at + 1]) <= room)


def _items_for(state: SearchState, run: RunData, index: int, found: Screened) -> tuple[str, ...]:
    """What a change is tried on next; nothing when it has had its tasks, or has made one better."""
    step = open_step(state)
    tried = {item for tries in step.tries if tries.place == step.screen(index) for item in tries.items}
    aim, beside = _tasks_for(state, run, index)
    waiting = [item for item in aim if item not in tried]
    if not tried:
        return (*waiting[:1], *beside)
    return () if found.better else tuple(waiting[:1])


def _tasks_for(state: SearchState, run: RunData, index: int) -> tuple[Sequence[str], Sequence[str]]:
    """The tasks that tell what a change is worth: some to fix, and for one that is for many, some that pass."""
    step = open_step(state)
    edit = step.changes[index][-1]
    group = next(group for group in step.groups if group.id in edit.origins)
    failing, _ = parted(state, run, group)
    if edit.claims and 2 * len(edit.claims) <= max(2, len(failing)):
        return edit.claims[:TASKS], ()
    passing = [item for item in run.started.splits.train if solved(state, run, item)]
    beside = shuffled(passing, step.batch.seed)[:_BESIDE]
    return (edit.claims or shuffled(failing, step.batch.seed))[:TASKS], beside


def _next_draw(state: SearchState) -> int:
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
    places, draw = dict.fromkeys(place for place, _ in pairs), _next_draw(state)
    return tuple(
        Tries(place=place, items=tuple(item for at, item in pairs if at == place), draw=draw) for place in places
    )


def _most_telling(state: SearchState, run: RunData, index: int, found: Screened) -> tuple[Place | None, str]:
    """Where a change is tried once more, and on what."""
    step = open_step(state)
    without, alone = step.place.in_batch(step.round_of(index)), step.screen(index)
    for item in _tasks_for(state, run, index)[0]:
        if not _planned(step, alone, item):
            return alone, item
    for item in sorted(found.better, key=lambda item: -found.results[item].evidence):
        draws = {without: 1 + _planned(step, without, item), alone: _planned(step, alone, item)}
        place = min(draws, key=lambda place: draws[place])
        if draws[place] < MOST_DRAWS:
            return place, item
    return None, ""


def _planned(step: OpenStep, place: Place, item: str) -> int:
    """How often a task was to be tried at a place; a try that could not be measured counts, too."""
    return sum(tries.place == place and item in tries.items for tries in step.tries)


# --- what is asked next ----------------------------------------------------------------------------------------------


def parted(state: SearchState, run: RunData, group: Minibatch) -> tuple[list[str], list[str]]:
    """The items of a group that failed, and those that passed."""
    rows = state.rollouts[group.place]
    failing = [item for item in group.items if not _passed(rows.get(item), run)]
    return failing, [item for item in group.items if item not in failing]


def _passed(row: RolloutCompleted | None, run: RunData) -> bool:
    return row is not None and isinstance(row.outcome, Measured) and run.passes(row.outcome)


def left_over(state: SearchState, run: RunData) -> tuple[str, ...]:
    """The failing tasks of the batch that one more round is worth: no change of an earlier one has fixed them."""
    step = open_step(state)
    number, at = len(step.rounds), step.place.in_batch(0)
    rows = rows_at(state, at)
    failing = [item for item in step.batch.items if _measured(rows.get(item)) and not _passed(rows.get(item), run)]
    if not number:
        return tuple(failing)
    found = screened(state, run)
    if number >= run.config.search.rounds or not any(
        each.won for index, each in found.items() if step.round_of(index) == number - 1
    ):
        return ()
    fixed = _fixed(state, run, found)
    again = rows_at(state, step.place.in_batch(number))
    return tuple(item for item in failing if item not in fixed and not _passed(again.get(item), run))


def _measured(row: RolloutCompleted | None) -> bool:
    return row is not None and isinstance(row.outcome, Measured)


def _fixed(state: SearchState, run: RunData, found: Mapping[int, Screened]) -> set[str]:
    """The tasks that pass with a change that is kept, and those that such a one claims and did not have to be tried."""
    step = open_step(state)
    fixed: set[str] = set()
    for index, each in found.items():
        if not each.won:
            continue
        fixed.update(item for item in step.changes[index][-1].claims if item not in each.results)
        fixed.update(item for item in each.better if _passed(_row_alone(state, index, item), run))
    return fixed


def _row_alone(state: SearchState, index: int, item: str) -> RolloutCompleted | None:
    """The first result of a task with a change alone."""
    step = open_step(state)
    at = step.screen(index)
    for tries in step.tries:
        if tries.place == at and item in tries.items:
            return rows_at(state, at.drawn(tries.draw)).get(item)
    return None


def _tries_for_round(state: SearchState, run: RunData) -> tuple[Tries, ...]:
    """What kept changes have touched and not fixed is tried again, with all of them, before more is asked about it."""
    step = open_step(state)
    number, waiting = len(step.rounds), left_over(state, run)
    at = step.place.in_batch(number)
    touched = {item for each in screened(state, run).values() if each.won for item in each.results}
    items = tuple(item for item in waiting if item in touched)
    spare = spare_tries(state, run)
    if not number or not items or any(tries.place == at for tries in step.tries):
        return ()
    if spare is not None and spare < len(items) + 1:
        return ()
    return (Tries(place=at, items=items),)


def groups_to_ask(state: SearchState, run: RunData) -> tuple[Minibatch, ...]:
    """The failing tasks in groups of about the same size, a few solved ones beside each; none when all is asked."""
    step = open_step(state)
    number, waiting = len(step.rounds), left_over(state, run)
    spare = spare_tries(state, run)
    if number and spare is not None and spare < 2 * len(waiting):
        return ()
    again = rows_at(state, step.place.in_batch(number))
    groups: list[Minibatch] = []
    for batch in dict.fromkeys((0, number)):
        at = step.place.in_batch(batch)
        items = [item for item in waiting if (batch == 0) != (number > 0 and item in again)]
        groups += _grouped(state, run, at, items, number)
    return tuple(groups)


def _grouped(state: SearchState, run: RunData, at: Place, items: Sequence[str], number: int) -> list[Minibatch]:
    rows = rows_at(state, at)
    # Tasks of one type stand together: several examples say more of a rule than one.
    failing = sorted(items, key=lambda item: rows[item].task_type)
    passing = [item for item, row in rows.items() if _passed(row, run)][:_PASSING]
    if not failing:
        return []
    size = run.config.gradient.minibatch_size
    even = ceil(len(failing) / ceil(len(failing) / size))
    kind = "failure" if not number else f"failure-{number + 1}"
    return [
        Minibatch(id=at.analyst(kind, index), kind="failure", place=at, items=(*chunk, *passing))
        for index, chunk in enumerate(chunks(failing, even))
    ]
