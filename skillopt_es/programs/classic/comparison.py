"""One epoch's first and last skill on the same tasks: what turned, what did not, and which of it the optimizer sees."""

from __future__ import annotations

from attrs import frozen

from skillopt_es.engine.run_data import RunData
from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.places import Place
from skillopt_es.events.values import Measured, Pair
from skillopt_es.programs.classic.state import ClassicState


@frozen
class Compared:
    """One item's two rollouts."""

    pair: Pair
    previous: RolloutCompleted
    current: RolloutCompleted


_KEPT = {
    "mixed": ("regressed", "persistent_fail", "improved", "stable_success"),
    "changed": ("regressed", "improved"),
    "unchanged": ("persistent_fail", "stable_success"),
}


def selected_pairs(state: ClassicState, run: RunData) -> tuple[Compared, ...]:
    """The compared items that the pair policy keeps, at most as many as were asked for."""
    optimizer = run.config.optimizer
    kept = _KEPT[optimizer.longitudinal_pair_policy]
    return tuple(row for row in compare(state, run) if row.pair.category in kept)[: optimizer.slow_update_samples]


def compare(state: ClassicState, run: RunData) -> tuple[Compared, ...]:
    """The drawn items that were measured under both skills, in drawn order."""
    assert state.program.epoch is not None
    assert state.program.epoch.comparison is not None
    place = Place.of_epoch(state.program.epoch.number).slow
    current = state.rollouts[place.current]
    # Where both are one text, it was tried once.
    previous = state.rollouts.get(place.previous, current)
    found = []
    for item in state.program.epoch.comparison.items:
        before, now = previous[item], current[item]
        if isinstance(before.outcome, Measured) and isinstance(now.outcome, Measured):
            pair = _pair(item, before=run.passes(before.outcome), now=run.passes(now.outcome))
            found.append(Compared(pair, before, now))
    return tuple(found)


def _pair(item: str, *, before: bool, now: bool) -> Pair:
    if before:
        return Pair(item, "stable_success" if now else "regressed")
    return Pair(item, "improved" if now else "persistent_fail")
