"""
What is asked about next in a step: its failing tasks in groups, then in further rounds what nothing kept has touched.

Pure functions of the state.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from skillopt_es.algorithms.search.budget import spare_tries
from skillopt_es.algorithms.search.results import passed, rows_at, screened, untouched
from skillopt_es.algorithms.search.state import Kept, SearchState, anew_at, open_step, recalled_at
from skillopt_es.config import RunConfig
from skillopt_es.engine.draws import chunks
from skillopt_es.events.places import Place
from skillopt_es.events.values import Minibatch

_PASSING = 2  # solved tasks beside the failing ones of a question


def groups_to_ask(state: SearchState, config: RunConfig) -> tuple[Minibatch, ...]:
    """
    The failing tasks in groups of about the same size, each followed by the solved ones that are shown beside it.

    In a step's first round there are also the tasks of edits in whose place another is wanted, and of saved edits.
    """
    step = open_step(state)
    number, waiting = len(step.rounds), left_over(state, config)
    spare = spare_tries(state, config)
    if number and spare is not None and spare < 2 * len(waiting):
        return ()
    groups = _grouped(state, config, step.place.in_batch(0), waiting, number)
    if not number:
        groups += _groups_anew(state, config)
        groups += _groups_saved(state) if config.search.backlog else []
    return tuple(groups)


def left_over(state: SearchState, config: RunConfig) -> tuple[str, ...]:
    """
    The failing tasks of the batch that the next round asks about: all in the first, then what nothing kept has touched.

    What is better than it was has to be tried with all that was kept, before anybody can learn more from it.
    """
    step = open_step(state)
    number = len(step.rounds)
    if number:
        won = {index: each for index, each in screened(state, config).items() if each.won and not each.deletes}
        last = any(step.round_of(index) == number - 1 for index in won)
        shown = any(step.group_of(step.changes[index]).kind == "examples" for index in won)  # which touch every task
        if number >= config.search.rounds or not last or shown:
            return ()
    return untouched(state, config, number)


def _grouped(state: SearchState, config: RunConfig, at: Place, items: Sequence[str], number: int) -> list[Minibatch]:
    rows = rows_at(state, at)
    # Tasks of one type stand together: several examples say more of a rule than one.
    failing = sorted(items, key=lambda item: rows[item].task_type)
    if not failing:
        return []
    size = config.gradient.minibatch_size
    even = ceil(len(failing) / ceil(len(failing) / size))
    kind = "failure" if not number else f"failure-{number + 1}"
    groups: list[Minibatch] = []
    for index, chunk in enumerate(chunks(failing, even)):
        types = {rows[item].task_type for item in chunk}
        passing = [item for item, row in rows.items() if passed(row, config)]
        passing.sort(key=lambda item: rows[item].task_type not in types)
        group = Minibatch(id=at.analyst(kind, index), kind="failure", place=at, items=(*chunk, *passing[:_PASSING]))
        groups += [group, *_beside(state, config, group, types)]
    return groups


def _beside(state: SearchState, config: RunConfig, group: Minibatch, types: set[str]) -> list[Minibatch]:
    """Solved tasks of the types of a group's failing ones that were tried elsewhere: one rule has to fit both."""
    at: dict[Place, list[str]] = {}
    for item, place in state.algorithm.at.items():
        row = rows_at(state, place).get(item)
        if (
            row is None
            or place == group.place
            or item in group.items
            or sum(map(len, at.values())) == config.search.beside
        ):
            continue
        if row.task_type and row.task_type in types and passed(row, config):
            at.setdefault(place, []).append(item)
    return [
        Minibatch(id=f"{group.id}-beside-{number}", kind="success", place=place, items=tuple(items))
        for number, (place, items) in enumerate(at.items())
    ]


def _groups_anew(state: SearchState, config: RunConfig) -> list[Minibatch]:
    """The tasks of edits that have turned out to be too narrow, as they failed without them."""
    step = open_step(state)
    at = step.place.in_batch(0)
    return [
        Minibatch(id=anew_at(at, index), kind="failure", place=each.place, items=each.items)
        for index, each in too_narrow(state, config).items()
    ]


def too_narrow(state: SearchState, config: RunConfig) -> dict[int, Kept]:
    """
    The kept edits, by their number, that fixed tasks of types of which every validation task fails nevertheless.

    For each type so many others are asked for as `search.anew` says. One that most validation tasks have tells nothing.
    """
    measured = state.measured.get(state.current.skill.hash)
    if measured is None or not config.search.anew:
        return {}
    found = {}
    for index, each in enumerate(state.algorithm.kept):
        told = [item for item in measured.items if state.types.get(item) in each.types]
        told = [item for item in told if item not in state.flipped]  # what fails now and then says nothing
        few = 2 * len(told) <= len(measured.items)
        fails = bool(told) and not any(config.passes(measured.items[item]) for item in told)
        left = state.algorithm.asked_anew.get(each.types, 0) < config.search.anew
        rule = each.edit.op != "delete" and each.edit.source != "examples"
        if each.items and few and fails and left and rule:
            found[index] = each
    return found


def _groups_saved(state: SearchState) -> list[Minibatch]:
    """The tasks of edits that are tried again, by where they had failed."""
    at = open_step(state).place.in_batch(0)
    places: dict[Place, dict[str, None]] = {}
    for each in state.algorithm.saved:
        places.setdefault(each.place, {}).update(dict.fromkeys(each.items))
    return [
        Minibatch(id=recalled_at(at, number), kind="failure", place=place, items=tuple(items))
        for number, (place, items) in enumerate(places.items())
    ]
