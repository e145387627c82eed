"""
Which validation items a verdict takes: a few at first, and all once steps earn nothing any more.

What meets the gate has been tried on training items before, edit by edit, so that a verdict is a safeguard and no
search: on few items it costs little, and steps come sooner. Pure functions of the state.
"""

from __future__ import annotations

from attrs import evolve as replace

from skillopt_es.algorithms.search.state import SearchState, wider_at
from skillopt_es.config import RunConfig
from skillopt_es.engine.draws import shuffled
from skillopt_es.engine.evaluations import selection
from skillopt_es.engine.run_config import validation_items
from skillopt_es.engine.work import Evaluation
from skillopt_es.events.catalog import RunStarted
from skillopt_es.events.places import BASELINE, Place
from skillopt_es.projections.state import Standing

_IDLE = 1  # steps that earned nothing, before all items are asked


def judged_items(state: SearchState, config: RunConfig) -> tuple[str, ...]:
    """The validation items that verdicts take now: those that the first text has met, until all are asked."""
    whole, first = validation_items(state.started, config), first_items(state.started, config)
    met = state.measured.get(state.started.skill.hash)
    if state.algorithm.widened or first == whole:
        return whole
    # Where an item was retracted others are not drawn in its place: the current text has not met them.
    return first if met is None else tuple(item for item in whole if item in met.items)


def first_items(started: RunStarted, config: RunConfig) -> tuple[str, ...]:
    """The validation items of a run's first verdicts, drawn with its seed, in the order of the split."""
    items, most = validation_items(started, config), max(config.search.first_gates, config.evaluation.min_items)
    if not config.search.first_gates or len(items) <= most:
        return items
    drawn = {*shuffled(items, config.train.seed)[:most]}
    return tuple(item for item in items if item in drawn)


def other_items(state: SearchState, old: RunConfig, new: RunConfig) -> str:
    """Why a fork cannot take another number of validation items from here on; empty where it can."""
    had, wanted = (len(first_items(state.started, each)) for each in (old, new))
    whole = len(validation_items(state.started, old))
    begun = state.measured or BASELINE in state.rollouts
    if had == wanted or state.algorithm.widened or not begun:
        return ""
    met = f"the skills so far were measured on {{}} validation items, and verdicts would take {wanted}"
    if had < whole:
        return f"{met.format(f'{had} of {whole}')}; a fork may change that once the best skill has met all of them"
    return f"{met.format(f'all {had}')}; `--set search.first_gates=0` goes on with all"


def widening(state: SearchState, config: RunConfig) -> list[Evaluation]:
    """
    The best text and then the current one on the validation items that they have not met; nothing where all are asked.

    A text that nobody has measured yet has to be so first.
    """
    texts = {each.skill.hash: each for each in (state.best, state.current)}
    asked, all_items = judged_items(state, config), validation_items(state.started, config)
    if asked == all_items or not all(name in state.measured for name in texts):
        return []
    done = state.steps_done
    at = Place.of_step(done, done) if done else BASELINE
    return [_wider(state, config, wider_at(at, number), each) for number, each in enumerate(texts.values())]


def _wider(state: SearchState, config: RunConfig, place: Place, standing: Standing) -> Evaluation:
    known = state.measured[standing.skill.hash].items
    items = validation_items(state.started, config)
    carried = tuple(item for item in items if item in known)
    whole = selection(config, place, standing.skill, items)
    return replace(whole, carried=carried, carried_from=standing.skill.hash)


def many_left(evaluations: list[Evaluation]) -> int:
    """How many results these evaluations still need."""
    return sum(len(each.items) - len(each.carried) for each in evaluations)


def is_idle(state: SearchState) -> bool:
    """Whether something was learned, and the last steps have earned nothing: a closer look pays."""
    return 0 < state.best.step <= state.steps_done - _IDLE
