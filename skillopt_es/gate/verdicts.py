"""
The gate: what there is of two texts, which draws the rule wants next, and the verdict: who is current, who is best.

Scores that stand for an unmeasured text, as in SkillOpt: only where `skillopt.follow` names `stale_scores`.
Each such score is named in the events by the skill that it was measured under.
Pure: tasks and verdicts from the core of a state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from attrs import evolve

from skillopt_es.config import RunConfig
from skillopt_es.engine.algorithm import GatePolicy
from skillopt_es.engine.evaluations import begun_draw, mean_score, measure, selection, units_of
from skillopt_es.engine.work import AddUp, Contest, Evaluation, Rollouts, Work
from skillopt_es.errors import SettingRefused
from skillopt_es.events.catalog import (
    CandidateBuilt,
    CandidateGated,
    RolloutCompleted,
)
from skillopt_es.events.places import Place
from skillopt_es.events.values import (
    DRAWS_ONCE,
    RETESTS,
    TAKES_TIES,
    GateAction,
    GateVerdict,
    Measured,
    Score,
    SkillTree,
    exceeds,
)
from skillopt_es.gate.comparing import ROUNDING, Known, MoreDraws, Ruling, Side, compare
from skillopt_es.gate.early_stop import Begun, cannot_win, lost_early, next_wave, run_order
from skillopt_es.gate.noise import Draw
from skillopt_es.gate.rules import RULES, Rule
from skillopt_es.projections.item_results import families_of
from skillopt_es.projections.state import AnyState, Measurement, OutOfPlace, RunState, Standing, never_varies, there

S = TypeVar("S")


def rule_of(config: RunConfig) -> Rule:
    """The configured rule, with the settings that matter to it."""
    evaluation = config.evaluation
    rule = RULES[evaluation.gate_rule]
    return rule(
        **{field: getattr(evaluation, key) for field, key in rule.heeds.items()},
        judge_noise=evaluation.judge_noise,
        no_regression=evaluation.no_regression,
        min_items=evaluation.min_items,
    )


def too_little(config: RunConfig, validation_items: int) -> SettingRefused | None:
    """That the configured rule cannot be carried by so many validation items; nothing when it can."""
    used = config.evaluation.sel_env_num
    return rule_of(config).too_little(min(validation_items, used) if used else validation_items)


def judged(state: AnyState, config: RunConfig, contest: Contest) -> Ruling | MoreDraws:
    """What the configured rule says of a contest, from what was drawn so far."""
    current, candidate = _sides(state, config, contest)
    known = known_of(state, config, contest)
    found = rule_of(config).judge(current, candidate, config.worth, known)
    # A draw that ended early is looked at once the current text has every draw that it is held against.
    if isinstance(found, Ruling) or found.current or found.items:
        return found
    begun = state.partial.get((contest.candidate.hash, found.candidate))
    if begun is None:
        return found
    seen = _begun(begun.rows)
    if not cannot_win(rule_of(config), current, candidate, seen, contest.items, config.worth, known):
        return found
    return lost_early(rule_of(config), current, candidate, seen, contest.items, config.worth)


def known_of(state: AnyState, config: RunConfig, contest: Contest) -> Known:
    """What the run knows of its items so far, whatever the text, and what its verdicts may still take."""
    known = Known(families=families_of(state.types), flipped=state.flipped)
    if config.evaluation.gate_rule not in RETESTS:
        return known
    told = contest.told
    never = never_varies(state.repeated + told.again, len(state.flipped) + told.varied)
    return evolve(known, steady=never, spare=told.spare)


def leads(state: AnyState, config: RunConfig, contest: Contest) -> bool:
    """Whether the candidate's mean over all its draws is above that of the other text; both must have been measured."""
    return _is_above(config, _sides(state, config, contest))


def _begun(rows: Mapping[str, RolloutCompleted]) -> Begun:
    return Begun(
        measured={item: row.outcome for item, row in rows.items() if isinstance(row.outcome, Measured)},
        failed=frozenset(item for item, row in rows.items() if not isinstance(row.outcome, Measured)),
    )


def _sides(state: AnyState, config: RunConfig, contest: Contest) -> tuple[Side, Side]:
    """What the rule weighs: the current skill's evaluations, and the candidate's."""
    current = _side(state, config, contest.current, contest.current_place, contest.items)
    candidate = _side(state, config, contest.candidate, contest.candidate_place, contest.items)
    return current, candidate


def _side(state: AnyState, config: RunConfig, skill: SkillTree, place: Place, items: tuple[str, ...]) -> Side:
    known = state.measured.get(skill.hash)
    if known is None:
        return Side(bonus=config.bonus(skill))
    # By a rule that draws all items again, those that were not would count twice.
    lasts = config.evaluation.gate_rule in RETESTS
    drawn = [each for each in known.drawn if lasts or not each.in_part]
    earlier = sum(not place.holds(each.place) for each in drawn)
    # In the order of the split, however they were recorded: sums must not depend on it.
    draws: tuple[Draw, ...] = tuple({item: each.items[item] for item in items if item in each.items} for each in drawn)
    return Side(draws=draws, known=earlier, bonus=config.bonus(skill))


def draw_work(state: AnyState, config: RunConfig, contest: Contest) -> Work | None:
    """What has to be run before the rule can decide a contest; None when it can."""
    found = judged(state, config, contest)
    if isinstance(found, Ruling):
        return None
    current = [_of_current(config, contest, found.current)] if found.current else []
    candidate = [_of_candidate(config, contest, found.candidate)] if found.candidate else []
    if found.items:  # too few to be worth an early end
        return measure(state, [_in_part(state, each, found.items) for each in (*candidate, *current)])
    whole = state.steering.by_hand.get(contest.candidate.hash) == "take"  # a text that is taken has a score
    if whole or config.evaluation.early_stop == "off":
        return measure(state, [*candidate, *current])
    # `candidate` is not empty here: had the rule wanted the current text alone, `measure` would have something to run.
    return measure(state, current) or _wave(state, config, contest, candidate[0])


def _of_current(config: RunConfig, contest: Contest, repeat: int) -> Evaluation:
    return selection(config, contest.current_place, contest.current, contest.items, repeat=repeat)


def _of_candidate(config: RunConfig, contest: Contest, repeat: int) -> Evaluation:
    return selection(config, contest.candidate_place, contest.candidate, contest.items, repeat=repeat)


def _in_part(state: AnyState, evaluation: Evaluation, items: tuple[str, ...]) -> Evaluation:
    """A further draw of these items; the others count as in the first one, if that measured them."""
    known = state.measured[evaluation.skill.hash].items
    carried = tuple(item for item in evaluation.items if item in known and item not in items)
    asked = tuple(item for item in evaluation.items if item in known or item in items)
    return evolve(evaluation, items=asked, carried=carried, carried_from=evaluation.skill.hash)


def _wave(state: AnyState, config: RunConfig, contest: Contest, evaluation: Evaluation) -> Work:
    """The next items of a candidate's draw, or its end; the current skill's draws for this round are all there."""
    current, candidate = _sides(state, config, contest)
    rule, begun = rule_of(config), begun_draw(state, evaluation)
    here: Mapping[str, RolloutCompleted] = state.rollouts.get(evaluation.place, {})
    before = {} if begun is None else begun.rows
    theirs, _ = rule.opposed(current, candidate)
    order = tuple(item for item in run_order(evaluation.items, theirs, config.worth) if item not in before)
    waiting, whole = next_wave(order, here, config.evaluation.early_stop_wave)
    if not waiting:
        return AddUp(evaluation)
    so_far, known = _begun({**before, **here}), known_of(state, config, contest)
    if whole and cannot_win(rule, current, candidate, so_far, evaluation.items, config.worth, known):
        return AddUp(evolve(evaluation, stopped=True))
    return Rollouts(tuple(units_of(state, evaluation, waiting)))


def too_large(config: RunConfig, skill: SkillTree) -> str:
    """Why a text is too large for a candidate; empty when it is not."""
    most = config.evaluation.max_size
    size = sum(map(len, skill.files.values()))
    if not most or size <= most:
        return ""
    return f"{size} characters, and evaluation.max_size is {most}"


def weighed(state: AnyState, config: RunConfig, contest: Contest, best: Contest, *, use_gate: bool) -> GateVerdict:
    """
    The verdict on a candidate against the current skill, and whether it is the best one: `best` is that contest.

    Everything that the rule wants of the first contest must have been drawn; for the second one nothing is drawn.
    """
    stale = contest.standing.stale_from
    as_current = counts_as_measured(state, config, contest.standing, contest.candidate)
    place = first_place(state, stale if as_current else contest.candidate.hash)
    if stale or not use_gate:
        found = _against_what_is_known(state, config, contest, best, use_gate=use_gate)
    else:
        found = _by_rule(state, config, contest, best)
    return evolve(
        found,
        metric=config.evaluation.gate_metric,
        best_value=best.standing.value,
        known_from="" if place == contest.candidate_place else place,
        stale_from=stale,
    )


def _by_rule(state: AnyState, config: RunConfig, contest: Contest, best: Contest) -> GateVerdict:
    ruling = judged(state, config, contest)
    if not isinstance(ruling, Ruling):
        raise OutOfPlace("the rule wants more draws before its verdict")
    candidate, current = state.measured.get(contest.candidate.hash), state.measured[contest.current.hash]
    seen, rule = ruling.comparison, config.evaluation.gate_rule
    scores = (seen.candidate, seen.current)
    once = rule in DRAWS_ONCE
    if once and candidate is not None:
        common, *whole = on_common_items(candidate, current)
        scores = (whole[0], whole[1]) if common == len(seen.items) else scores
    accepted = ruling.verdict == "accept"
    rises = accepted and _rises(state, config, best)
    if best.current.hash == contest.current.hash:  # the best text has just met its rule
        new_best = accepted and (rises or contest.told.ties_lead)
    else:
        new_best = accepted and is_better(state, config, best)
    return GateVerdict(
        action="accept_new_best" if new_best and rises else ruling.verdict,
        new_best=new_best,
        candidate_score=scores[0],
        candidate_value=seen.candidate_value,
        current_score=scores[1],
        current_value=seen.current_value,
        compared=len(seen.items),
        won=seen.won,
        lost=seen.lost,
        rule=rule,
        reason="" if once and ruling.reason in ("better", "not_better") else ruling.reason,
        repeats=seen.candidate_draws,
        current_repeats=seen.current_draws,
        error=seen.error,
        exact=ruling.exact,
        retested=ruling.again,
    )


def _against_what_is_known(
    state: AnyState, config: RunConfig, contest: Contest, best: Contest, *, use_gate: bool
) -> GateVerdict:
    """Without a gate, or against the score that stands for the current skill: one draw, and no rule to it."""
    standing = contest.standing
    as_current = counts_as_measured(state, config, standing, contest.candidate)
    candidate = state.measured[standing.stale_from if as_current else contest.candidate.hash]
    current = state.measured.get(standing.stale_from or standing.skill.hash)
    if current is None:
        compared, candidate_score, current_score = len(candidate.items), candidate.score, None
    else:
        compared, candidate_score, current_score = on_common_items(candidate, current)
    current_value = None if current_score is None else standing_value(standing, current_score, config)
    value = _stands_for(standing) if as_current else config.gate_value(candidate_score, contest.candidate)
    won, lost = _turned(candidate, current)
    beats_best = not as_current and is_better(state, config, best)
    action = verdict(value, current_value, beats_best, use_gate=use_gate)
    return GateVerdict(
        action=action,
        new_best=action == "accept_new_best" or (not use_gate and exceeds(value, best.standing.value)),
        candidate_score=candidate_score,
        candidate_value=value,
        current_score=current_score,
        current_value=current_value,
        compared=compared,
        won=won,
        lost=lost,
        rule="strict" if use_gate else None,
    )


def verdict(value: float, current: float | None, better_than_best: bool, *, use_gate: bool) -> GateAction:
    """A candidate must be strictly better than the current skill to be taken, than the best to be the best."""
    if not use_gate:
        return "force_accept"
    # A tie keeps the current text, as in the original.
    if value <= there(current, "value of the current skill"):
        return "reject"
    return "accept_new_best" if better_than_best else "accept"


def first_place(state: AnyState, skill: str) -> str:
    """Where a text was first measured, or begun to be."""
    known = state.measured.get(skill)
    return state.partial[skill, 1].place if known is None else known.place


def is_better(state: AnyState, config: RunConfig, contest: Contest) -> bool:
    """Whether the rule takes a measured candidate; where it would have to draw first, whether its mean is higher."""
    if contest.candidate.hash == contest.current.hash:
        return False
    if contest.current.hash not in state.measured:
        return True
    ruling = judged(state, config, contest)
    if not isinstance(ruling, Ruling):
        return leads(state, config, contest)
    return ruling.verdict == "accept" and (_rises(state, config, contest) or contest.told.ties_lead)


def _rises(state: AnyState, config: RunConfig, contest: Contest) -> bool:
    """Whether a candidate that its rule takes is better than the other text, not as good; else as `is_better` says."""
    if config.evaluation.gate_rule not in TAKES_TIES or contest.current.hash not in state.measured:
        return True
    if not isinstance(judged(state, config, contest), Ruling):
        return leads(state, config, contest)
    return _is_above(config, _sides(state, config, contest))


def _is_above(config: RunConfig, sides: tuple[Side, Side]) -> bool:
    """Whether the candidate's mean is above the other's by more than sums of floats err."""
    current, candidate = sides
    return compare(current.draws, candidate.draws, current.bonus, candidate.bonus, config.worth).gain > ROUNDING


def on_common_items(candidate: Measurement, current: Measurement) -> tuple[int, Score, Score]:
    """Both scores over the items that were measured under both skills."""
    common = [item for item in candidate.items if item in current.items]
    if len(common) == len(candidate.items) == len(current.items):
        return len(common), candidate.score, current.score
    left = mean_score([candidate.items[item] for item in common])
    right = mean_score([current.items[item] for item in common])
    return len(common), left, right


def _turned(candidate: Measurement, current: Measurement | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The items that the candidate won and lost against the current skill, by their hard score."""
    if current is None:
        return (), ()
    common = [item for item in candidate.items if item in current.items]
    both = [(item, candidate.items[item].hard, current.items[item].hard) for item in common]
    won = tuple(item for item, new, old in both if new > old)
    lost = tuple(item for item, new, old in both if new < old)
    return won, lost


def kept_score(current: Standing, placed: SkillTree, config: RunConfig) -> str:
    """The skill whose score stands for a text that nobody measured; "" where the score is unknown instead."""
    if not config.follows("stale_scores") or placed.hash == current.skill.hash:
        return ""
    return current.stale_from or current.skill.hash


def counts_as_measured(state: AnyState, config: RunConfig, current: Standing, candidate: SkillTree) -> bool:
    """Whether a candidate is the current text, which has an older text's score since its guidance was forced."""
    return (
        config.evaluation.use_gate
        and candidate.hash == current.skill.hash
        and candidate.hash not in state.measured
        and bool(current.stale_from)
        and current.origin.kind == "slow_update"
    )


def standing_value(standing: Standing, score: Score, config: RunConfig) -> float:
    """What a candidate must exceed: the current skill's score on the same items, or the old one that stands for it."""
    return _stands_for(standing) if standing.stale_from else config.gate_value(score, standing.skill)


def _stands_for(standing: Standing) -> float:
    """What the score counts that stands for a text that was not measured."""
    return there(standing.value, "value that stands for the current skill")


def candidate_contest(state: RunState[S], config: RunConfig, built: CandidateBuilt, policy: GatePolicy[S]) -> Contest:
    """The candidate that waits for its verdict against the current skill, drawn at the open step's places."""
    place, terms = policy.place(state), policy.terms(state, config)
    return Contest(
        candidate=built.candidate,
        standing=state.current,
        items=terms.items,
        candidate_place=place.gate,
        current_place=place.current,
        told=terms.told,
    )


def candidate_gated(
    state: RunState[S], config: RunConfig, built: CandidateBuilt, policy: GatePolicy[S]
) -> CandidateGated:
    """The verdict over that candidate, which ends its step; everything that the rule wants must have been drawn."""
    contest, config = candidate_contest(state, config, built, policy), policy.terms(state, config).config
    found = weighed(state, config, contest, contest.against(state.best), use_gate=config.evaluation.use_gate)
    objection = policy.objection(state, built, config) if found.taken and found.by_gate else None
    if objection is not None:
        found = evolve(found, action="reject", new_best=False, reason=objection.reason)
    candidate = contest.candidate.hash
    return CandidateGated(
        step=built.step,
        candidate=candidate,
        verdict=_by_hand(found, state, candidate),
        against=() if objection is None else objection.items,
    )


def _by_hand(found: GateVerdict, state: AnyState, candidate: str) -> GateVerdict:
    """The verdict, unless somebody has said otherwise; its numbers stay, so that everybody sees what was overruled."""
    hand = state.steering.by_hand.get(candidate)
    if hand is None or (hand == "take") == found.taken:
        return found
    if hand == "refuse":
        return evolve(found, action="reject", new_best=False, reason="by_hand")
    better = found.candidate_value is not None and exceeds(found.candidate_value, state.best.value)
    return evolve(found, action="force_accept", new_best=better, reason="by_hand")
