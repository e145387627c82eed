"""The files of one step, and its record for `history.json`, from the events of its part of the log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import define, field

from skillopt_es.events.catalog import (
    AppendixConsolidated,
    AppendixExtended,
    CandidateBuilt,
    CandidateGated,
    EditsRanked,
    GapFound,
    LearningRateChosen,
    PatchProposed,
    SkillScored,
    StepImported,
    StepSkipped,
)
from skillopt_es.events.places import Place
from skillopt_es.events.values import BufferEntry, GateVerdict, ImportedBatch, ImportedUsage, Json
from skillopt_es.interchange.layout import batch_folder, skill_file, skill_hash, step_folder
from skillopt_es.interchange.proposal_json import rejected_json
from skillopt_es.interchange.rollout_files import File, OriginalRollouts, dumped
from skillopt_es.interchange.segments import Segment
from skillopt_es.interchange.step_parts import (
    batch_json,
    decision_json,
    is_train_score,
    patch_counts,
    patch_json,
    patch_name,
    usage_json,
)
from skillopt_es.interchange.update_files import UpdateFiles
from skillopt_es.projections.lines import pooled
from skillopt_es.projections.state import proposals_in

_TIMED = ("rollout_s", "reflect_s", "aggregate_s", "select_s", "update_s", "evaluate_s")
_SKIPS = {
    "nothing_to_fix": "skip_no_patches",
    "nothing_asked": "skip_no_patches",
    "nothing_proposed": "skip_no_patches",
    "no_usable_patch": "skip_no_patches",
    "no_edit_chosen": "skip_no_rewrite",
    "no_rewrite": "skip_no_rewrite",
    "unchanged": "skip_no_rewrite",
}
"""What the original says for our reasons; its own words stand for themselves."""
Record = dict[str, Json]


@define
class StepFiles:
    """One step: what is known of it, under the original's names."""

    part: Segment
    per_epoch: int
    config: Record
    usage: Mapping[str, ImportedUsage]
    rollouts: OriginalRollouts
    origin: str
    update: UpdateFiles = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.update = UpdateFiles(self.part, self.rollouts.evidence)

    @property
    def imported(self) -> StepImported | None:
        """What another trainer recorded of the step."""
        return self.part.last(StepImported)

    @property
    def verdict(self) -> CandidateGated | StepSkipped | None:
        """How the step ended; None for one that did not, or not so that it is known."""
        return self.part.last(CandidateGated) or self.part.last(StepSkipped)

    @property
    def lost(self) -> bool:
        """Whether the step is over without a known end."""
        return any(gap.step is not None for gap in self.part.all(GapFound))

    def batches(self) -> list[ImportedBatch]:
        """The step's training batches with what is known of each."""
        if self.imported is not None:
            return list(self.imported.batches)
        scores = {Place(row.place).batch: row.score for row in self.part.all(SkillScored) if is_train_score(row)}
        planned = self.part.before.algorithm.step.batches if self.part.before.algorithm.step else ()
        return [
            ImportedBatch(
                seed=batch.seed,
                size=len(batch.items),
                items=batch.items,
                score=scores.get(number),
                failure_patches=self._usable(number, "failure"),
                success_patches=self._usable(number, "success"),
            )
            for number, batch in enumerate(planned)
        ]

    def _usable(self, batch: int, kind: str) -> int:
        place = Place.of_step(self.part.epoch, self.part.number).in_batch(batch)
        patches = (patch for patch in self.part.all(PatchProposed) if place.holds(patch.patch) and proposals_in(patch))
        return sum(patch.kind == kind for patch in patches)

    def files(self) -> Iterator[File]:
        """Its files but the record, as far as the step came."""
        number, folder = self.part.number, step_folder(self.part.number)
        step = Place.of_step(self.part.epoch, number)
        batches, noted = self.batches(), bool(self.config.get("use_skill_aware_reflection"))
        mode = self.config.get("skill_update_mode", "patch")
        for index in range(len(batches)):
            at = batch_folder(number, index, len(batches))
            place = step.in_batch(index)
            yield from self.rollouts.files(f"{at}/rollout", self.part.rollouts(place))
            for patch in self.part.all(PatchProposed):
                if place.holds(patch.patch) and patch.result not in ("unusable", "failed"):
                    yield f"{at}/patches/{patch_name(patch)}", dumped(patch_json(patch, noted=noted, mode=mode))
        yield from self.update.files(folder)
        yield from self.rollouts.files(f"{folder}/selection_eval", self.part.rollouts(step.gate))
        yield from self.rollouts.files(f"{folder}/selection_eval_current", self.part.rollouts(step.current))
        extended = self.part.last(AppendixExtended)
        if extended is not None:
            notes: Record = {"step_notes": [report.note for report in extended.reports]}
            yield f"{folder}/appendix_notes.json", dumped({**notes, "appendix_after": list(extended.notes)})
        if isinstance(self.verdict, CandidateGated):
            attempt = self.part.after.algorithm.buffer[-1]
            yield f"{folder}/trajectory_digest.json", dumped(self._digest(attempt, self.verdict.verdict))
        if self.verdict is not None or self.lost:
            yield skill_file(number), self.part.after.current.skill.text

    def _digest(self, attempt: BufferEntry, verdict: GateVerdict) -> Record:
        patterns: list[Json] = [
            {"pattern": seen.code, "count": len(seen.items), "task_ids": list(seen.items)} for seen in attempt.codes
        ]
        digest: Record = {"step": attempt.step, "action": attempt.action}
        if attempt.total:
            digest |= {"n_total": attempt.total, "n_fail": attempt.failed, "failure_patterns": patterns}
        if verdict.action == "reject":
            rejected: list[Json] = [rejected_json(each) for each in attempt.rejected]
            digest |= {
                "score_before": verdict.current_value,
                "score_after": verdict.candidate_value if verdict.exact else None,
                "rejected_edits": rejected,
            }
        return digest

    def record(self) -> Record | None:
        """The step's record; None for one that has not ended, or whose end is not known."""
        if self.verdict is None:
            return None
        part, batches = self.part, self.batches()
        whole = pooled(batch.score for batch in batches if batch.score is not None)
        record: Record = {
            "step": part.number,
            "epoch": part.epoch,
            "step_in_epoch": part.number - 1 - (part.epoch - 1) * self.per_epoch,
            "timing": self._timing(),
            "tokens": usage_json(self.usage if self.imported is None else self.imported.usage),
            "rollout_hard": None if whole is None else round(whole.hard, 6),
            "rollout_soft": None if whole is None else round(whole.soft, 6),
            "rollout_n": None if whole is None else whole.measured,
            "accumulation_batches": [batch_json(number, batch) for number, batch in enumerate(batches)],
            **patch_counts(batches),
        }
        record |= self._update()
        record |= self._end(self.verdict)
        return record

    def _timing(self) -> Record:
        seconds = self.part.seconds if self.imported is None else self.imported.seconds
        return {name: round(seconds[name], 1) for name in _TIMED if name in seconds}

    def wall_seconds(self) -> float | None:
        """For how long a writer was at work on the step."""
        if self.imported is not None:
            return self.imported.seconds.get("wall")
        return round(sum(self.part.seconds.values()), 1)

    def _update(self) -> Record:
        """The keys from the merge to the candidate, as far as the step came."""
        ranked, chosen = self.part.last(EditsRanked), self.part.last(LearningRateChosen)
        built = self.part.last(CandidateBuilt)
        found: Record = {}
        if ranked is not None:
            support: list[Json] = [self.update.proposals[name].support for name in ranked.chosen]
            whole = self.update.draft is not None  # nothing is counted where one text takes another's place
            found |= {
                "n_edits_merged": len(ranked.pool),
                "n_edits_ranked": len(ranked.chosen),
                "edit_budget": None if whole else ranked.budget,
                "lr_control_mode": "none" if whole else self.config.get("lr_control_mode"),
                **({"lr_decision": decision_json(chosen, self.rollouts.evidence)} if chosen else {}),
                "support_counts": support,
            }
        elif self.imported is not None and self.imported.merged:
            found |= {"n_edits_merged": self.imported.merged, "n_edits_ranked": self.imported.chosen}
        if built is None:
            return found
        text = built.candidate.text
        found |= {"candidate_hash": skill_hash(text), "candidate_skill_len": len(text)}
        rewritten = self.update.changes
        if rewritten is not None:
            found["rewrite_change_summary"] = list(rewritten)
        report = self.update.report
        if report:
            applied = sum(str(row["status"]).startswith("applied") for row in report)
            errors = sum(str(row["status"]).startswith("error") for row in report)
            total = len(report)
            skipped = total - applied - errors
            found["edit_apply_summary"] = {"total": total, "applied": applied, "skipped": skipped, "errors": errors}
        return found

    def _end(self, verdict: CandidateGated | StepSkipped) -> Record:
        after = self.part.after
        length: Record = {"skill_len": len(after.current.skill.text), "wall_time_s": self.wall_seconds()}
        notes = self._note_counts()
        if isinstance(verdict, StepSkipped):
            values = (after.current.value, after.best.value)
            if self.imported is not None:
                values = (self.imported.current_value, self.imported.best_value)
            standing: Record = {"current_score": values[0], "best_score": values[1], "best_step": after.best.step}
            theirs = _SKIPS.get(verdict.reason)
            said: Record = {"action": verdict.reason}
            if theirs is not None:
                said = {"action": theirs, "skip_reason": verdict.reason}
            return {**notes, **said, **standing, **length}
        best_now = after.best.skill.hash == verdict.candidate and after.best.step == verdict.step
        return {**_gated(verdict.verdict, notes, best_now=best_now), "best_step": after.best.step,
                "current_origin": self.origin, "best_origin": str(after.best.origin), **length}  # fmt: skip

    def _note_counts(self) -> Record:
        """How many reminder notes were proposed, added, and are there; nothing for a step without any."""
        extended, fewer = self.part.last(AppendixExtended), self.part.last(AppendixConsolidated)
        if extended is None:
            return {}
        counts: Record = {
            "n_execution_lapse_notes": len(extended.reports),
            "n_appendix_notes_added": len(extended.added),
            "n_appendix_notes_total": len(extended.notes),
        }
        if fewer is not None and fewer.result == "consolidated":
            counts |= {"n_appendix_notes_total": len(fewer.notes), "n_appendix_notes_consolidated": len(fewer.notes)}
        return counts


def _gated(verdict: GateVerdict, notes: Record, *, best_now: bool) -> Record:
    """What a record says of a verdict; a candidate that was not run to its end has no score."""
    value, score = verdict.candidate_value, verdict.candidate_score if verdict.exact else None
    return {
        "selection_hard": None if score is None else score.hard,
        "selection_soft": None if score is None else score.soft,
        "gate_metric": verdict.metric,
        "candidate_gate_score": value if verdict.exact else None,
        **notes,
        "action": "reject" if verdict.action == "indecisive" else verdict.action,
        "current_score": value if verdict.taken else verdict.current_value,
        "best_score": value if best_now else verdict.best_value,
    }
