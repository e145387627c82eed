"""
Which validation items a verdict takes: a few at first, and all once steps earn nothing any more.

What meets the gate has been tried on training items before, edit by edit, so that a verdict is a safeguard and no
search: on few items it costs little, and steps come sooner. Pure functions of the state.
"""

from __future__ import annotations

from collections.abc import Collection

from attrs import evolve as replace

from skillopt_es.algorithms.search.state import SearchState, wider_at
from skillopt_es.engine.draws import shuffled
from skillopt_es.engine.evaluations import selection
from skillopt_es.engine.run_data import RunData
from skillopt_es.engine.work import Evaluation
from skillopt_es.events.places import BASELINE, Place
from skillopt_es.projections.state import Standing

_IDLE = 1  # steps that earned nothing, before all items are asked


def judged_by(state: SearchState, run: RunData) -> RunData:
    """The run as its gate sees it: with the validation items that the first text has met, until all are asked."""
    first, met = judged_at_first(run), state.measured.get(run.started.skill.hash)
    if state.algorithm.widened or first is run:
        return run
    # Where an item was retracted others are not drawn in its place: the current text has not met them.
    return first if met is None else _with_only(run, met.items)


def judged_at_first(run: RunData) -> RunData:
    """The run with the validation items of its first verdicts, drawn with its seed."""
    items, most = run.selection_items, max(run.config.search.first_gates, run.config.evaluation.min_items)
    if not run.config.search.first_gates or len(items) <= most:
        return run
    return _with_only(run, shuffled(items, run.config.train.seed)[:most])


def _with_only(run: RunData, items: Collection[str]) -> RunData:
    splits = replace(run.started.splits, val=tuple(item for item in run.selection_items if item in items))
    return replace(run, started=replace(run.started, splits=splits))


def other_items(state: SearchState, old: RunData, new: RunData) -> str:
    """Why a fork cannot take another number of validation items from here on; empty where it can."""
    had, wanted, whole = (len(each.selection_items) for each in (judged_at_first(old), judged_at_first(new), old))
    begun = state.measured or BASELINE in state.rollouts
    if had == wanted or state.algorithm.widened or not begun:
        return ""
    met = f"the skills so far were measured on {{}} validation items, and verdicts would take {wanted}"
    if had < whole:
        return f"{met.format(f'{had} of {whole}')}; a fork may change that once the best skill has met all of them"
    return f"{met.format(f'all {had}')}; `--set search.first_gates=0` goes on with all"


def widening(state: SearchState, run: RunData) -> list[Evaluation]:
    """
    The best text and then the current one on the validation items that they have not met; nothing where all are asked.

    A text that nobody has measured yet has to be so first.
    """
    texts = {each.skill.hash: each for each in (state.best, state.current)}
    if judged_by(state, run) is run or not all(name in state.measured for name in texts):
        return []
    done = state.steps_done
    at = Place.of_step(done, done) if done else BASELINE
    return [_wider(state, run, wider_at(at, number), each) for number, each in enumerate(texts.values())]


def _wider(state: SearchState, run: RunData, place: Place, standing: Standing) -> Evaluation:
    known = state.measured[standing.skill.hash].items
    items = tuple(item for item in run.selection_items if item in known)
    return replace(selection(run, place, standing.skill), carried=items, carried_from=standing.skill.hash)


def many_left(evaluations: list[Evaluation]) -> int:
    """How many results these evaluations still need."""
    return sum(len(each.items) - len(each.carried) for each in evaluations)


def is_idle(state: SearchState) -> bool:
    """Whether something was learned, and the last steps have earned nothing: a closer look pays."""
    return 0 < state.best.step <= state.steps_done - _IDLE
