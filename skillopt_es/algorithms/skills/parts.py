"""
A candidate of several changes that was refused as a whole: which of them may stay. Pure.

Items that notice two changes or more cannot say which one it was. Some of them are tried again, each under a part of
those changes that the run's seed draws. What each change does is fitted to all draws, and what does no harm is judged
by itself, on draws of its own. A gate's cost is a result of each item that it may want, and a trigger set: the two
gates and what was drawn between them cost twice that at most.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from skillopt_es.algorithms.skills.effects import effects
from skillopt_es.algorithms.skills.gate import GATE, gate_config
from skillopt_es.algorithms.skills.noticing import (
    changes_of,
    draws_so_far,
    made_with,
    noticed,
    turned_items,
)
from skillopt_es.algorithms.skills.state import SkillsState, applied_edits, place_of, where_of
from skillopt_es.config import RunConfig
from skillopt_es.engine.draws import draw_seed, shuffled, some_of
from skillopt_es.engine.evaluations import too_many_unmeasured, units_of, unmeasured_hint
from skillopt_es.engine.run_config import validation_items
from skillopt_es.engine.work import Decide, Evaluation, Rollouts, Unit, Work
from skillopt_es.events.catalog import CandidateBuilt, RolloutCompleted, RunPaused
from skillopt_es.events.places import Place
from skillopt_es.events.values import DRAWS_ONCE, Effect, GateVerdict, Measured, Tries
from skillopt_es.gate.verdicts import candidate_gated, rule_of


@frozen(kw_only=True)
class Parted:
    """The edits that may stay, what each change was found to do, and what the gate said of all together."""

    kept: tuple[str, ...]
    effects: tuple[Effect, ...]
    together: GateVerdict


def part_work(state: SkillsState, built: CandidateBuilt, config: RunConfig) -> Work | None:
    """What is still to be drawn or decided of a refused candidate's parts; nothing where it is refused as a whole."""
    if _mixed(state, built, config) is None:
        return None
    if not state.algorithm.parts and parts_drawn(state, built, config):
        return Decide("draw_parts")
    missing = _missing(state, built, config)
    if missing:
        return Rollouts(tuple(missing))
    if failed_parts(state, built, config) is not None:
        return Decide("pause_for_parts")
    return Decide("part") if parted(state, built, config) is not None else None


def parted(state: SkillsState, built: CandidateBuilt, config: RunConfig) -> Parted | None:
    """What may stay, by what the changes were found to do; None where all or nothing would."""
    together = _mixed(state, built, config)
    if together is None:
        return None
    changes = changes_of(state, built)
    felt = noticed(state, built, config, changes)
    found = effects(draws_so_far(state, built, config, changes), [change.name for change in changes])
    stay = [change for change in changes if found[change.name] >= 0.0]
    helps = any(found[change.name] > 0.0 for change in stay)
    if not stay or len(stay) == len(changes) or not (helps or _takes_ties(state, config)):
        return None
    return Parted(
        kept=tuple(edit for edit in _in_order(state, built) if any(edit in change.edits for change in stay)),
        effects=tuple(
            Effect(
                edits=change.edits,
                effect=found[change.name],
                items=sum(change.name in names for names in felt.values()),
            )
            for change in changes
        ),
        together=together,
    )


def _mixed(state: SkillsState, built: CandidateBuilt, config: RunConfig) -> GateVerdict | None:
    """The verdict that refuses all changes together, where some of them may be better than that."""
    if not config.evaluation.use_gate or state.algorithm.ranked is not None:
        return None
    if state.current.skill.hash not in state.measured or len(changes_of(state, built)) < 2:
        return None
    gated = candidate_gated(state, config, built, GATE)
    verdict = gated.verdict
    if verdict.taken or not verdict.by_gate or built.candidate.hash in state.steering.by_hand:
        return None
    felt, turned = noticed(state, built, config, changes_of(state, built)), turned_items(state, built, config)
    hope = (gain for item, gain in turned.items() if felt[item])
    return verdict if gated.against or any(gain > 0.0 or _takes_ties(state, config) for gain in hope) else None


def _takes_ties(state: SkillsState, config: RunConfig) -> bool:
    return rule_of(gate_config(state, config)).takes_ties


def _in_order(state: SkillsState, built: CandidateBuilt) -> tuple[str, ...]:
    return tuple(edit.id for edit in applied_edits(state.algorithm.edits, built))


# --- what is drawn -----------------------------------------------------------------------------------------------


def parts_drawn(state: SkillsState, built: CandidateBuilt, config: RunConfig) -> tuple[Tries, ...]:
    """
    Which items are tried under which part of the changes that they notice; nothing where no item notices two.

    Those that came out otherwise come first, and each has one draw: so many as the first gate has left of its cost.
    """
    changes = changes_of(state, built)
    felt, turned = noticed(state, built, config, changes), turned_items(state, built, config)
    seed = config.train.seed + where_of(state).number
    order = shuffled([item for item in validation_items(state.started, config) if len(felt[item]) > 1], seed)
    order.sort(key=lambda item: item not in turned)
    of_part: dict[tuple[str, ...], list[str]] = {}
    for item in order[: max(0, most_of_a_gate(state, config) - _spent(state))]:
        on = some_of([change.name for change in changes if change.name in felt[item]], f"{seed} {item}")
        of_part.setdefault(tuple(edit for change in changes if change.name in on for edit in change.edits), []).append(
            item
        )
    at = place_of(state) / "parts"
    return tuple(
        Tries(place=at / str(number), items=tuple(items), edits=edits)
        for number, (edits, items) in enumerate(sorted(of_part.items()), start=1)
    )


def most_of_a_gate(state: SkillsState, config: RunConfig) -> int:
    """How many results one gate takes at most, its trigger set among them."""
    rule = gate_config(state, config).evaluation
    draws = 1 if rule.gate_rule in DRAWS_ONCE else 2 * rule.gate_repeats - 1
    return draws * len(validation_items(state.started, config)) + 3 * config.skills.triggers


def _spent(state: SkillsState) -> int:
    """How many results the open step's first gate has taken."""
    here = where_of(state).place
    scored = [each for each in state.scored.values() if here.holds(each.place) and Place(each.place).batch is None]
    counts = [(each.score.measured, each.score.unmeasured, -len(each.carried)) for each in scored]
    return sum(number for row in counts for number in row if number is not None)  # only imported runs have None


def _units(state: SkillsState, built: CandidateBuilt, config: RunConfig) -> list[Unit]:
    """Every planned result. They are no draws of a text on all items, so they are never added up."""
    edits, found = applied_edits(state.algorithm.edits, built), []
    for tries in state.algorithm.parts:
        tree, _ = made_with(state, built, [edit for edit in edits if edit.id in tries.edits])
        seed, all_items = draw_seed(config.train.seed, 1), validation_items(state.started, config)
        items = [item for item in tries.items if item in all_items]
        found += units_of(
            state,
            Evaluation(place=tries.place, purpose="parts", split="val", items=tuple(items), skill=tree, seed=seed),
            items,
        )
    return found


def _missing(state: SkillsState, built: CandidateBuilt, config: RunConfig) -> list[Unit]:
    return [unit for unit in _units(state, built, config) if unit.item not in _rows(state, unit.place)]


def failed_parts(state: SkillsState, built: CandidateBuilt, config: RunConfig) -> RunPaused | None:
    """That too many results could not be measured to say what changes do; nothing where enough could."""
    rows = [_rows(state, unit.place)[unit.item] for unit in _units(state, built, config)]
    failed = [row for row in rows if not isinstance(row.outcome, Measured)]
    if not too_many_unmeasured([row.outcome for row in rows], config, "val", len(rows)):
        return None
    first = failed[0]
    return RunPaused(
        reason="unmeasured",
        message=f"{len(failed)} of {len(rows)} items at {place_of(state) / 'parts'} could not be measured; first, "
        f"{first.item}: {getattr(first.outcome, 'message', '')}",
        hint=unmeasured_hint((row.outcome for row in failed), config),
    )


def _rows(state: SkillsState, place: str) -> Mapping[str, RolloutCompleted]:
    return state.rollouts.get(place, {})
