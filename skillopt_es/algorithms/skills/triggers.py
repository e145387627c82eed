"""
The trigger set of a candidate that changes what is listed: training items that say what should open which skill.

Only attempts that passed say so. One that opened a changed skill should open what has become of it; one that opened
others, or none, should not open it. What comes out otherwise and fails was sent wrong. Validation items cannot say
this: nobody knows of them what would have been right to open. Pure.
"""

from __future__ import annotations

from attrs import frozen

from skillopt_es.algorithms.skills.candidate import NONE, SHOULD, SHOULD_NOT, Candidate
from skillopt_es.algorithms.skills.state import Key, Sighting, Skills, place_of, tried_at
from skillopt_es.engine.algorithm import GatePolicy, Objection
from skillopt_es.engine.draws import draw_seed, shuffled
from skillopt_es.engine.evaluations import measure, training
from skillopt_es.engine.work import Decide, Evaluation, Work
from skillopt_es.events.places import Place
from skillopt_es.events.values import Measured, Tries
from skillopt_es.gate.verdicts import candidate_gated
from skillopt_es.skill.folders import ids_of, skills_in


def trigger_work(whole: Candidate, policy: GatePolicy[Skills]) -> Work | None:
    """What of the trigger set is still to be drawn or tried; nothing where the candidate is refused without it."""
    if whole.algorithm.triggers:
        return measure(whole.state, _evaluations(whole))
    if not drawn(whole) or not candidate_gated(whole.state, whole.config, whole.built, policy).verdict.taken:
        return None
    return Decide("draw_triggers")


def drawn(whole: Candidate) -> tuple[Tries, ...]:
    """The trigger set, by the run's seed: of each kind at most so many; empty where the list stays as it is."""
    routing, most = whole.routing, whole.config.skills.triggers
    if not (routing.old or routing.new) or not whole.config.evaluation.use_gate:
        return ()
    seed, found = whole.config.train.seed + whole.where.number, _telling(whole)
    chosen = []
    for kind in (SHOULD, SHOULD_NOT, NONE):
        items = [each.attempt.item for each in found if routing.kind(each.key) == kind]
        if items and most:
            chosen.append(Tries(place=place_of(whole.state) / kind, items=tuple(shuffled(items, seed)[:most])))
    return tuple(chosen)


def _telling(whole: Candidate) -> list[Sighting]:
    """The epoch's latest attempt at each training item, where it passed with skills that are all still there."""
    there = set(ids_of(whole.state.current.skill))
    latest = {each.attempt.item: each for each in whole.algorithm.sightings}
    return [
        latest[item]
        for item in whole.state.started.splits.train
        if item in latest and whole.config.passes(latest[item].outcome) and there.issuperset(latest[item].key)
    ]


def _evaluations(whole: Candidate) -> list[Evaluation]:
    train, seed = whole.state.started.splits.train, draw_seed(whole.config.train.seed, 1)
    found: list[Evaluation] = []
    for tries in whole.algorithm.triggers:
        items = tried_at(whole.state, tries.place, tuple(item for item in tries.items if item in train))
        found += training(Place(tries.place), whole.built.candidate, items, seed)
    return found


@frozen(kw_only=True)
class Met:
    """A training item that met the candidate: what it opened before and opens now, and whether that is right."""

    item: str
    before: Key
    after: Key
    was: Measured
    now: Measured
    right: bool


def triggers_met(whole: Candidate) -> tuple[Met, ...]:
    """The items of the trigger set that were measured; none where there is no set."""
    before = {each.attempt.item: each for each in _telling(whole)} if whole.algorithm.triggers else {}
    return tuple(
        Met(
            item=row.item,
            before=before[row.item].key,
            after=skills_in(row.viewed),
            was=before[row.item].outcome,
            now=row.outcome,
            right=whole.routing.right(before[row.item].key, skills_in(row.viewed)),
        )
        for tries in whole.algorithm.triggers
        for row in whole.rows(tries.place).values()
        if isinstance(row.outcome, Measured) and row.item in before
    )


def misrouted(whole: Candidate) -> Objection | None:
    """That too many items are sent wrong: they open otherwise than they should, and fail."""
    most = whole.config.skills.misrouted
    if most is None:
        return None
    wrong = tuple(each.item for each in triggers_met(whole) if not whole.config.passes(each.now) and not each.right)
    return Objection("misrouted", wrong) if len(wrong) > most else None
