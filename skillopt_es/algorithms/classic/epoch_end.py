"""
What is decided at an epoch's end: the items compared, the pairs that turned, the fate of guidance, and that it is over.

An epoch's first and last skill are tried on the same tasks. Pure functions of the state.
"""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from skillopt_es.algorithms.classic.evaluations import guidance_contest, judged_guidance
from skillopt_es.algorithms.classic.phases import open_epoch, owed_epoch
from skillopt_es.algorithms.classic.state import ClassicState, EndedEpoch, EpochState
from skillopt_es.algorithms.classic.taint import untrusted_guidance
from skillopt_es.config import RunConfig
from skillopt_es.engine.algorithm import Judging
from skillopt_es.engine.draws import comparison_candidates, comparison_sample
from skillopt_es.events.catalog import (
    ComparisonDrawn,
    ComparisonExtended,
    EpochCompleted,
    Event,
    MetaSkillWritten,
    RolloutCompleted,
    SlowUpdateApplied,
    SlowUpdateProposed,
)
from skillopt_es.events.places import Place
from skillopt_es.events.values import GateVerdict, Measured, Pair, SkillTree
from skillopt_es.gate.verdicts import kept_score, too_large
from skillopt_es.projections.state import there
from skillopt_es.skill.regions import with_slow_placeholder


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


def selected_pairs(state: ClassicState, end: EndedEpoch, config: RunConfig) -> tuple[Compared, ...]:
    """The compared items that the pair policy keeps, at most as many as were asked for."""
    optimizer = config.optimizer
    kept = _KEPT[optimizer.longitudinal_pair_policy]
    return tuple(row for row in compare(state, end, config) if row.pair.category in kept)[
        : optimizer.slow_update_samples
    ]


def compare(state: ClassicState, end: EndedEpoch, config: RunConfig) -> tuple[Compared, ...]:
    """The drawn items that were measured under both skills, in drawn order."""
    place = Place.of_epoch(end.epoch.number).slow
    current = state.rollouts[place.current]
    # Where both are one text, it was tried once.
    previous = state.rollouts.get(place.previous, current)
    found = []
    for item in end.comparison.items:
        before, now = previous[item], current[item]
        if isinstance(before.outcome, Measured) and isinstance(now.outcome, Measured):
            pair = _pair(item, before=config.passes(before.outcome), now=config.passes(now.outcome))
            found.append(Compared(pair, before, now))
    return tuple(found)


def _pair(item: str, *, before: bool, now: bool) -> Pair:
    if before:
        return Pair(item, "stable_success" if now else "regressed")
    return Pair(item, "improved" if now else "persistent_fail")


def place_slow_block(state: ClassicState, config: RunConfig) -> Event:
    """The first epoch's end: an empty place for guidance in the skill."""
    skill = state.current.skill
    placed = skill.with_text(with_slow_placeholder(skill.text))
    return SlowUpdateApplied(
        epoch=1,
        skill=placed,
        verdict=_ungated("placeholder", state, config, placed),
        candidate=placed.hash,
    )


def _ungated(
    action: Literal["placeholder", "force_accept"], state: ClassicState, config: RunConfig, placed: SkillTree
) -> GateVerdict:
    """A text that is taken unmeasured, with the score that it had before or goes on with."""
    known = state.measured.get(placed.hash)
    return GateVerdict(
        action=action,
        candidate_score=known.score if known else None,
        candidate_value=config.gate_value(known.score, placed) if known else None,
        stale_from=kept_score(state.current, placed, config),
    )


def skip_first_meta_skill(state: ClassicState, config: RunConfig) -> Event:
    """The first epoch writes no meta skill."""
    return MetaSkillWritten(epoch=1, result="first_epoch")


def draw_comparison(state: ClassicState, epoch: EpochState, config: RunConfig) -> Event:
    """The tasks on which an epoch's first and last skill are compared."""
    items = comparison_sample(
        state.started.splits.train,
        epoch=epoch.number,
        seed=config.train.seed,
        count=config.optimizer.slow_update_samples,
    )
    return ComparisonDrawn(
        epoch=epoch.number,
        items=items,
        previous=epoch.first_skill.hash,
        current=state.current.skill.hash,
    )


def extend_comparison(state: ClassicState, end: EndedEpoch, config: RunConfig) -> Event:
    """More tasks for the comparison."""
    return ComparisonExtended(epoch=end.epoch.number, items=more_to_compare(state, end, config))


def more_to_compare(state: ClassicState, end: EndedEpoch, config: RunConfig) -> tuple[str, ...]:
    """The next tasks to compare, when the policy wants turned ones and there are too few; none when that is all."""
    optimizer = config.optimizer
    drawn = end.comparison
    one_text = drawn.one_text and not config.follows("epoch_end")
    if optimizer.longitudinal_pair_policy != "changed" or one_text:
        return ()
    missing = optimizer.slow_update_samples - len(selected_pairs(state, end, config))
    candidates = comparison_candidates(
        state.started.splits.train, epoch=end.epoch.number, seed=config.train.seed, compared=drawn.items
    )
    return candidates[: max(0, missing)]


def apply_slow_update(state: ClassicState, epoch: EpochState, config: RunConfig) -> Event:
    """What becomes of an epoch's guidance: forced, gated, unchanged or postponed."""
    return _applied(state, there(epoch.proposed, "guidance"), config)


def _applied(state: ClassicState, proposed: SlowUpdateProposed, config: RunConfig) -> SlowUpdateApplied:
    current = state.current.skill
    candidate = proposed.candidate
    if candidate is None:
        return SlowUpdateApplied(epoch=proposed.epoch, skill=current, verdict=GateVerdict(action="postponed"))
    if candidate.hash == current.hash:
        unchanged = GateVerdict(action="unchanged")
        return SlowUpdateApplied(epoch=proposed.epoch, skill=current, verdict=unchanged, guidance=proposed.guidance)
    verdict = _guidance_verdict(state, config, proposed, candidate)
    return SlowUpdateApplied(
        epoch=proposed.epoch,
        skill=candidate if verdict.taken else current,
        verdict=verdict,
        guidance=proposed.guidance,
        candidate=candidate.hash,
    )


def _guidance_verdict(
    state: ClassicState, config: RunConfig, proposed: SlowUpdateProposed, candidate: SkillTree
) -> GateVerdict:
    if not config.optimizer.slow_update_gate_with_selection:
        return _ungated("force_accept", state, config, candidate)
    if too_large(config, candidate):
        return GateVerdict(action="reject", reason="too_large")
    if untrusted_guidance(state, proposed, config):
        return GateVerdict(action="reject", reason="untrusted_only")
    return judged_guidance(state, config, proposed.epoch, candidate)


def apply_late_slow_update(state: ClassicState, config: RunConfig) -> Event:
    """The same for an epoch that is over."""
    return apply_slow_update(state, owed_epoch(state), config)


def complete_epoch(state: ClassicState, epoch: EpochState, config: RunConfig) -> Event:
    """The epoch is over."""
    return EpochCompleted(epoch=epoch.number)


def judging(state: ClassicState, config: RunConfig, event: Event) -> Judging | None:
    """What the gate decided about guidance, in the state before it; a finished epoch's is judged as its own was."""
    if not isinstance(event, SlowUpdateApplied) or not event.verdict.by_gate:
        return None
    owed = state.algorithm.owed
    late = owed is not None and event.epoch == owed.epoch.number
    proposed = there((owed_epoch(state) if late else open_epoch(state)).proposed, "guidance")
    candidate = there(proposed.candidate, "skill with guidance")
    return Judging(
        number=event.epoch,
        contest=guidance_contest(state, config, event.epoch, candidate),
        refused=lambda config: bool(too_large(config, candidate)) or untrusted_guidance(state, proposed, config),
        decide=lambda config: _applied(state, proposed, config),
    )
