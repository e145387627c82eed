"""
Two texts that the gate compares: what is there of both, what the rule says of it, and which draws it wants next.

Exact early rejection: an evaluation runs in waves, and ends where its candidate cannot win any more.

A score is at most 1. So an item that was not run adds at most what is missing to 1 in the current skill's score; once
even that would not put the candidate ahead, the whole evaluation would reject it, too. What is stated then is a bound.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from attrs import evolve, frozen

from skillopt_es.config import RunConfig
from skillopt_es.engine.evaluations import Contest, begun_draw, measure, selection, units_of
from skillopt_es.engine.run_data import RunData
from skillopt_es.engine.tasks import AddUp, Evaluation, Rollouts, Task
from skillopt_es.errors import SettingRefused
from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.places import Place
from skillopt_es.events.values import Measured, SkillTree
from skillopt_es.gate.compare import Comparison, Draw, Worth, compare
from skillopt_es.gate.rules import Known, MoreDraws, Rule, Ruling, Side, heeded, judge, too_little_for
from skillopt_es.projections.item_results import families_of
from skillopt_es.projections.state import AnyState, Measurement


def rule_of(config: RunConfig) -> Rule:
    """The configured rule, with the settings that matter to it."""
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
        return AddUp(evolve(evaluation, stopped=True))
    return Rollouts(tuple(units_of(evaluation, waiting)))


def too_large(run: RunData, skill: SkillTree) -> str:
    """Why a text is too large for a candidate; empty when it is not."""
    most = run.config.evaluation.max_size
    size = sum(map(len, skill.files.values()))
    if not most or size <= most:
        return ""
    return f"{size} characters, and evaluation.max_size is {most}"


_BEST = Measured(1.0, 1.0)
# What rounding alone can leave of a sum must not decide.
_ROUNDING = 1e-9


@frozen(kw_only=True)
class Begun:
    """A candidate's draw that is not complete: what was measured of it, and the items that failed."""

    measured: Draw
    failed: Collection[str] = ()


def run_order(items: tuple[str, ...], current: tuple[Draw, ...], worth: Worth) -> tuple[str, ...]:
    """The items, those first on which the current skill did worst; at the end those on which it was not measured."""

    def place(item: str) -> float:
        values = _values(current, item, worth)
        return math.fsum(values) / len(values) if values else math.inf

    return tuple(sorted(items, key=place))


def next_wave(order: tuple[str, ...], done: Collection[str], size: int) -> tuple[tuple[str, ...], bool]:
    """The items to run next, and whether none of their wave has been run; no items when all are done."""
    for start in range(0, len(order), size):
        wave = order[start : start + size]
        waiting = tuple(item for item in wave if item not in done)
        if waiting:
            return waiting, len(waiting) == len(wave)
    return (), False


def cannot_win(rule: Rule, current: Side, candidate: Side, begun: Begun, items: tuple[str, ...], worth: Worth) -> bool:
    """Whether the candidate loses the round of its next draw whatever the results of the items that were not run."""
    theirs, ours = rule.kind.opposed(current, candidate)
    bonus = candidate.bonus - current.bonus
    rows = [_most(item, theirs, ours, begun, bonus, worth) for item in items]
    known = [row for row in rows if row is not None]
    most = math.fsum(known)
    if rule.kind.takes_ties:
        return most < -2 * _ROUNDING * len(known)
    if rule.kind.pools:
        return most < 0 or (most == 0 and bonus <= 0)
    if _adds_up_exactly(theirs, begun, bonus, worth):
        return most <= 0
    # Where parts of a point are summed, a tie may look like either: only a clear loss ends it.
    return most <= -_ROUNDING * len(known) and bool(known)


def _most(
    item: str, theirs: tuple[Draw, ...], ours: tuple[Draw, ...], begun: Begun, bonus: float, worth: Worth
) -> float | None:
    """By how much an item can put the candidate ahead; None where the current skill was not measured on it."""
    against = _values(theirs, item, worth)
    if not against:
        return None
    behind = bonus - math.fsum(against) / len(against)
    earlier = _values(ours, item, worth)
    if item in begun.measured:
        earlier = [*earlier, worth(begun.measured[item].hard, begun.measured[item].soft)]
    elif item not in begun.failed:
        if not earlier:
            return max(0.0, worth(1.0, 1.0) + behind)  # it may fail, and then it does not count
        earlier = [*earlier, worth(1.0, 1.0)]
    return math.fsum(earlier) / len(earlier) + behind if earlier else 0.0


def _adds_up_exactly(theirs: tuple[Draw, ...], begun: Begun, bonus: float, worth: Worth) -> bool:
    """Whether only whole points are compared, so that a tie is a tie in whatever order they are summed."""
    whole = (0.0, 1.0)
    drawn = [outcome for draw in (*theirs, begun.measured) for outcome in draw.values()]
    values = (worth(outcome.hard, outcome.soft) for outcome in (*drawn, _BEST))
    return bonus == 0 and all(value in whole for value in values)


def _values(draws: tuple[Draw, ...], item: str, worth: Worth) -> list[float]:
    return [worth(draw[item].hard, draw[item].soft) for draw in draws if item in draw]


def lost_early(
    rule: Rule, current: Side, candidate: Side, begun: Begun, items: tuple[str, ...], worth: Worth
) -> Ruling:
    """The ruling on a candidate that cannot win; its score is the most that the whole evaluation could have given."""
    theirs, ours = rule.kind.stated(current, candidate)
    best: Mapping[str, Measured] = {item: begun.measured.get(item, _BEST) for item in items if item not in begun.failed}
    bound = compare(theirs, (*ours, best), current.bonus, candidate.bonus, worth)
    seen = compare(theirs, (*ours, begun.measured), current.bonus, candidate.bonus, worth)
    most = evolve(bound.candidate, measured=seen.candidate.measured)
    comparison: Comparison = evolve(bound, items=seen.items, candidate=most, error=None, won=seen.won, lost=seen.lost)
    verdict, reason = rule.kind.lost_later if candidate.draws else rule.kind.lost_first
    return Ruling(verdict=verdict, reason=reason, comparison=comparison, exact=False)
