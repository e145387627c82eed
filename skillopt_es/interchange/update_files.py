"""A step's files from the merge to the candidate: what was proposed, chosen and applied, by update mode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import define, field

from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.events.catalog import (
    CandidateBuilt,
    EditsRanked,
    LearningRateChosen,
    PatchesMerged,
    PatchProposed,
    SkillRewritten,
)
from skillopt_es.events.values import Draft, Edit, Json, Proposal
from skillopt_es.interchange.proposal_json import kept_json, payload, report_json
from skillopt_es.interchange.rollout_files import File, dumped
from skillopt_es.interchange.segments import Segment
from skillopt_es.interchange.step_parts import decision_json, first_reasoning, was_ranked
from skillopt_es.projections.state import proposals_in

Record = dict[str, Json]


@define
class UpdateFiles:
    """One step's update."""

    part: Segment
    evidence: RecordedTexts
    proposals: dict[str, Proposal] = field(init=False)

    def __attrs_post_init__(self) -> None:
        makers: tuple[PatchProposed | PatchesMerged, ...] = (
            *self.part.all(PatchProposed),
            *self.part.all(PatchesMerged),
        )
        self.proposals = {each.id: each for maker in makers for each in proposals_in(maker)}

    def files(self, folder: str) -> Iterator[File]:
        """The step's files from the merge to the candidate, as far as it came."""
        yield from self._selection(folder)
        built = self.part.last(CandidateBuilt)
        if built is not None:
            yield f"{folder}/candidate_skill.md", built.candidate.text
        if self.report:
            yield f"{folder}/edit_apply_report.json", dumped([*self.report])
        written = self.part.last(SkillRewritten)
        if written is not None and written.result == "written":
            document: Record = {
                "reasoning": written.reasoning,
                "change_summary": list(written.changes),
                "new_skill": written.text,
            }
            yield f"{folder}/rewrite_result.json", dumped(document)

    def _selection(self, folder: str) -> Iterator[File]:
        ranked, chosen = self.part.last(EditsRanked), self.part.last(LearningRateChosen)
        if chosen is not None:
            yield f"{folder}/lr_decision.json", dumped(decision_json(chosen, self.evidence))
        if ranked is None:
            return
        merged = self.part.last(PatchesMerged)
        reasoning = merged.reasoning if merged else first_reasoning(self.part.all(PatchProposed))
        pool = [self.proposals[name] for name in ranked.pool]
        rows = {each.id: kept_json(each, merged) for each in pool}
        united: Record = {"reasoning": reasoning, **payload(pool, [*rows.values()])}
        yield f"{folder}/merged_patch.json", dumped(united)
        draft = self.draft
        if draft is not None:
            taken: Record = {"selected_candidate": rows[draft.id], "merged_patch": united}
            yield f"{folder}/full_rewrite_result.json", dumped(taken)
        picked = payload(pool, [rows[name] for name in ranked.chosen])
        what = "edits" if all(isinstance(each, Edit) for each in pool) else "suggestions"
        said = f"{reasoning} [optimizer-ranked: selected {len(ranked.chosen)}/{len(pool)} {what}]"
        document: Record = {"reasoning": said if was_ranked(ranked) else reasoning, **picked}
        if was_ranked(ranked):
            indices: list[Json] = [ranked.pool.index(edit) for edit in ranked.chosen]
            document["ranking_details"] = {"reasoning": ranked.reasoning, "selected_indices": indices}
        yield f"{folder}/ranked_edits.json", dumped(document)

    @property
    def draft(self) -> Draft | None:
        """The whole text that an analyst or a merge wrote and that took the skill's place."""
        ranked = self.part.last(EditsRanked)
        chosen = [self.proposals[name] for name in ranked.chosen] if ranked else []
        return next((each for each in chosen if isinstance(each, Draft)), None)

    @property
    def changes(self) -> Sequence[str] | None:
        """What a whole new text changes, in its writer's words; None where there is no such text."""
        written, draft = self.part.last(SkillRewritten), self.draft
        if written is not None and written.result == "written":
            return written.changes
        return None if draft is None else draft.changes

    @property
    def report(self) -> list[Record]:
        """What became of each edit; empty where there were none."""
        built = self.part.last(CandidateBuilt)
        reports = built.reports if built else ()
        known = {report.edit: self.proposals.get(report.edit) for report in reports}
        numbered = [(number, report, known[report.edit]) for number, report in enumerate(reports, start=1)]
        return [report_json(edit, report.status, number) for number, report, edit in numbered if isinstance(edit, Edit)]
