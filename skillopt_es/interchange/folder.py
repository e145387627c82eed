"""Reading a result folder of the original: what is there becomes typed values, what is broken is listed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from skillopt_es.errors import DataError
from skillopt_es.events.values import Cause, FailurePattern, ImportedUsage, Json
from skillopt_es.interchange.fields import Fields, Problem, Source
from skillopt_es.interchange.layout import (
    BASELINE,
    BEST,
    CONFIG,
    FINAL,
    HISTORY,
    KINDS,
    STAGES,
    STATE,
    SUMMARY,
    TESTS,
    meta_file,
    skill_file,
    slow_folder,
    step_folder,
)
from skillopt_es.interchange.original import (
    BatchRecord,
    Change,
    Decision,
    Epoch,
    MetaResult,
    Original,
    Proposal,
    SlowResult,
    StateRecord,
    Step,
    StepRecord,
    SummaryRecord,
    TestRecord,
)
from skillopt_es.interchange.results import read_results

_STEP = re.compile(r"step_(\d+)")
_EPOCH = re.compile(r"epoch_(\d+)")
_BATCH = re.compile(r"batch_(\d+)")
_OURS = {theirs: ours for ours, theirs in STAGES.items()}
_KNOWN = (CONFIG, HISTORY, STATE, SUMMARY, "steps", "skills")


def read_folder(folder: Path) -> Original:
    """What a result folder says; raises DataError for one that is none, or has no skill to start from."""
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder", hint="name the folder that the original wrote its results to")
    source = Source(folder)
    if not any(source.exists(name) for name in _KNOWN):
        raise DataError(
            f"{folder} is not a result folder of SkillOpt", hint=f"such a folder has {CONFIG}, {HISTORY} and skills/"
        )
    initial = source.text(skill_file(0))
    if initial is None:
        why = source.problems[-1].why if source.problems else "it is not there"
        raise DataError(f"{folder}/{skill_file(0)}: {why}", hint="without the initial skill nothing can be followed")
    summary = source.fields(SUMMARY)
    records = _records(source)
    return Original(
        folder=folder.resolve().name,
        config=_config(source, summary),
        steps={number: _step(source, number, records.get(number)) for number in _step_numbers(source, records)},
        epochs={number: _epoch(source, number) for number in _epoch_numbers(source)},
        initial=initial,
        best=source.text(BEST),
        baseline=read_results(source, BASELINE),
        final=read_results(source, FINAL),
        tests={name: _test(source, at) for name, at in TESTS.items() if source.exists(at)},
        summary=None if summary is None else _summary(summary),
        state=_state(source),
        problems=tuple(source.problems),
    )


def _config(source: Source, summary: Fields | None) -> Mapping[str, Json]:
    config = source.fields(CONFIG)
    if config is None and summary is not None:
        config = summary.inner("config")
    if config is None:
        source.say(CONFIG, "the settings are not there")
        return {}
    return config.values


def _records(source: Source) -> dict[int, StepRecord]:
    """The history by step; a step that is in it twice was done twice, and the last time counts."""
    found: dict[int, StepRecord] = {}
    for row in source.rows(HISTORY) or ():
        record = _record(row)
        if record is None:
            continue
        if record.step in found:
            source.say(HISTORY, f"step {record.step} is in it more than once; the last one counts")
        found[record.step] = record
    for name in source.folders("steps"):
        match = _STEP.fullmatch(name)
        if match and int(match[1]) not in found:
            single = source.fields(f"steps/{name}/step_record.json")
            record = None if single is None else _record(single)
            if record is not None and record.step == int(match[1]):
                found[record.step] = record
    return found


def _step_numbers(source: Source, records: Mapping[int, StepRecord]) -> list[int]:
    named = {int(match[1]) for name in source.folders("steps") if (match := _STEP.fullmatch(name))}
    numbers = {*records, *named}
    return list(range(1, max(numbers) + 1)) if numbers else []


def _epoch_numbers(source: Source) -> list[int]:
    names = {*source.folders("slow_update"), *source.folders("meta_skill")}
    return sorted(int(match[1]) for name in names if (match := _EPOCH.fullmatch(name)))


def _record(row: Fields) -> StepRecord | None:
    step, action = row.whole("step"), row.text("action")
    if step is None or step < 1 or action is None:
        row.problems.append(_unusable(row))
        return None
    applied = row.inner("edit_apply_summary")
    return StepRecord(
        step=step,
        epoch=row.whole("epoch"),
        index=row.whole("step_in_epoch"),
        action=action,
        skip_reason=row.text("skip_reason") or "",
        hard=row.number("rollout_hard"),
        soft=row.number("rollout_soft"),
        rollouts=row.whole("rollout_n"),
        batches=tuple(_batch(each) for each in row.rows("accumulation_batches") or ()),
        patches=row.whole("n_patches"),
        merged=row.whole("n_edits_merged"),
        chosen=row.whole("n_edits_ranked"),
        budget=row.whole("edit_budget"),
        applied=None if applied is None else applied.whole("applied"),
        candidate_hash=row.text("candidate_hash") or "",
        selection_hard=row.number("selection_hard"),
        selection_soft=row.number("selection_soft"),
        metric=row.text("gate_metric") or "",
        value=row.number("candidate_gate_score"),
        current=row.number("current_score"),
        best=row.number("best_score"),
        best_step=row.whole("best_step"),
        seconds=_seconds(row),
        usage=_usage(row.inner("tokens")),
        decision=_decision(row.inner("lr_decision")),
        notes_consolidated=row.whole("n_appendix_notes_consolidated"),
    )


def _unusable(row: Fields) -> Problem:
    return Problem(row.path, "a record without step or action cannot be used")


def _batch(row: Fields) -> BatchRecord:
    return BatchRecord(
        seed=row.whole("batch_seed"),
        size=row.whole("n_envs"),
        hard=row.number("hard"),
        soft=row.number("soft"),
        failure_patches=row.whole("n_failure_patches"),
        success_patches=row.whole("n_success_patches"),
    )


def _seconds(row: Fields) -> dict[str, float]:
    timing = row.inner("timing")
    times = {} if timing is None else {key: timing.number(key) for key in timing.values}
    times["wall"] = row.number("wall_time_s")
    return {key: value for key, value in times.items() if value is not None}


def _usage(table: Fields | None) -> dict[str, ImportedUsage]:
    """Calls and tokens by stage, under our labels."""
    if table is None:
        return {}
    found: dict[str, ImportedUsage] = {}
    for stage in table.values:
        row = None if stage == "_total" else table.inner(stage)
        if row is not None:
            found[_OURS.get(stage, stage)] = ImportedUsage(
                calls=row.whole("calls"),
                input_tokens=row.whole("prompt_tokens"),
                output_tokens=row.whole("completion_tokens"),
            )
    return found


def _decision(row: Fields | None) -> Decision | None:
    budget = None if row is None else row.whole("learning_rate")
    if row is None or budget is None:
        return None
    raw = row.values.get("raw_learning_rate")
    return Decision(
        budget=budget,
        asked=raw if isinstance(raw, int) and not isinstance(raw, bool) else None,
        available=row.whole("available_update_items"),
        fallback=row.flag("fallback") is True,
        reasoning=row.shown("reasoning"),
        confidence=row.shown("confidence"),
        risks=row.texts("risk_notes"),
    )


# --- a step's folder -----------------------------------------------------------------------------------------------


def _step(source: Source, number: int, record: StepRecord | None) -> Step:
    folder = step_folder(number)
    batches = _batch_folders(source, folder, record)
    digest = source.fields(f"{folder}/trajectory_digest.json")
    notes = source.fields(f"{folder}/appendix_notes.json")
    return Step(
        number=number,
        record=record,
        rollouts=tuple(read_results(source, f"{at}/rollout") for at in batches),
        proposals=tuple(_proposals(source, at) for at in batches),
        merged=_proposal(source, f"{folder}/merged_patch.json", ""),
        ranked=_proposal(source, f"{folder}/ranked_edits.json", ""),
        decision=_decision(source.fields(f"{folder}/lr_decision.json")) or (record.decision if record else None),
        candidate=source.text(f"{folder}/candidate_skill.md"),
        report=_report(source, f"{folder}/edit_apply_report.json"),
        selection=read_results(source, f"{folder}/selection_eval"),
        standing=read_results(source, f"{folder}/selection_eval_current"),
        digest_before=None if digest is None else digest.number("score_before"),
        notes=None if notes is None else notes.texts("appendix_after"),
        skill=source.text(skill_file(number)),
    )


def _batch_folders(source: Source, folder: str, record: StepRecord | None) -> list[str]:
    """Where the step's batches lie, in order."""
    named = sorted(int(match[1]) for name in source.folders(folder) if (match := _BATCH.fullmatch(name)))
    recorded = len(record.batches) if record else 0
    if named or recorded > 1:
        return [f"{folder}/batch_{index}" for index in range(max(recorded, named[-1] + 1 if named else 0))]
    return [folder]


def _proposals(source: Source, folder: str) -> tuple[Proposal, ...]:
    found: list[Proposal] = []
    for kind, short in KINDS.items():
        for name in source.files(f"{folder}/patches"):
            if re.fullmatch(rf"minibatch_{short}_\d+\.json", name):
                proposal = _proposal(source, f"{folder}/patches/{name}", kind)
                found += [proposal] if proposal else []
    return tuple(found)


def _proposal(source: Source, path: str, kind: str) -> Proposal | None:
    whole = source.fields(path)
    if whole is None:
        return None
    inner = whole.inner("patch") if kind else whole
    details = whole.inner("ranking_details")
    indices = None if details is None else details.values.get("selected_indices")
    name = re.sub(r".*_(\d+)\.json", lambda match: str(int(match[1])), path)
    return Proposal(
        name=name,
        kind=kind,
        changes=() if inner is None else tuple(_change(row, kind) for row in inner.rows("edits") or ()),
        reasoning="" if inner is None else inner.shown("reasoning"),
        patterns=_patterns(whole),
        notes=whole.texts("appendix_notes"),
        indices=tuple(each for each in indices if isinstance(each, int)) if isinstance(indices, list) else None,
    )


_CAUSES: Mapping[str, Cause] = {"defect": "defect", "lapse": "lapse"}


def _patterns(row: Fields) -> tuple[FailurePattern, ...]:
    failures = tuple(
        FailurePattern(
            type=each.shown("failure_type"),
            count=each.whole("count"),
            description=each.shown("description"),
            cause=_CAUSES.get(each.shown("cause"), ""),
        )
        for each in row.rows("failure_summary") or ()
    )
    return failures + tuple(FailurePattern("", None, text) for text in row.texts("success_patterns"))


def _change(row: Fields, kind: str) -> Change:
    return Change(
        op=row.text("op") or "",
        content=row.shown("content"),
        target=row.shown("target"),
        support=row.whole("support_count"),
        source=row.text("source_type") or kind,
        level=row.whole("merge_level"),
    )


def _report(source: Source, path: str) -> tuple[tuple[int | None, str], ...] | None:
    rows = source.rows(path)
    return None if rows is None else tuple((row.whole("index"), row.text("status") or "") for row in rows)


# --- the rest ------------------------------------------------------------------------------------------------------


def _epoch(source: Source, number: int) -> Epoch:
    folder = slow_folder(number)
    slow, meta = source.fields(f"{folder}/slow_result.json"), source.fields(meta_file(number))
    pairs = source.rows(f"{folder}/comparison_pairs.json")
    return Epoch(
        number=number,
        slow=None if slow is None else _slow(slow),
        pairs=None if pairs is None else tuple((row.shown("id"), row.shown("category")) for row in pairs),
        candidate=source.text(f"{folder}/candidate_skill.md"),
        previous=read_results(source, f"{folder}/rollout_prev"),
        current=read_results(source, f"{folder}/rollout_curr"),
        selection=read_results(source, f"{folder}/selection_eval"),
        standing=read_results(source, f"{folder}/selection_eval_current"),
        meta=None if meta is None else _meta(meta),
    )


def _slow(row: Fields) -> SlowResult:
    return SlowResult(
        action=row.text("action") or "",
        guidance=row.shown("slow_update_content"),
        reasoning=row.shown("reasoning"),
        seconds=row.number("time_s"),
        previous_hard=row.number("prev_hard"),
        current_hard=row.number("curr_hard"),
        candidate_hash=row.text("candidate_hash") or "",
        hard=row.number("selection_hard"),
        soft=row.number("selection_soft"),
    )


def _meta(row: Fields) -> MetaResult:
    return MetaResult(
        action=row.text("action") or "",
        content=row.shown("meta_skill_content"),
        reasoning=row.shown("reasoning"),
        seconds=row.number("time_s"),
    )


def _test(source: Source, folder: str) -> TestRecord:
    table = source.fields(f"{folder}/{SUMMARY}")
    rows: dict[str, tuple[int | None, float | None]] = {}
    for kind in table.values if table else ():
        row = table.inner(kind) if table else None
        if row is not None:
            rows[kind] = (row.whole("total"), row.number("hard_acc"))
    return TestRecord(rows=read_results(source, folder), table=rows)


def _summary(row: Fields) -> SummaryRecord:
    names = {"initial": "baseline_test", "best": "test", "final": "final_test"}
    return SummaryRecord(
        baseline_hard=row.number("baseline_selection_hard"),
        best_value=row.number("best_selection_hard"),
        final_hard=row.number("final_selection_hard"),
        final_soft=row.number("final_selection_soft"),
        best_step=row.whole("best_step"),
        best_origin=row.text("best_origin") or "",
        current_origin=row.text("current_origin") or "",
        tests={name: (row.number(f"{key}_hard"), row.number(f"{key}_soft")) for name, key in names.items()},
        seconds=row.number("total_wall_time_s"),
        usage=_usage(row.inner("token_summary")),
    )


def _state(source: Source) -> StateRecord | None:
    row = source.fields(STATE)
    if row is None:
        return None
    return StateRecord(
        last_step=row.whole("last_completed_step"),
        best_value=row.number("best_score"),
        best_origin=row.text("best_origin") or "",
    )
