"""
The trigger set of a candidate that changes what is listed: training items that say what should open which skill.

Only attempts that passed say so. One that opened a changed skill should open what has become of it; one that opened
others, or none, should not open it. What comes out otherwise and fails was sent wrong. Validation items cannot say
this: nobody knows of them what would have been right to open. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import frozen

from skillopt_es.algorithms.skills import scope
from skillopt_es.algorithms.skills.state import (
    Key,
    Sighting,
    Skills,
    SkillsState,
    applied_edits,
    became,
    place_of,
    tried_at,
    where_of,
)
from skillopt_es.config import RunConfig
from skillopt_es.engine.algorithm import GatePolicy, Objection
from skillopt_es.engine.draws import draw_seed, shuffled
from skillopt_es.engine.evaluations import measure
from skillopt_es.engine.work import Decide, Evaluation, Work
from skillopt_es.events.catalog import CandidateBuilt
from skillopt_es.events.places import Place
from skillopt_es.events.values import Measured, SkillTree, Tries
from skillopt_es.gate.verdicts import candidate_gated
from skillopt_es.skill.folders import entries_of, ids_of, skills_in

SHOULD, SHOULD_NOT, NONE = "should", "should-not", "none"


@frozen
class Routing:
    """How a candidate changes the list: the skills that are not as they were, those that are new, and what became."""

    old: frozenset[str]
    new: frozenset[str]
    became: Mapping[str, tuple[str, ...]]

    def kind(self, key: Key) -> str:
        """What an attempt that passed with these skills open says of the candidate."""
        if set(key) & self.old:
            return SHOULD
        return SHOULD_NOT if key else NONE

    def right(self, before: Key, after: Key) -> bool:
        """Whether an item that is tried again opens what it should."""
        touched = set(before) & self.old
        if not touched:
            return not set(after) & self.new
        return bool(set(after) & {name for skill in touched for name in self.became.get(skill, (skill,))})


def routing_of(state: SkillsState, built: CandidateBuilt) -> Routing:
    """What the open step's candidate changes in the list."""
    before, after = _listed(state.current.skill), _listed(built.candidate)
    return Routing(
        old=frozenset(skill for skill, said in before.items() if after.get(skill) != said),
        new=frozenset(skill for skill, said in after.items() if before.get(skill) != said),
        became=became(applied_edits(state.algorithm.edits, built)),
    )


def _listed(tree: SkillTree) -> dict[str, str]:
    return {each.id: each.description for each in entries_of(tree) if not each.always}


def trigger_work(
    state: SkillsState, built: CandidateBuilt, config: RunConfig, policy: GatePolicy[Skills]
) -> Work | None:
    """What of the trigger set is still to be drawn or tried; nothing where the candidate is refused without it."""
    planned = state.algorithm.triggers
    if planned:
        return measure(state, _evaluations(state, built, config, planned))
    if not drawn(state, built, config) or not candidate_gated(state, config, built, policy).verdict.taken:
        return None
    return Decide("draw_triggers")


def drawn(state: SkillsState, built: CandidateBuilt, config: RunConfig) -> tuple[Tries, ...]:
    """The trigger set, by the run's seed: of each kind at most so many; empty where the list stays as it is."""
    routing, most = routing_of(state, built), config.skills.triggers
    if not (routing.old or routing.new) or not config.evaluation.use_gate:
        return ()
    seed, found = config.train.seed + where_of(state).number, _telling(state, config)
    chosen = []
    for kind in (SHOULD, SHOULD_NOT, NONE):
        items = [each.attempt.item for each in found if routing.kind(each.key) == kind]
        if items and most:
            chosen.append(Tries(place=place_of(state) / kind, items=tuple(shuffled(items, seed)[:most])))
    return tuple(chosen)


def _telling(state: SkillsState, config: RunConfig) -> list[Sighting]:
    """The epoch's latest attempt at each training item, where it passed with skills that are all still there."""
    there, latest = set(ids_of(state.current.skill)), {each.attempt.item: each for each in state.algorithm.sightings}
    return [
        latest[item]
        for item in state.started.splits.train
        if item in latest and config.passes(latest[item].outcome) and there.issuperset(latest[item].key)
    ]


def _evaluations(
    state: SkillsState, built: CandidateBuilt, config: RunConfig, planned: Iterable[Tries]
) -> list[Evaluation]:
    train = state.started.splits.train
    there = {
        tries.place: tried_at(state, tries.place, tuple(item for item in tries.items if item in train))
        for tries in planned
    }
    return [
        Evaluation(
            place=Place(place),
            purpose="train",
            split="train",
            items=items,
            skill=built.candidate,
            seed=draw_seed(config.train.seed, 1),
        )
        for place, items in there.items()
        if items  # all of them may have been retracted
    ]


@frozen(kw_only=True)
class Met:
    """A training item that met the candidate: which kind of trigger it is, what it opened before and opens now."""

    item: str
    kind: str
    before: Key
    after: Key
    was: Measured
    now: Measured
    right: bool


def triggers_met(state: SkillsState, built: CandidateBuilt, config: RunConfig) -> tuple[Met, ...]:
    """The items of the trigger set that were measured; none where there is no set."""
    planned = state.algorithm.triggers
    if not planned:
        return ()
    routing, before = routing_of(state, built), {each.attempt.item: each for each in _telling(state, config)}
    return tuple(
        Met(
            item=row.item,
            kind=Place(tries.place).name,
            before=before[row.item].key,
            after=skills_in(row.viewed),
            was=before[row.item].outcome,
            now=row.outcome,
            right=routing.right(before[row.item].key, skills_in(row.viewed)),
        )
        for tries in planned
        for row in state.rollouts.get(tries.place, {}).values()
        if isinstance(row.outcome, Measured) and row.item in before
    )


def misrouted(state: SkillsState, built: CandidateBuilt, config: RunConfig) -> tuple[str, ...]:
    """The items of the trigger set that the candidate sends wrong: they open otherwise than they should, and fail."""
    return tuple(
        each.item for each in triggers_met(state, built, config) if not config.passes(each.now) and not each.right
    )


def objection(state: SkillsState, built: CandidateBuilt, config: RunConfig) -> Objection | None:
    """Why a candidate that its rule would take is refused: items pass by what they opened, or are sent wrong."""
    most = config.skills.misrouted
    wrong = misrouted(state, built, config) if most is not None else ()
    sent_wrong = Objection("misrouted", wrong) if most is not None and len(wrong) > most else None
    return scope.lost_recall(state, built, config) or sent_wrong
