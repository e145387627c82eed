"""The decisions at the end of an epoch: what is compared, and what becomes of guidance and memory."""

from __future__ import annotations

from skillopt_es.engine import sampling
from skillopt_es.engine.run_data import RunData
from skillopt_es.events.catalog import (
    ComparisonDrawn,
    ComparisonExtended,
    EpochCompleted,
    Event,
    MetaSkillWritten,
    SlowUpdateApplied,
)
from skillopt_es.events.places import Place
from skillopt_es.events.values import SkillTree
from skillopt_es.gate.draws import too_large
from skillopt_es.gate.stale import kept_score
from skillopt_es.gate.verdicts import first_place, weighed
from skillopt_es.programs.classic.comparison import selected_pairs
from skillopt_es.programs.classic.contests import guidance_contest
from skillopt_es.programs.classic.state import ClassicState, at_owed_epoch
from skillopt_es.programs.classic.taint import untrusted_guidance
from skillopt_es.projections.state import Standing
from skillopt_es.skill.regions import with_slow_placeholder


def place_slow_block(state: ClassicState, run: RunData) -> Event:
    """The first epoch's end: an empty place for guidance in the skill."""
    assert state.current is not None
    skill = state.current.skill
    placed = skill.with_text(with_slow_placeholder(skill.text))
    known = state.measured.get(placed.hash)
    return SlowUpdateApplied(
        epoch=1,
        action="placeholder",
        skill=placed,
        candidate=placed.hash,
        candidate_score=known.score if known else None,
        candidate_value=run.gate_value(known.score, placed) if known else None,
        stale_from=kept_score(state.current, placed, run),
    )


def skip_first_memory(state: ClassicState, run: RunData) -> Event:
    """The first epoch writes no memory."""
    return MetaSkillWritten(epoch=1, result="first_epoch")


def draw_comparison(state: ClassicState, run: RunData) -> Event:
    """The tasks on which an epoch's first and last skill are compared."""
    assert state.program.epoch is not None
    assert state.current is not None
    items = sampling.comparison_sample(
        run.started.splits.train,
        epoch=state.program.epoch.number,
        seed=run.config.train.seed,
        count=run.config.optimizer.slow_update_samples,
    )
    return ComparisonDrawn(
        epoch=state.program.epoch.number,
        items=items,
        previous=state.program.epoch.first_skill.hash,
        current=state.current.skill.hash,
    )


def extend_comparison(state: ClassicState, run: RunData) -> Event:
    """More tasks for the comparison."""
    assert state.program.epoch is not None
    return ComparisonExtended(epoch=state.program.epoch.number, items=more_to_compare(state, run))


def more_to_compare(state: ClassicState, run: RunData) -> tuple[str, ...]:
    """The next tasks to compare, when the policy wants turned ones and there are too few; none when that is all."""
    assert state.program.epoch is not None
    assert state.program.epoch.comparison is not None
    optimizer = run.config.optimizer
    drawn = state.program.epoch.comparison
    one_text = drawn.previous == drawn.current and not optimizer.compare_equal_skills
    if optimizer.longitudinal_pair_policy != "changed" or one_text:
        return ()
    missing = optimizer.slow_update_samples - len(selected_pairs(state, run))
    candidates = sampling.comparison_candidates(
        run.started.splits.train, epoch=state.program.epoch.number, seed=run.config.train.seed, compared=drawn.items
    )
    return candidates[: max(0, missing)]


def apply_slow_update(state: ClassicState, run: RunData) -> Event:
    """What becomes of an epoch's guidance: forced, gated, unchanged or postponed."""
    assert state.program.epoch is not None
    assert state.program.epoch.proposed is not None
    assert state.current is not None
    proposed = state.program.epoch.proposed
    if proposed.candidate is None:
        return SlowUpdateApplied(epoch=proposed.epoch, action="postponed", skill=state.current.skill)
    if proposed.candidate.hash == state.current.skill.hash:
        return SlowUpdateApplied(
            epoch=proposed.epoch, action="unchanged", skill=state.current.skill, guidance=proposed.guidance
        )
    known = state.measured.get(proposed.candidate.hash)
    if not run.config.optimizer.slow_update_gate_with_selection:
        return SlowUpdateApplied(
            epoch=proposed.epoch,
            action="force_accept",
            skill=proposed.candidate,
            guidance=proposed.guidance,
            candidate=proposed.candidate.hash,
            candidate_score=known.score if known else None,
            candidate_value=run.gate_value(known.score, proposed.candidate) if known else None,
            stale_from=kept_score(state.current, proposed.candidate, run),
        )
    refused = "too_large" if too_large(run, proposed.candidate) else ""
    if refused or untrusted_guidance(state, run):
        return SlowUpdateApplied(
            epoch=proposed.epoch,
            action="reject",
            skill=state.current.skill,
            guidance=proposed.guidance,
            candidate=proposed.candidate.hash,
            reason=refused or "untrusted_only",
        )
    return _gated_slow_update(state, run, proposed.candidate, state.current)


def apply_late_slow_update(state: ClassicState, run: RunData) -> Event:
    """The same for an epoch that is over."""
    return apply_slow_update(at_owed_epoch(state), run)


def _gated_slow_update(state: ClassicState, run: RunData, candidate: SkillTree, current: Standing) -> Event:
    assert state.program.epoch is not None
    assert state.program.epoch.proposed is not None
    assert state.best is not None
    proposed, measured_at = state.program.epoch.proposed, first_place(state, candidate.hash)
    found = weighed(state, run, guidance_contest(state, candidate), use_gate=True)
    assert found.action != "force_accept"
    return SlowUpdateApplied(
        epoch=proposed.epoch,
        action=found.action,
        skill=candidate if found.action in ("accept", "accept_new_best") else current.skill,
        guidance=proposed.guidance,
        candidate=candidate.hash,
        candidate_score=found.candidate_score,
        candidate_value=found.candidate_value,
        current_value=found.current_value,
        best_value=state.best.value,
        known_from="" if measured_at == Place.of_epoch(proposed.epoch).slow.gate else measured_at,
        stale_from=current.stale_from,
        rule=found.rule,
        reason=found.reason,
        draws=found.draws,
        current_draws=found.current_draws,
        error=found.error,
        exact=found.exact,
    )


def complete_epoch(state: ClassicState, run: RunData) -> Event:
    """The epoch is over."""
    assert state.program.epoch is not None
    return EpochCompleted(epoch=state.program.epoch.number)
