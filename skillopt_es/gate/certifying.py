"""
The certificate of a run: when the certified skill meets fresh items beside its challenger, and how the bet is settled.

Training may be as liberal as it likes; this stands apart from it and never decides what is current or best. A batch
that nothing has met before is tried under the current skill anyway. It is tried under the certified one, too, and the
differences are bet on. Pure: tasks and a decision from the state.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import TypeVar

from attrs import evolve

from skillopt_es.config import RunConfig
from skillopt_es.engine.algorithm import Decision, GatePolicy
from skillopt_es.engine.draws import shuffled
from skillopt_es.engine.evaluations import measure, training
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.engine.work import Decide, Evaluation, Work
from skillopt_es.events.catalog import CertificateWagered, Event, RolloutCompleted
from skillopt_es.events.places import FINAL_FRESH, Place
from skillopt_es.events.values import Bets, Measured
from skillopt_es.gate.bets import ENOUGH, Purse, most_wealth, next_stake, type_gains
from skillopt_es.projections.item_results import families_of
from skillopt_es.projections.state import AnyState, RunState, Standing

S = TypeVar("S")


def beside(state: AnyState, config: RunConfig, root: Place, batches: Sequence[Evaluation]) -> list[Evaluation]:
    """The certified skill on the fresh items of these batches at a place; none where there is nothing to bet on."""
    certified = state.certified
    if not config.evaluation.certificate or not batches:
        return []
    challenger = batches[0].skill.hash
    if challenger == certified.skill.hash or not _worth_betting(state, config, root, challenger):
        return []
    found: list[Evaluation] = []
    for index, batch in enumerate(batches):
        earlier = {item for each in found for item in each.items}  # an item is bet on once
        items = tuple(item for item in state.exposure.fresh(batch.items, root) if item not in earlier)
        if items:
            place = root.certified.in_batch(index)
            found.append(evolve(batch, place=place, skill=certified.skill, items=items))
    return found


def _worth_betting(state: AnyState, config: RunConfig, root: Place, challenger: str) -> bool:
    """Whether the challenger could still win, if it won every item that nothing has met."""
    left = len(state.exposure.fresh(state.started.splits.train, root))
    purse, _ = _purses(state, challenger)
    return most_wealth(purse.stake, purse.gains, left) >= ENOUGH


def is_due(state: AnyState, root: Place) -> bool:
    """Whether the certified skill was tried at a place and the bet is not settled."""
    tried = any(root.certified.holds(place) for place in state.scored)
    return tried and all(wager.place != root for wager in state.wagers)


def closing_work(state: AnyState, config: RunConfig, most: int | None = None) -> Work | None:
    """At the end of a run: the best skill against the certified one, on a batch of items that are left; or None."""
    batch = _closing_batch(state, config, state.best, config.train.batch_size if most is None else most)
    opposed = beside(state, config, FINAL_FRESH, batch) if batch else []
    if opposed:
        waiting = measure(state, [*batch, *opposed])
        if waiting is not None:
            return waiting
    return Decide("close_certificate") if is_due(state, FINAL_FRESH) else None


def _closing_batch(state: AnyState, config: RunConfig, best: Standing, size: int) -> list[Evaluation]:
    place = FINAL_FRESH.in_batch(0)
    if place in state.scored:
        items = tuple(state.rollouts[place])  # what it was begun with, whatever the calls that are left
    else:
        fresh = state.exposure.fresh(state.started.splits.train, FINAL_FRESH)
        items = tuple(shuffled(fresh, config.train.seed)[:size])
    return training(place, best.skill, items, config.train.seed)


def wagered(state: AnyState, config: RunConfig, root: Place) -> CertificateWagered:
    """The bet on what was tried at a place, settled."""
    challenger = _tried_at(state, root)
    pairs = _pairs(state, root)
    gains = {
        item: config.worth(now.hard, now.soft) - config.worth(was.hard, was.soft)
        for item, (was, now, _) in pairs.items()
    }
    by_item, by_type = _purses(state, challenger)
    items, types, won = by_item.and_then(gains), None, False
    if families_of(state.types):
        kinds = {item: kind for item, (_, _, kind) in pairs.items() if kind}
        types = by_type.and_then(type_gains(gains, kinds))
    won = items.wealth >= ENOUGH and (types is None or types.wealth >= ENOUGH)
    every = (*by_item.gains, *gains.values())
    bounds = [by_item.least(items), *([] if types is None else [by_type.least(types)])]
    return CertificateWagered(
        place=root,
        certified=state.certified.skill.hash,
        challenger=challenger,
        by_item=items,
        by_type=types,
        pairs=len(every),
        gain=math.fsum(every) / len(every) if every else 0.0,
        least=min(bound for bound in bounds if bound is not None) if won else None,
        moved=won,
    )


def _tried_at(state: AnyState, root: Place) -> str:
    """The skill of the batches at a place."""
    batches = (rows for place, rows in state.rollouts.items() if Place(place).is_batch_at(root))
    return next(row.skill for rows in batches for row in rows.values())


def _pairs(state: AnyState, root: Place) -> dict[str, tuple[Measured, Measured, str]]:
    """By item, the results under the certified skill and its challenger, and its type; of what was measured alone."""
    found: dict[str, tuple[Measured, Measured, str]] = {}
    for place, rows in state.rollouts.items():
        if not Place(place).is_batch_at(root.certified):
            continue
        beside: Mapping[str, RolloutCompleted] = state.rollouts.get(root / Place(place).name, {})
        for item, before in rows.items():
            after = beside.get(item)
            if after is not None and isinstance(before.outcome, Measured) and isinstance(after.outcome, Measured):
                found[item] = (before.outcome, after.outcome, after.task_type)
    return found


def _purses(state: AnyState, challenger: str) -> tuple[Purse, Purse]:
    """What was bet on this challenger so far, by item and by type; for a new one, what the last ones have left."""
    last = state.wagers[-1] if state.wagers else None
    if last is None or (last.certified, last.challenger) != (state.certified.skill.hash, challenger):
        types = None if last is None else last.by_type
        return Purse(stake=next_stake(None if last is None else last.by_item)), Purse(stake=next_stake(types))
    same = list(takewhile(lambda each: each.challenger == challenger, reversed(state.wagers)))
    by_type = [each.by_type for each in same if each.by_type is not None]
    return _purse([each.by_item for each in same]), _purse(by_type) if by_type else Purse(stake=1.0)


def _purse(bets: Sequence[Bets]) -> Purse:
    return Purse(stake=bets[0].stake, gains=tuple(gain for each in bets for gain in each.gains.values()))


def certificate_decisions(policy: GatePolicy[S]) -> Mapping[str, Decision[S]]:
    """The decisions that settle a bet: on the open step's batch, and at the end of the run."""

    def wager(state: RunState[S], config: RunConfig, evidence: RecordedTexts) -> Event:
        return wagered(state, config, policy.place(state))

    def close(state: RunState[S], config: RunConfig, evidence: RecordedTexts) -> Event:
        return wagered(state, config, FINAL_FRESH)

    return {"wager": wager, "close_certificate": close}
