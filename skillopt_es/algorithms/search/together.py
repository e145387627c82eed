"""
What all kept edits do together: before the gate they meet solved tasks, and who breaks one is found out.

An edit is tried alone on tasks that it is for, so one that is right for these and speaks of every other task as well
looks like any other. Together with it a dozen good ones would be refused. Pure functions of the state.
"""

from __future__ import annotations

from collections.abc import Mapping

from skillopt_es.algorithms.search.budget import spare_tries
from skillopt_es.algorithms.search.groups import groups_to_ask
from skillopt_es.algorithms.search.results import (
    fails_without,
    ground,
    known_without,
    may_vary,
    measured,
    passed,
    planned,
    rows_at,
    screened,
    solved,
    tries_of,
)
from skillopt_es.algorithms.search.state import SearchState, open_step
from skillopt_es.algorithms.search.tries import DRAWS_TO_BLAME, next_draw, next_tries
from skillopt_es.config import RunConfig
from skillopt_es.engine.draws import shuffled
from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.places import Place
from skillopt_es.events.values import Measured, Tries

_MOST_LOST = 6  # types that lost at the gate, each a try


def tries_to_plan(state: SearchState, config: RunConfig) -> tuple[Tries, ...]:
    """What is tried next: of single changes, and when nothing is left to be asked, of all that are kept."""
    alone = next_tries(state, config)
    return alone if alone or groups_to_ask(state, config) else _together(state, config)


def _together(state: SearchState, config: RunConfig) -> tuple[Tries, ...]:
    """Solved tasks under all kept edits; a broken one once more where luck may have done it, then under each edit."""
    step, draw, kept = open_step(state), next_draw(state), _kept(state, config)
    if not config.search.together or not kept:
        return ()
    if not tries_of(step, step.together):
        items = _solved(state, config)
        places = [step.together] if len(kept) > 1 else [step.screen(kept[0])]
        if any(tries_of(step, place) & set(items) for place in places):
            return ()
        return _affordable(state, config, [Tries(place=place, items=items, draw=draw) for place in places if items])
    again = _broken_before(state, config)
    if again:
        return _affordable(state, config, [Tries(place=step.together, items=again, draw=draw)])
    return _affordable(state, config, _one_explained(state, config, kept))


def _one_explained(state: SearchState, config: RunConfig, kept: list[int]) -> list[Tries]:
    """What is tried next about the first broken task of which nobody knows yet who breaks it."""
    found = screened(state, config)
    # What was dropped explains nothing of what is kept.
    culprits = [index for index, each in found.items() if index in kept and each.better and each.worse]
    waiting = (
        _to_explain(state, config, item, draws, culprits, kept)
        for item, draws in _broken(state, config).items()
        if not any(item in found[index].worse for index in culprits)
    )
    return next(filter(None, waiting), [])


def _to_explain(
    state: SearchState, config: RunConfig, item: str, draws: int, culprits: list[int], kept: list[int]
) -> list[Tries]:
    """
    What tells who breaks a task: whom another broken task has told already, luck, the current text, or who is kept.

    Nobody is blamed for a task that passes under all edits when it is drawn again, or fails without any.
    """
    step, draw, now = open_step(state), next_draw(state), open_step(state).place.in_batch(0)
    known = [step.screen(index) for index in culprits if item not in tries_of(step, step.screen(index))]
    if known:
        return [Tries(place=place, items=(item,), draw=draw) for place in known]
    lucky = may_vary(state, config)
    if lucky and draws < DRAWS_TO_BLAME:
        return [Tries(place=step.together, items=(item,), draw=draw)]
    if not known_without(state, item) or (lucky and planned(step, now, item) < DRAWS_TO_BLAME - 1):
        return [Tries(place=now, items=(item,), draw=max(2, draw))]
    return _suspects(state, kept, item, draw)


def _suspects(state: SearchState, kept: list[int], item: str, draw: int) -> list[Tries]:
    """
    A broken task under each kept edit alone, round by round until one has broken it.

    What a later round has brought was tried on the edits of the rounds before, and breaks what these do.
    """
    step = open_step(state)
    for number in range(len(step.rounds)):
        places = [step.screen(index) for index in kept if step.round_of(index) == number]
        waiting = [place for place in places if item not in tries_of(step, place)]
        if waiting:
            return [Tries(place=place, items=(item,), draw=draw) for place in waiting]
        if any(step.round_of(index) == number and index not in kept for index in _meeting(state, item)):
            return []
    return []


def _meeting(state: SearchState, item: str) -> list[int]:
    """The changes that a task was tried under, each alone."""
    step = open_step(state)
    return [index for index in range(len(step.alone)) if item in tries_of(step, step.screen(index))]


def _kept(state: SearchState, config: RunConfig) -> list[int]:
    return [index for index, found in screened(state, config).items() if found.won]


def _solved(state: SearchState, config: RunConfig) -> tuple[str, ...]:
    """
    Solved tasks of as many types as can be, none that has come out in two ways, drawn with the step's seed.

    First those of which validation lost tasks when a candidate was refused: they tell which edit was to blame.
    """
    algorithm, step = state.algorithm, open_step(state)
    known = [item for item in state.started.splits.train if solved(state, config, item)]
    clean = [item for item in known if item not in algorithm.fickle and item not in algorithm.examples]
    by_type: dict[str, str] = {}
    for item in shuffled(clean, step.batch.seed):
        row = rows_at(state, algorithm.at[item]).get(item) if item in algorithm.at else None
        by_type.setdefault(item if row is None else row.task_type or item, item)
    lost = [kind for kind in by_type if kind in algorithm.lost]
    first = dict.fromkeys([*lost, *by_type])
    return tuple(by_type[kind] for kind in first)[: max(config.search.together, min(len(lost), _MOST_LOST))]


def _broken_before(state: SearchState, config: RunConfig) -> tuple[str, ...]:
    """The tasks that failed under all kept edits when there were others, and that nobody has tried under these."""
    step = open_step(state)
    text = ground(state, config, len(step.rounds)).hash
    rows = [row for tries in step.tries for row in _rows_together(state, tries)]
    if len({row.skill for row in rows}) != 1 or rows[-1].skill == text or may_vary(state, config):
        return ()
    last = [row for row in rows if row.skill == rows[-1].skill and measured(row) and not passed(row, config)]
    fails = fails_without(state, config)
    return tuple(dict.fromkeys(row.item for row in last if row.item not in fails))


def _rows_together(state: SearchState, tries: Tries) -> tuple[RolloutCompleted, ...]:
    if tries.place != open_step(state).together:
        return ()
    return tuple(rows_at(state, Place(tries.place).drawn(tries.draw)).values())


def _broken(state: SearchState, config: RunConfig) -> Mapping[str, int]:
    """The tasks that failed each time under all kept edits, and how often; none that fails under the current text."""
    step = open_step(state)
    text = ground(state, config, len(step.rounds)).hash
    found: dict[str, list[bool]] = {}
    for tries in step.tries:
        for row in _rows_together(state, tries):
            if isinstance(row.outcome, Measured) and row.skill == text:
                found.setdefault(row.item, []).append(config.passes(row.outcome))
    fails = fails_without(state, config)
    return {item: len(passed) for item, passed in found.items() if not any(passed) and item not in fails}


def _affordable(state: SearchState, config: RunConfig, wanted: list[Tries]) -> tuple[Tries, ...]:
    spare = spare_tries(state, config)
    return () if spare is not None and sum(len(tries.items) for tries in wanted) > spare else tuple(wanted)
