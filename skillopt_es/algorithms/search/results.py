"""
What has come of what was tried in a step: each change alone, draw by draw, and each task with and without it.

Pure functions of the state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from skillopt_es.algorithms.search.chance import Chances, History, kinds_of_target
from skillopt_es.algorithms.search.credit import Results, Screened, share_of_luck
from skillopt_es.algorithms.search.state import PRUNING, SearchState, open_step, replaced_by
from skillopt_es.algorithms.search.steps import OpenStep
from skillopt_es.config import RunConfig
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.engine.trajectories import unpacked
from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.places import Place
from skillopt_es.events.values import Measured, Minibatch, SkillTree
from skillopt_es.projections.state import never_varies
from skillopt_es.skill.edits import apply_edits

_ENOUGH_NEARER = 2  # wrong answers that tell whether examples teach the form


def rows_at(state: SearchState, place: Place) -> Mapping[str, RolloutCompleted]:
    """What was tried at a place, by item."""
    return state.rollouts.get(place, {})


def passed(row: RolloutCompleted | None, config: RunConfig) -> bool:
    """Whether a result was measured and counts as solved."""
    return row is not None and isinstance(row.outcome, Measured) and config.passes(row.outcome)


def measured(row: RolloutCompleted | None) -> bool:
    """Whether a task was tried and its result could be measured."""
    return row is not None and isinstance(row.outcome, Measured)


def parted(state: SearchState, config: RunConfig, group: Minibatch) -> tuple[list[str], list[str]]:
    """The items of a group that failed, and those that passed."""
    rows = state.rollouts[group.place]
    failing = [item for item in group.items if not passed(rows.get(item), config)]
    return failing, [item for item in group.items if item not in failing]


def solved(state: SearchState, config: RunConfig, item: str) -> bool:
    """Whether something on the way to the current skill has passed a training item."""
    known = state.algorithm.known.get(item)
    return known is not None and config.passes(known)


def tries_of(step: OpenStep, place: Place) -> set[str]:
    """The tasks that were planned at a place, whatever has become of it."""
    return {item for tries in step.tries if tries.place == place for item in tries.items}


def planned(step: OpenStep, place: Place, item: str) -> int:
    """How often a task was to be tried at a place; a try that could not be measured counts, too."""
    return sum(tries.place == place and item in tries.items for tries in step.tries)


def screened(state: SearchState, config: RunConfig, *, earlier: int | None = None) -> dict[int, Screened]:
    """What each change has done alone, by its number; those of rounds before one, where one is named."""
    step = open_step(state)
    share = luck_so_far(state, config)
    numbers = [index for index in range(len(step.alone)) if earlier is None or step.round_of(index) < earlier]
    results = {index: _results(state, config, index) for index in numbers}
    both_ways = (item for each in results.values() for item, found in each.items() if found.both_ways)
    fickle = state.algorithm.fickle.union(both_ways)
    kinds = _kinds_of_target(state, config)
    return {
        index: Screened(
            results=results[index],
            share=share,
            fickle=fickle,
            deletes=step.changes[index][-1].source == PRUNING,
            nearer=_nearer(state, index),
            untested=_untested(state, config, index),
            chances=_chances(state, config, kinds, index, results[index]) if kinds else None,
        )
        for index in numbers
    }


def _chances(
    state: SearchState, config: RunConfig, kinds: tuple[float, ...], index: int, items: Iterable[str]
) -> Chances:
    """What the draws of tasks under other texts tell, for the credit of a change that was tried on them."""
    step = open_step(state)
    group, text = step.group_of(step.changes[index]), step.alone[index].candidate.hash
    # Where another edit is wanted in the place of one, what the tasks came to with that one is beside the point.
    rows = rows_at(state, Place(group.place)) if replaced_by(state.algorithm, group) else {}
    until = {item: row.skill for item, row in rows.items()}
    return Chances(
        kinds=kinds,
        histories={item: _history(state, config, item, without=text, until=until.get(item)) for item in items},
    )


def _history(state: SearchState, config: RunConfig, item: str, *, without: str, until: str | None) -> History:
    """A task's draws under all texts but one; of current texts only those up to one, where one is named."""
    texts = [each for each in state.algorithm.drawn.get(item, ()) if each.text != without]
    own = [each for each in texts if each.own]
    last = next((at for at, each in enumerate(own, 1) if each.text == until), len(own))
    own = own[:last]
    return History(
        own=tuple(_values(each.outcomes, config) for each in own),
        others=tuple(_values(each.outcomes, config) for each in texts if each not in own),
        failing=_failing(state, config, own[0].text if own else ""),
    )


def _kinds_of_target(state: SearchState, config: RunConfig) -> tuple[float, ...]:
    """How probable each kind of target is by all draws so far; empty where that is not asked."""
    if not config.search.draw_again:
        return ()
    return kinds_of_target(_values(each, config) for each in state.algorithm.repeated.values())


def _values(outcomes: Sequence[Measured], config: RunConfig) -> tuple[float, ...]:
    return tuple(config.worth(outcome.hard, outcome.soft) for outcome in outcomes)


def _failing(state: SearchState, config: RunConfig, text: str) -> float:
    """About how many validation tasks fail under a text; half of them where nobody knows."""
    items = state.measured[text].items.values() if text in state.measured else ()
    return (1 + sum(not config.passes(outcome) for outcome in items)) / (2 + len(items))


def luck_so_far(state: SearchState, config: RunConfig) -> float:
    """The share of turned tasks that turn by luck, from all further draws so far; none where nothing is drawn again."""
    if not config.search.draw_again:
        return 0.0
    return share_of_luck(*_again_so_far(state, config))


def may_vary(state: SearchState, config: RunConfig) -> bool:
    """Whether a solved task may have failed by luck: of that, the share of luck among what was mended tells little."""
    return config.search.draw_again and not never_varies(*_again_so_far(state, config))


def _again_so_far(state: SearchState, config: RunConfig) -> tuple[int, int]:
    """How many further draws there were in the whole run, and how many tasks came out otherwise in them."""
    step, algorithm = open_step(state), state.algorithm
    again, varied = algorithm.again, algorithm.varied
    for index in range(len(step.alone)):
        found = Screened(results=_results(state, config, index))
        again, varied = again + found.again, varied + len(found.varied)
    return again, varied


def _results(state: SearchState, config: RunConfig, index: int) -> dict[str, Results]:
    """The draws of each task that a change was tried on, and of the same task as the optimizer was shown it."""
    step, known = open_step(state), state.algorithm.known
    group = step.group_of(step.changes[index])
    own = group.kind == "examples"  # they may be items of an earlier batch, under an older text
    at = step.place.in_batch(0) if own else Place(group.place)
    without = _drawn(state, config, at)
    found = {}
    for item, after in _drawn(state, config, step.screen(index)).items():
        before, first = without.get(item, []), rows_at(state, at).get(item)
        if first is None and item in known:
            before = [config.worth(known[item].hard, known[item].soft), *before]
        if before:
            was_solved = passed(first, config) if measured(first) else solved(state, config, item)
            found[item] = Results(before=tuple(before), after=tuple(after), solved=was_solved)
    return found


def _nearer(state: SearchState, index: int) -> float:
    """By how much worked examples bring wrong answers nearer to right ones, on average; 0 for any other change."""
    step = open_step(state)
    if step.group_of(step.changes[index]).kind != "examples":
        return 0.0
    before, at = rows_at(state, step.place.in_batch(0)), step.screen(index)
    after = [row for tries in step.tries if tries.place == at for row in rows_at(state, at.drawn(tries.draw)).values()]
    pairs = [(before[row.item].near, row.near) for row in after if row.item in before]
    gains = [new - old for old, new in pairs if old is not None and new is not None]
    return round(sum(gains) / len(gains), 2) if len(gains) >= _ENOUGH_NEARER else 0.0


def _untested(state: SearchState, config: RunConfig, index: int) -> bool:
    """Whether worked examples show all that failed, so that nothing is left that could tell whether they help."""
    step = open_step(state)
    group = step.group_of(step.changes[index])
    at = step.place.in_batch(0)
    if group.kind != "examples" or group.place != at:
        return False
    return all(item in group.items or passed(row, config) for item, row in rows_at(state, at).items() if measured(row))


def _drawn(state: SearchState, config: RunConfig, place: Place) -> dict[str, list[float]]:
    """What was measured of each task at a place, draw by draw."""
    step = open_step(state)
    found: dict[str, list[float]] = {}
    for draw in sorted({1, *(tries.draw for tries in step.tries if tries.place == place)}):
        for item, row in rows_at(state, place.drawn(draw)).items():
            if isinstance(row.outcome, Measured):
                found.setdefault(item, []).append(config.worth(row.outcome.hard, row.outcome.soft))
    return found


def known_without(state: SearchState, item: str) -> bool:
    """Whether it is known, or about to be, what a task comes to under the current text, not under an older one."""
    under, step = state.algorithm.under.get(item), open_step(state)
    return under == state.current.skill.hash or item in tries_of(step, step.place.in_batch(0))


def fails_without(state: SearchState, config: RunConfig) -> frozenset[str]:
    """Solved tasks that failed under the current text when an edit seemed to break them."""
    at = open_step(state).place.in_batch(0)
    again = [rows_at(state, at.drawn(tries.draw)) for tries in open_step(state).tries if tries.place == at]
    return frozenset(item for rows in again for item, row in rows.items() if not passed(row, config))


def ground(state: SearchState, config: RunConfig, number: int) -> SkillTree:
    """What the changes of a round are tried on: the current skill with all that earlier rounds have kept."""
    step = open_step(state)
    found = screened(state, config, earlier=number)
    kept = [index for index, each in found.items() if each.won]
    edits = step.in_order(kept)
    return apply_edits(
        state.current.skill, edits, close_gaps=not config.follows("leave_gaps"), pins=state.steering.pins
    )[0]


def untouched(state: SearchState, config: RunConfig, number: int, *, proven: bool = False) -> tuple[str, ...]:
    """
    The failing tasks of the batch that nothing kept before a round is known or said to have touched.

    What an edit says of tasks that it was not tried on counts; where that has to be `proven`, it counts if the edit has
    fixed at least half of those that it was tried on.
    """
    step = open_step(state)
    rows = rows_at(state, step.place.in_batch(0))
    failing = [item for item in step.batch.items if measured(rows.get(item)) and not passed(rows.get(item), config)]
    found = {
        index: each for index, each in screened(state, config, earlier=number).items() if each.won and not each.deletes
    }
    touched = {item for index, each in found.items() for item in each.better}
    for index, each in found.items():
        claims = step.changes[index][-1].claims
        tried = [item for item in claims if item in each.results]
        if not proven or 2 * len(set(tried).intersection(each.better)) >= len(tried):
            touched |= set(claims).difference(tried)
    return tuple(item for item in failing if item not in touched)


def solved_tasks(state: SearchState, config: RunConfig, evidence: RecordedTexts) -> Mapping[str, str]:
    """What the solved training items ask, as far as it is recorded."""
    algorithm, found = state.algorithm, dict[str, str]()
    for item in state.started.splits.train:
        row = rows_at(state, algorithm.at[item]).get(item) if item in algorithm.at else None
        clean = item not in algorithm.examples and item not in algorithm.fickle
        if row is not None and row.trajectory and clean and solved(state, config, item):
            found[item] = unpacked(row, evidence).task
    return found
