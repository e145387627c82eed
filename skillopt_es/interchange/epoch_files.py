"""The files of an epoch's end: the slow update and the meta skill."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from skillopt_es.config.table import other_words
from skillopt_es.engine.evaluations import mean_score
from skillopt_es.events.catalog import (
    ComparisonDrawn,
    MetaSkillWritten,
    RolloutCompleted,
    RunImported,
    SlowUpdateApplied,
    SlowUpdateProposed,
)
from skillopt_es.events.places import Place
from skillopt_es.events.values import Json, Measured, Score
from skillopt_es.interchange.flat_config import followed
from skillopt_es.interchange.layout import meta_file, meta_folder, safe_name, skill_file, skill_hash, slow_folder
from skillopt_es.interchange.rollout_files import File, OriginalRollouts, dumped, fail_reason
from skillopt_es.interchange.segments import Segment

Record = dict[str, Json]
_CATEGORIES = {
    (False, True): "improved",
    (True, False): "regressed",
    (False, False): "persistent_fail",
    (True, True): "stable_success",
}
_ALL = tuple(_CATEGORIES.values())
_KEPT = {"changed": ("improved", "regressed"), "unchanged": ("persistent_fail", "stable_success")}
"""What a pair policy keeps; any other one keeps all."""
_AIM = "fix regressions and persistent failures seen across neighbouring epochs"


@frozen
class EpochFiles:
    """One epoch's end, under the original's names."""

    part: Segment
    config: Record
    rollouts: OriginalRollouts

    @property
    def imported(self) -> RunImported | None:
        """What another trainer recorded of the run."""
        return self.part.after.imported

    def files(self) -> Iterator[File]:
        """All of its files, as far as it came."""
        applied, written = self.part.last(SlowUpdateApplied), self.part.last(MetaSkillWritten)
        folder, epoch = slow_folder(self.part.number), self.part.number
        slow = Place.of_epoch(epoch).slow
        yield from self._comparison(folder if self.config.get("use_slow_update") else meta_folder(epoch))
        gate, standing = map(self.part.rollouts, (slow.gate, slow.standing))
        yield from self.rollouts.files(f"{folder}/selection_eval", gate)
        yield from self.rollouts.files(f"{folder}/selection_eval_current", standing)
        proposed = self.part.last(SlowUpdateProposed)
        if proposed is not None and proposed.candidate is not None:
            yield f"{folder}/candidate_skill.md", proposed.candidate.text
        if applied is not None:
            yield f"{folder}/slow_result.json", dumped(self._slow_result(applied, proposed))
        yield skill_file(self.part.after.steps_done), self.part.after.current.skill.text
        if written is not None:
            yield meta_file(epoch), dumped(self._meta_result(written))

    def _compared(self) -> tuple[tuple[RolloutCompleted, ...], tuple[RolloutCompleted, ...]]:
        """The rollouts under both skills; those of one text stand for both."""
        place = Place.of_epoch(self.part.number).slow
        after = self.part.rollouts(place.current)
        drawn = self.part.last(ComparisonDrawn)
        same = drawn is not None and drawn.previous == drawn.current
        return after if same else self.part.rollouts(place.previous), after

    def _comparison(self, folder: str) -> Iterator[File]:
        """Both skills' results, what came on top of the drawn items apart, and what they are as pairs."""
        drawn = self.part.last(ComparisonDrawn)
        if drawn is None:
            return
        before, after = self._compared()
        for name, rows in (("rollout_prev", before), ("rollout_curr", after)):
            yield from self.rollouts.files(f"{folder}/{name}", [row for row in rows if row.item in drawn.items])
            for row in rows:
                if row.item not in drawn.items:
                    yield from self.rollouts.files(f"{folder}/{name}/topup/{safe_name(row.item)}", [row])
        if not after:
            return
        every, proposed = self._pairs(before, after), self.part.last(SlowUpdateProposed)
        named = str(self.config.get("longitudinal_pair_policy"))
        policy = other_words("optimizer.longitudinal_pair_policy").get(named, named)
        kept = [row for row in every if row["category"] in _KEPT.get(policy, _ALL)]
        if proposed is not None:
            kept = [row for row in every if row["id"] in {pair.item for pair in proposed.pairs}]
        yield f"{folder}/comparison_pairs.json", dumped([*kept])
        if policy in _KEPT:
            yield f"{folder}/comparison_pairs_all.json", dumped([*every])

    def _pairs(self, before: Sequence[RolloutCompleted], after: Sequence[RolloutCompleted]) -> list[Record]:
        """Each item that was measured under both skills, in drawn order."""
        old, pairs = {row.item: row for row in before}, list[Record]()
        for now in after:
            then = old.get(now.item)
            if then is None or not isinstance(then.outcome, Measured) or not isinstance(now.outcome, Measured):
                continue
            sides: Record = {"prev": _side(then, then.outcome), "curr": _side(now, now.outcome)}
            category = _CATEGORIES[self._passes(then.outcome), self._passes(now.outcome)]
            pairs.append({"id": now.item, "task": self.rollouts.task(now), "category": category, **sides})
        return pairs

    def _passes(self, outcome: Measured) -> bool:
        return outcome.hard > 0 if "partial_passes" in followed(self.config) else outcome.passed

    def _slow_result(self, applied: SlowUpdateApplied, proposed: SlowUpdateProposed | None) -> Record:
        if applied.verdict.action == "placeholder":
            return {"action": "inject_placeholder", "epoch": applied.epoch}
        took = self._seconds("slow")
        if proposed is None or applied.verdict.action in ("no_content", "postponed"):
            return {"action": "no_content", **took}
        result: Record = {
            "reasoning": proposed.reasoning,
            "slow_update_content": proposed.guidance,
            **took,
            **self._hards(),
        }
        if proposed.candidate is not None:
            result["candidate_hash"] = skill_hash(proposed.candidate.text)
        result |= {"update_origin": "slow_update_momentum", "update_target": _AIM}
        verdict = applied.verdict
        if verdict.action != "force_accept":
            result |= _scores(verdict.candidate_score if verdict.exact else None)
        return {**result, "action": "reject" if verdict.action == "indecisive" else verdict.action}

    def _hards(self) -> Record:
        """The results of both skills on the drawn items, without those that came on top."""
        drawn, (before, after) = self.part.last(ComparisonDrawn), self._compared()
        means: Record = {}
        for name, rows in (("prev_hard", before), ("curr_hard", after)):
            outcomes = [row.outcome for row in rows if drawn is not None and row.item in drawn.items]
            means[name] = mean_score(outcomes).hard if any(isinstance(each, Measured) for each in outcomes) else None
        return means

    def _meta_result(self, written: MetaSkillWritten) -> Record:
        if written.result == "first_epoch":
            return {"action": "skip_first_epoch", "epoch": written.epoch}
        took = self._seconds("meta")
        if written.result != "written":
            return {**took, "action": "no_content"}
        return {
            "reasoning": written.reasoning,
            "meta_skill_content": written.content,
            **took,
            "action": "write_meta_skill",
        }

    def _seconds(self, what: str) -> Record:
        if self.imported is None:
            return {"time_s": round(self.part.seconds.get(what, 0.0), 1)}
        known = self.imported.seconds.get(Place.of_epoch(self.part.number) / what)
        return {} if known is None else {"time_s": known}


def _scores(score: Score | None) -> Record:
    if score is None:
        return {"selection_hard": None, "selection_soft": None}
    return {"selection_hard": score.hard, "selection_soft": score.soft}


def _side(row: RolloutCompleted, outcome: Measured) -> Record:
    return {
        "hard": int(outcome.passed),
        "soft": outcome.soft,
        "predicted_answer": row.prediction or "N/A",
        "fail_reason": fail_reason(row),
    }
