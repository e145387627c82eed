"""The events of an epoch's end of an imported run: its comparison, slow update and meta skill."""

from __future__ import annotations

from typing import Literal, cast, get_args

from skillopt_es.algorithms.classic.phases import open_epoch
from skillopt_es.algorithms.imported.original_edits import guided_by_original
from skillopt_es.events.catalog import (
    ComparisonDrawn,
    ComparisonExtended,
    MetaSkillWritten,
    SlowUpdateApplied,
    SlowUpdateProposed,
)
from skillopt_es.events.places import Place
from skillopt_es.events.values import GateAction, GateVerdict, Pair, SkillTree
from skillopt_es.interchange.builder import Builder
from skillopt_es.interchange.layout import skill_hash
from skillopt_es.interchange.original import Epoch, MetaResult, SlowResult
from skillopt_es.skill.regions import with_slow_guidance, with_slow_placeholder

Category = Literal["improved", "regressed", "persistent_fail", "stable_success"]
_CATEGORIES: frozenset[str] = frozenset(get_args(Category))
_NO_REASON = "the original does not say why there is none"


def import_epoch_end(build: Builder, epoch: int) -> None:
    """Adds what was done at an epoch's end, as far as it is there."""
    end = build.original.epochs.get(epoch)
    asked = build.original.config
    if (end is None or end.slow is None) and asked.get("use_slow_update"):
        build.gap(Place.of_epoch(epoch).slow, "what came of the slow update", "slow_result.json is not there")
    if end is None:
        return
    _comparison(build, end)
    if end.slow is not None:
        _slow_update(build, end, end.slow)
    if end.meta is not None:
        build.add(_meta_skill(epoch, end.meta))


def _comparison(build: Builder, end: Epoch) -> None:
    previous, current = open_epoch(build.state).first_skill.hash, build.current.skill.hash
    items = [row.item for row in end.current or ()] or [item for item, _ in end.pairs or ()]
    if not items:
        return
    drawn = tuple(item for item in items if item not in end.further)
    build.add(ComparisonDrawn(epoch=end.number, items=drawn, previous=previous, current=current))
    if end.further:
        build.add(ComparisonExtended(epoch=end.number, items=end.further))
    place = Place.of_epoch(end.number).slow
    hards = (end.slow.previous_hard, end.slow.current_hard) if end.slow else (None, None)
    if previous != current:
        build.rollouts(place.previous, "slow_previous", previous, end.previous)
        build.scored(place.previous, "slow_previous", previous, end.previous)
    build.rollouts(place.current, "slow_current", current, end.current)
    build.scored(place.current, "slow_current", current, end.current)
    if end.current is None and hards[1] is not None:
        build.gap(place, "the result of each compared item", "rollout_prev and rollout_curr are not there")


def _slow_update(build: Builder, end: Epoch, slow: SlowResult) -> None:
    place = Place.of_epoch(end.number).slow
    if slow.action == "inject_placeholder":
        _placeholder(build, end.number)
        return
    pairs = tuple(Pair(item, cast("Category", kind)) for item, kind in end.pairs or () if kind in _CATEGORIES)
    if slow.action == "no_content":
        build.add(SlowUpdateProposed(epoch=end.number, result="unusable", pairs=pairs, note=_NO_REASON))
        build.add(
            SlowUpdateApplied(epoch=end.number, skill=build.current.skill, verdict=GateVerdict(action="no_content"))
        )
        return
    candidate = _candidate(build, end, slow)
    if candidate is None or slow.action not in ("force_accept", "accept", "accept_new_best", "reject"):
        why = (
            "none of the texts in the folder has its recorded hash"
            if candidate is None
            else f"action {slow.action!r:.40}"
        )
        build.gap(place, "what the slow update made of the skill", why)
        return
    build.add(
        SlowUpdateProposed(
            epoch=end.number,
            result="guidance",
            pairs=pairs,
            guidance=slow.guidance,
            candidate=candidate,
            reasoning=slow.reasoning,
        )
    )
    _apply(build, end, slow, candidate)


def _placeholder(build: Builder, epoch: int) -> None:
    skill = build.tree(with_slow_placeholder(build.current.skill.text))
    known = build.state.measured.get(skill.hash)
    build.add(
        SlowUpdateApplied(
            epoch=epoch,
            skill=skill,
            verdict=GateVerdict(
                action="placeholder",
                candidate_score=known.score if known else None,
                candidate_value=known.value if known else None,
            ),
            candidate=skill.hash,
        )
    )


def _candidate(build: Builder, end: Epoch, slow: SlowResult) -> SkillTree | None:
    """The text with the guidance: the file, or what has the recorded hash."""
    if end.candidate is not None and not slow.candidate_hash:
        return build.tree(end.candidate)
    current = build.current.skill.text
    made = (with_slow_guidance(current, slow.guidance), guided_by_original(current, slow.guidance))
    texts = made if end.candidate is None else (end.candidate,)
    return next((build.tree(text) for text in texts if skill_hash(text) == slow.candidate_hash), None)


def _apply(build: Builder, end: Epoch, slow: SlowResult, candidate: SkillTree) -> None:
    place = Place.of_epoch(end.number).slow
    if end.standing is not None:
        build.rollouts(place.standing, "selection", build.current.skill.hash, end.standing)
        build.scored(place.standing, "selection", build.current.skill.hash, end.standing)
    forced = slow.action == "force_accept"
    if not forced and candidate.hash not in build.state.measured:
        build.rollouts(place.gate, "selection", candidate.hash, end.selection)
        recorded = (slow.hard, slow.soft)
        build.scored(place.gate, "selection", candidate.hash, end.selection, recorded=recorded)
    known = build.state.measured.get(candidate.hash)
    verdict = GateVerdict(
        action=cast("GateAction", slow.action),
        new_best=slow.action == "accept_new_best",
        candidate_score=known.score if known else None,
        candidate_value=known.value if known else None,
        current_value=None if forced else _standing_value(build),
        best_value=None if forced else build.best.value,
        rule=None if forced else "strict",
        known_from=known.place if known and known.place != place.gate else "",
    )
    build.add(
        SlowUpdateApplied(
            epoch=end.number,
            skill=candidate if verdict.taken else build.current.skill,
            verdict=verdict,
            guidance=slow.guidance,
            candidate=candidate.hash,
        )
    )


def _standing_value(build: Builder) -> float | None:
    """The score that the guidance had to beat: measured, or the one that the last record goes on with."""
    if build.current.value is not None:
        return build.current.value
    step = build.original.steps.get(build.state.steps_done)
    return step.record.current if step and step.record else None


def _meta_skill(epoch: int, meta: MetaResult) -> MetaSkillWritten:
    if meta.action == "skip_first_epoch":
        return MetaSkillWritten(epoch=epoch, result="first_epoch")
    if meta.action == "write_meta_skill" and meta.content:
        return MetaSkillWritten(epoch=epoch, result="written", content=meta.content, reasoning=meta.reasoning)
    return MetaSkillWritten(epoch=epoch, result="unusable", note=_NO_REASON)
