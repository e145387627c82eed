"""The files of an epoch's end: the slow update and the optimizer's memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from skillopt_es.events.catalog import (
    ComparisonDrawn,
    MetaSkillWritten,
    RolloutCompleted,
    RunImported,
    SlowUpdateApplied,
    SlowUpdateProposed,
)
from skillopt_es.events.values import Json, Measured, Score
from skillopt_es.interchange.layout import meta_file, skill_file, skill_hash, slow_folder
from skillopt_es.interchange.rollout_files import File, Rollouts, dumped, fail_reason
from skillopt_es.interchange.segments import Segment

Record = dict[str, Json]
_AIM = "fix regressions and persistent failures seen across neighbouring epochs"


@frozen
class EpochFiles:
    """One epoch's end, under the original's names."""

    part: Segment
    imported: RunImported | None

    def files(self, rollouts: Rollouts) -> Iterator[File]:
        """All of its files, as far as it came."""
        applied, written = self.part.last(SlowUpdateApplied), self.part.last(MetaSkillWritten)
        folder, epoch = slow_folder(self.part.number), self.part.number
        before, after = self._compared()
        yield from rollouts.files(f"{folder}/rollout_prev", before)
        yield from rollouts.files(f"{folder}/rollout_curr", after)
        yield from self._comparison(folder, before, after, rollouts)
        yield from rollouts.files(f"{folder}/selection_eval", self.part.rollouts(f"e{epoch}/slow/gate"))
        standing = self.part.rollouts(f"e{epoch}/slow/standing")
        yield from rollouts.files(f"{folder}/selection_eval_current", standing)
        proposed = self.part.last(SlowUpdateProposed)
        if proposed is not None and proposed.candidate is not None:
            yield f"{folder}/candidate_skill.md", proposed.candidate.text
        if applied is not None:
            yield f"{folder}/slow_result.json", dumped(self._slow_result(applied, proposed))
        assert self.part.after.current is not None
        yield skill_file(self.part.after.steps_done), self.part.after.current.skill.text
        if written is not None:
            yield meta_file(epoch), dumped(self._meta_result(written))

    def _compared(self) -> tuple[tuple[RolloutCompleted, ...], tuple[RolloutCompleted, ...]]:
        """The rollouts under both skills; those of one text stand for both."""
        place = f"e{self.part.number}/slow"
        after = self.part.rollouts(f"{place}/current")
        drawn = self.part.last(ComparisonDrawn)
        same = drawn is not None and drawn.previous == drawn.current
        return after if same else self.part.rollouts(f"{place}/previous"), after

    def _comparison(
        self,
        folder: str,
        before: Sequence[RolloutCompleted],
        after: Sequence[RolloutCompleted],
        rollouts: Rollouts,
    ) -> Iterator[File]:
        proposed = self.part.last(SlowUpdateProposed)
        if proposed is None or not proposed.pairs:
            return
        old, new = {row.item: row for row in before}, {row.item: row for row in after}
        pairs: list[Json] = []
        for pair in proposed.pairs:
            sides: Record = {}
            for name, rows in (("prev", old), ("curr", new)):
                row = rows.get(pair.item)
                if row is not None and isinstance(row.outcome, Measured):
                    sides[name] = _side(row, row.outcome)
            now = new.get(pair.item)
            task = pair.item if now is None else rollouts.task(now)
            pairs.append({"id": pair.item, "task": task, "category": pair.category, **sides})
        yield f"{folder}/comparison_pairs.json", dumped(pairs)

    def _slow_result(self, applied: SlowUpdateApplied, proposed: SlowUpdateProposed | None) -> Record:
        if applied.action == "placeholder":
            return {"action": "inject_placeholder", "epoch": applied.epoch}
        took = self._seconds("slow")
        if proposed is None or applied.action in ("no_content", "postponed"):
            return {"action": "no_content", **took}
        result: Record = {
            "reasoning": proposed.reasoning,
            "slow_update_content": proposed.guidance,
            **took,
            "prev_hard": self._hard("slow_previous"),
            "curr_hard": self._hard("slow_current"),
        }
        if proposed.candidate is not None:
            result["candidate_hash"] = skill_hash(proposed.candidate.text)
        result |= {"update_origin": "slow_update_momentum", "update_target": _AIM}
        if applied.action != "force_accept":
            result |= _scores(applied.candidate_score if applied.exact else None)
        return {**result, "action": "reject" if applied.action == "indecisive" else applied.action}

    def _hard(self, purpose: str) -> float | None:
        drawn = self.part.last(ComparisonDrawn)
        same = drawn is not None and drawn.previous == drawn.current
        scored = self.part.scored("slow_current" if same or purpose == "slow_current" else "slow_previous")
        return None if scored is None else scored.score.hard

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
        known = self.imported.seconds.get(f"e{self.part.number}/{what}")
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
