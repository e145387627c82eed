"""
What is tried next in a step: each change alone, on the current text and what earlier rounds have kept.

Pure functions of the state. First a task that the change is to fix, then what tells whether it broke another one, then
what turned once more, until luck is ruled out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from skillopt_es.algorithms.search.budget import most_tries, spare_tries
from skillopt_es.algorithms.search.credit import Screened
from skillopt_es.algorithms.search.results import (
    ground,
    known_without,
    may_vary,
    parted,
    planned,
    screened,
    solved,
    tries_of,
    untouched,
)
from skillopt_es.algorithms.search.state import SearchState, open_step, replaced_by
from skillopt_es.config import RunConfig
from skillopt_es.engine.draws import draw_seed, shuffled
from skillopt_es.engine.work import Evaluation
from skillopt_es.events.places import Place
from skillopt_es.events.values import Minibatch, SkillTree, Tries
from skillopt_es.projections.core import without_items

TASKS = 3
"""Of what an edit claims: enough to tell whether it does anything."""
_BESIDE = 2  # that pass, for an edit that is for many
_AT_FIRST = 6  # drawn again before anybody knows whether the target varies: enough, if none does
DRAWS_TO_BLAME = 3
"""Of a solved task that fails under edits, before any of them is blamed; a coin fails them all once in eight times."""
MOST_DRAWS = 4
"""Of one task under one text, for the credit of an edit."""


def evaluations(state: SearchState, config: RunConfig) -> list[Evaluation]:
    """All that was planned for the open step so far, but for results that are no evidence at their place."""
    step, barred = open_step(state), state.algorithm.barred
    planned_at = [(tries, Place(tries.place).drawn(tries.draw)) for tries in step.tries]
    left = [(tries, place, without_items(tries.items, barred.get(place, ()))) for tries, place in planned_at]
    return [
        Evaluation(
            place=place,
            purpose="train",
            split="train",
            items=items,
            skill=_text_at(state, config, Place(tries.place)),
            seed=draw_seed(config.train.seed, tries.draw),
            repeat=tries.draw,
            near=True,
            by_item=True,
        )
        for tries, place, items in left
        if items
    ]


def _text_at(state: SearchState, config: RunConfig, place: Place) -> SkillTree:
    step = open_step(state)
    if place == step.together:
        return ground(state, config, len(step.rounds))
    alone = {step.screen(index): built.candidate for index, built in enumerate(step.alone)}
    return alone.get(place, state.current.skill)


def next_tries(state: SearchState, config: RunConfig) -> tuple[Tries, ...]:
    """What has to be tried before anybody can say what the changes so far are worth."""
    return _first_tries(state, config) or _tries_without(state, config) or _second_tries(state, config)


def next_draw(state: SearchState) -> int:
    """The number of the next wave of tries: all draws of a place differ by it."""
    return 1 + max((tries.draw for tries in open_step(state).tries), default=0)


def _first_tries(state: SearchState, config: RunConfig) -> tuple[Tries, ...]:
    """
    Each change alone, on one task that it is to fix; then on another, while none has come out better.

    One that is for many tasks meets some that pass as well.
    """
    step, draw = open_step(state), next_draw(state)
    found = screened(state, config)
    used = sum(len(tries.items) for tries in step.tries)
    asked = len({item for group in step.asked for item in group.items})
    shown = TASKS * any(group.kind == "examples" for group in step.asked)
    most, spare = most_tries(asked) + shown - used, spare_tries(state, config)
    wanted: list[Tries] = []
    for index, built in enumerate(step.alone):
        items = _items_for(state, config, index, found[index])
        if built.candidate.hash != built.parent and items:
            wanted.append(Tries(place=step.screen(index), items=items, draw=draw))
    room = max(0, most if spare is None else min(most, spare))
    return tuple(tries for at, tries in enumerate(wanted) if sum(len(each.items) for each in wanted[: at + 1]) <= room)


def _items_for(state: SearchState, config: RunConfig, index: int, found: Screened) -> tuple[str, ...]:
    """What a change is tried on next; nothing when it has had its tasks, or made more of them better than worse."""
    step = open_step(state)
    tried = tries_of(step, step.screen(index))
    aim, beside = _tasks_for(state, config, index)
    waiting = [item for item in aim if item not in tried]
    if not tried:
        return tuple(dict.fromkeys((*waiting[:1], *beside)))
    return () if found.ahead else tuple(waiting[:1])


def _tasks_for(state: SearchState, config: RunConfig, index: int) -> tuple[Sequence[str], Sequence[str]]:
    """The tasks that tell what a change is worth: some to fix, and for one that is for many, some that pass."""
    step = open_step(state)
    edit, group = step.changes[index][-1], step.group_of(step.changes[index])
    failing, _ = parted(state, config, group)
    if replaced_by(state.algorithm, group) is not None:
        return failing[:TASKS], ()
    if edit.claims and 2 * len(edit.claims) <= max(2, len(failing)):
        return edit.claims[:TASKS], ()
    if group.kind == "examples":  # what stands in the text tells nothing about it
        number = step.round_of(index)
        failing = [item for item in untouched(state, config, number) if item not in group.items]
    shown = state.algorithm.examples.union(group.items if group.kind == "examples" else ())
    passing = [item for item in state.started.splits.train if solved(state, config, item) and item not in shown]
    beside = known_first(state, shuffled(passing, step.batch.seed))[:_BESIDE]
    return (edit.claims or shuffled(failing, step.batch.seed))[:TASKS], beside


def known_first(state: SearchState, items: Iterable[str]) -> list[str]:
    """Tasks in their order, but first those that were tried under the current text: no older one speaks for them."""
    return sorted(items, key=lambda item: not known_without(state, item))


def _tries_without(state: SearchState, config: RunConfig) -> tuple[Tries, ...]:
    """
    What tells whether an edit that has fixed something has broken what came out worse, one try for each such task.

    One that an older text had solved is tried under the current one, which may fail it as well. Where the target may
    vary it is tried again until the edit has failed it each time and the current text has passed it each time.
    """
    step = open_step(state)
    now, wanted = step.place.in_batch(0), dict[Place, dict[str, None]]()
    found_by = {index: found for index, found in screened(state, config).items() if found.worse}
    lucky = bool(found_by) and may_vary(state, config)
    for index, found in found_by.items():
        alone = step.screen(index)
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
    spare = spare_tries(state, config)
    if spare is not None and spare < sum(map(len, wanted.values())):
        return ()
    draw = max(2, next_draw(state))
    return tuple(Tries(place=place, items=tuple(items), draw=draw) for place, items in wanted.items())


def _second_tries(state: SearchState, config: RunConfig) -> tuple[Tries, ...]:
    """
    For each change of which luck is not ruled out, one more try.

    That is another task that it is to fix; or else one that turned, once more under the text with fewer draws of it.
    """
    if not config.search.draw_again:
        return ()
    wanted: dict[Place, dict[str, None]] = {}
    for index, found in screened(state, config).items():
        if found.ahead and not found.won:
            place, item = _most_telling(state, config, index, found)
            if place is not None:
                wanted.setdefault(place, {})[item] = None
    pairs = [(place, item) for place, items in wanted.items() for item in items]
    pairs = pairs[: _AT_FIRST if state.algorithm.again == 0 else len(pairs)]
    spare = spare_tries(state, config)
    if spare is not None and spare < len(pairs):
        return ()
    places, draw = dict.fromkeys(place for place, _ in pairs), next_draw(state)
    return tuple(
        Tries(place=place, items=tuple(item for at, item in pairs if at == place), draw=draw) for place in places
    )


def _most_telling(state: SearchState, config: RunConfig, index: int, found: Screened) -> tuple[Place | None, str]:
    """Where a change is tried once more, and on what."""
    step = open_step(state)
    group, alone = step.group_of(step.changes[index]), step.screen(index)
    for item in _tasks_for(state, config, index)[0]:
        if not planned(step, alone, item):
            return alone, item
    for item in sorted(found.better, key=lambda item: -found.results[item].evidence):
        draws = {**_draws_without(state, group, item), alone: planned(step, alone, item)}
        place = min(draws, key=lambda place: draws[place])
        if draws[place] < MOST_DRAWS:
            return place, item
    return None, ""


def _draws_without(state: SearchState, group: Minibatch, item: str) -> dict[Place, int]:
    """Where a task may be drawn once more without a change, and how often it was; nowhere if that is no use."""
    if replaced_by(state.algorithm, group) is not None:  # the current text has the edit that is to be replaced
        return {}
    now = open_step(state).place.in_batch(0)
    return {now: sum(len(each.outcomes) for each in state.algorithm.drawn.get(item, ()) if each.own)}
