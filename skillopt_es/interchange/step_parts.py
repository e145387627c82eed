"""The pieces of a step's files: patches, edits, batches, decisions and token counts as the original writes them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.events.catalog import EditsRanked, LearningRateChosen, PatchProposed, SkillScored
from skillopt_es.events.journal import CallRow, Journal
from skillopt_es.events.places import Place
from skillopt_es.events.values import ImportedBatch, ImportedUsage, Json
from skillopt_es.interchange.layout import KINDS, STAGES
from skillopt_es.interchange.proposal_json import payload, said_json
from skillopt_es.interchange.segments import Segment
from skillopt_es.projections.state import proposals_in
from skillopt_es.projections.usage import RunUsage, Tally, UsageSums, usage_of

Record = dict[str, Json]


def was_ranked(ranked: EditsRanked) -> bool:
    """Whether the optimizer put the pool in order; a pool within the budget is taken as it is."""
    if ranked.fallback or not ranked.chosen:
        return False
    return bool(ranked.calls or ranked.reasoning) or ranked.chosen != ranked.pool


def is_train_score(row: SkillScored) -> bool:
    """Whether an evaluation is one of a step's own batches."""
    return row.purpose == "train"


def batch_json(number: int, batch: ImportedBatch) -> Record:
    """One entry of `accumulation_batches`."""
    return {
        "batch_idx": number,
        "batch_seed": batch.seed,
        "n_envs": batch.size,
        "hard": None if batch.score is None else batch.score.hard,
        "soft": None if batch.score is None else batch.score.soft,
        "n_failure_patches": batch.failure_patches,
        "n_success_patches": batch.success_patches,
    }


def patch_counts(batches: Sequence[ImportedBatch]) -> Record:
    """How many patches have edits, by what they come from."""
    failures = added_up(batch.failure_patches for batch in batches)
    successes = added_up(batch.success_patches for batch in batches)
    return {"n_patches": added_up((failures, successes)), "n_failure_patches": failures, "n_success_patches": successes}


def added_up(counts: Iterable[int | None]) -> int | None:
    """The sum; None when one of the counts is not known."""
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total


def usage_json(usage: Mapping[str, ImportedUsage]) -> Record:
    """Calls and tokens by stage, under the original's labels; null for what is not known."""
    return {
        STAGES.get(stage, stage): {
            "calls": each.calls,
            "prompt_tokens": each.input_tokens,
            "completion_tokens": each.output_tokens,
        }
        for stage, each in sorted(usage.items())
    }


def patch_name(patch: PatchProposed) -> str:
    """The file of one analyst's patch."""
    number = Place(patch.patch).number
    assert number is not None
    return f"minibatch_{KINDS[patch.kind]}_{number:03d}.json"


def patch_json(patch: PatchProposed, *, noted: bool, mode: Json) -> Record:
    """An analyst's reply in an update mode as it is kept; `noted` where analysts were asked for reminder notes."""
    size: Record = {"batch_size": len(patch.items)} if patch.items else {}
    said: list[Json] = [
        {
            "failure_type": each.type,
            "count": each.count,
            "description": each.description,
            **({"cause": each.cause} if each.cause else {}),
        }
        for each in patch.patterns
    ]
    proposed = proposals_in(patch)
    body: Json = {"reasoning": patch.reasoning, **payload(proposed, [said_json(each) for each in proposed], mode)}
    notes: Record = {"appendix_notes": list(patch.notes)} if patch.notes or noted else {}
    if patch.kind == "failure":
        return {**size, "failure_summary": said, "patch": body, "source_type": "failure", **notes}
    found: list[Json] = [each.description for each in patch.patterns]
    return {**size, "success_patterns": found, "patch": body, "source_type": "success", **notes}


def first_reasoning(patches: Sequence[PatchProposed]) -> str:
    """Why something was proposed, where there was nothing to merge."""
    return next((patch.reasoning for patch in patches if proposals_in(patch)), "")


def decision_json(chosen: LearningRateChosen, evidence: RecordedTexts) -> Record:
    """The optimizer's own choice of the budget; its answer is null where the call is not in the log."""
    return {
        "learning_rate": chosen.budget,
        "raw_learning_rate": chosen.asked,
        "available_update_items": chosen.available,
        "clamped": chosen.asked is not None and chosen.asked > chosen.available,
        "fallback": chosen.result != "chosen",
        "reasoning": chosen.reasoning,
        "confidence": chosen.confidence,
        "risk_notes": list(chosen.risks),
        "raw_response": evidence.exchange(chosen.calls[-1]).answer if chosen.calls else None,
    }


def decision_line(part: Segment, evidence: RecordedTexts) -> str:
    """The step's line for `lr_history.jsonl`, empty when the optimizer did not choose."""
    chosen = part.last(LearningRateChosen)
    if chosen is None:
        return ""
    line = {"step": part.number, "epoch": part.epoch, **decision_json(chosen, evidence)}
    return json.dumps(line, ensure_ascii=False) + "\n"


def usage_by_step(journal: Journal) -> Mapping[int, Mapping[str, ImportedUsage]]:
    """Each step's own calls, by stage; like the original, with no calls at a stage that an earlier part asked at."""
    rows: dict[int, list[CallRow]] = {}
    known: dict[str, int] = {}
    for row in journal.read():
        step = Place(row.call.slot).step
        known.setdefault(row.call.stage, max(rows, default=0) + 1 if step is None else step)
        if step is not None:
            rows.setdefault(step, []).append(row)
    none = ImportedUsage(calls=0, input_tokens=0, output_tokens=0)
    return {
        step: {stage: none for stage, first in known.items() if first <= step} | counted_usage(usage_of(calls))
        for step, calls in rows.items()
    }


def counted_usage(usage: RunUsage) -> dict[str, ImportedUsage]:
    """Calls and tokens by stage."""
    return {stage: _imported_usage(each) for stage, each in usage.by_stage.items()}


def _imported_usage(usage: UsageSums) -> ImportedUsage:
    """A sum that leaves calls out would be a wrong number: it is unknown."""
    return ImportedUsage(calls=usage.calls, input_tokens=_whole(usage.input), output_tokens=_whole(usage.output))


def _whole(tally: Tally) -> int | None:
    return None if tally.silent else tally.known


def with_totals(usage: Mapping[str, ImportedUsage]) -> Record:
    """The table of a summary: every stage, and all of them together."""
    table = cast("dict[str, Record]", usage_json(usage))
    for row in table.values():
        row["total_tokens"] = added_up(
            (cast("int | None", row["prompt_tokens"]), cast("int | None", row["completion_tokens"]))
        )
    keys = ("calls", "prompt_tokens", "completion_tokens", "total_tokens")
    total: Record = {key: added_up(cast("int | None", row[key]) for row in table.values()) for key in keys}
    return {**table, "_total": total} if table else {}
