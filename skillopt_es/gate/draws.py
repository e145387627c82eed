"""Two texts that the gate compares: what is there of both, what the rule says of it, and which draws it wants next."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve as replace

from skillopt_es.config import RunConfig
from skillopt_es.engine.evaluations import Contest, begun_draw, measure, selection, units_of
from skillopt_es.engine.run_data import RunData
from skillopt_es.engine.tasks import AddUp, Evaluation, Rollouts, Task
from skillopt_es.errors import SettingRefused
from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.places import Place
from skillopt_es.events.values import Measured, SkillTree
from skillopt_es.gate.compare import Draw, compare
from skillopt_es.gate.early_stop import Begun, cannot_win, lost_early, next_wave, run_order
from skillopt_es.gate.rules import Known, MoreDraws, Rule, Ruling, Side, heeded, judge, too_little_for
from skillopt_es.projections.item_results import families_of
from skillopt_es.projections.state import AnyState, Measurement


def rule_of(config: RunConfig) -> Rule:
    """The configured rule, as far as the settings say something to it."""
    evaluation = config.evaluation
    return heeded(
        Rule(
            name=evaluation.gate_rule,
            draws=evaluation.gate_draws,
            standard_errors=evaluation.gate_standard_errors,
            noise=evaluation.gate_noise,
            no_regression=evaluation.no_regression,
            min_items=evaluation.min_items,
        )
    )


def too_little(config: RunConfig, validation_items: int) -> SettingRefused | None:
    """That the configured rule cannot be carried by so many validation items; nothing when it can."""
    used = config.evaluation.sel_env_num
    return too_little_for(rule_of(config), min(validation_items, used) if used else validation_items)


def judged(state: AnyState, run: RunData, contest: Contest) -> Ruling | MoreDraws:
    """What the configured rule says of a contest, from what was drawn so far."""
    current, candidate = _sides(state, run, contest)
    found = judge(rule_of(run.config), current, candidate, run.worth, known_of(state))
    if isinstance(found, Ruling) or found.current:
        return found
    begun = state.partial.get((contest.candidate.hash, found.candidate))
    if begun is None:
        return found
    seen = _begun(begun.rows)
    if not cannot_win(rule_of(run.config), current, candidate, seen, run.selection_items, run.worth):
        return found
    return lost_early(rule_of(run.config), current, candidate, seen, run.selection_items, run.worth)


def known_of(state: AnyState) -> Known:
    """What the run knows of its validation items so far, whatever the text."""
    return Known(families=families_of(state.types), flipped=state.flipped)


def leads(state: AnyState, run: RunData, contest: Contest) -> bool:
    """Whether the candidate's mean over all its draws is above that of the other text; both must have been measured."""
    current, candidate = _sides(state, run, contest)
    return compare(current.draws, candidate.draws, current.bonus, candidate.bonus, run.worth).gain > 0


def _begun(rows: Mapping[str, RolloutCompleted]) -> Begun:
    return Begun(
        measured={item: row.outcome for item, row in rows.items() if isinstance(row.outcome, Measured)},
        failed=frozenset(item for item, row in rows.items() if not isinstance(row.outcome, Measured)),
    )


def _sides(state: AnyState, run: RunData, contest: Contest) -> tuple[Side, Side]:
    current = _side(state.measured.get(contest.current.hash), contest.current, contest.current_place, run)
    candidate = _side(state.measured.get(contest.candidate.hash), contest.candidate, contest.candidate_place, run)
    return current, candidate


def _side(known: Measurement | None, skill: SkillTree, place: Place, run: RunData) -> Side:
    if known is None:
        return Side(bonus=run.bonus(skill))
    earlier = sum(not place.holds(each.place) for each in known.drawn)
    draws = tuple(_in_order(each.items, run) for each in known.drawn)
    return Side(draws=draws, known=earlier, bonus=run.bonus(skill))


def _in_order(items: Draw, run: RunData) -> Draw:
    """The items in the order of the split, however they were recorded: sums must not depend on it."""
    return {item: items[item] for item in run.selection_items if item in items}


def draw_task(state: AnyState, run: RunData, contest: Contest) -> Task | None:
    """What has to be run before the rule can decide a contest; None when it can."""
    found = judged(state, run, contest)
    if isinstance(found, Ruling):
        return None
    current = [selection(run, contest.current_place, contest.current, draw=found.current)] if found.current else []
    candidate = (
        [selection(run, contest.candidate_place, contest.candidate, draw=found.candidate)] if found.candidate else []
    )
    if run.config.evaluation.early_stop == "off":
        return measure(state, [*candidate, *current])
    return measure(state, current) or _wave(state, run, contest, candidate[0])


def _wave(state: AnyState, run: RunData, contest: Contest, evaluation: Evaluation) -> Task:
    """The next items of a candidate's draw, or its end; the current skill's draws for this round are all there."""
    current, candidate = _sides(state, run, contest)
    rule, begun = rule_of(run.config), begun_draw(state, evaluation)
    here: Mapping[str, RolloutCompleted] = state.rollouts.get(evaluation.place, {})
    before = {} if begun is None else begun.rows
    theirs, _ = rule.kind.opposed(current, candidate)
    order = tuple(item for item in run_order(evaluation.items, theirs, run.worth) if item not in before)
    waiting, whole = next_wave(order, here, run.config.evaluation.early_stop_wave)
    if not waiting:
        return AddUp(evaluation)
    if whole and cannot_win(rule, current, candidate, _begun({**before, **here}), evaluation.items, run.worth):
        return AddUp(replace(evaluation, stopped=True))
    return Rollouts(tuple(units_of(evaluation, waiting)))


def too_large(run: RunData, skill: SkillTree) -> str:
    """Why a text is larger than a candidate may be; empty when it is not."""
    most = run.config.evaluation.max_size
    size = sum(map(len, skill.files.values()))
    if not most or size <= most:
        return ""
    return f"{size} characters, and evaluation.max_size is {most}"
