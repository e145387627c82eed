"""Reading the steps of a result folder: the history, and what lies in each step's own folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import cast, get_args

from skillopt_es.events.values import (
    Cause,
    Draft,
    Edit,
    EditOp,
    FailurePattern,
    ImportedUsage,
    Priority,
    Suggestion,
    SuggestionKind,
)
from skillopt_es.events.values import Proposal as Proposed
from skillopt_es.interchange.fields import Fields, Problem, Source, record
from skillopt_es.interchange.layout import HISTORY, KINDS, STAGES, skill_file, step_folder
from skillopt_es.interchange.original import (
    BatchRecord,
    Change,
    Decision,
    OriginalStep,
    Proposal,
    RewriteResult,
    StepRecord,
)
from skillopt_es.interchange.proposal_json import DRAFTS, EDITS, SUGGESTIONS
from skillopt_es.interchange.rollout_files import read_results

_STEP = re.compile(r"step_(\d{1,9})")
_BATCH = re.compile(r"batch_(\d{1,4})")
_OURS = {theirs: ours for ours, theirs in STAGES.items()}
_MOST_STEPS = 100_000  # a number beyond is a mistake, and each one up to it would be a step that is not there


def read_steps(source: Source) -> dict[int, OriginalStep]:
    """All steps up to the last one of which anything is there."""
    records = _records(source)
    found = {number: _step(source, number, records.get(number)) for number in _step_numbers(source, records)}
    last = max((number for number, step in found.items() if step.begun), default=0)
    return {number: found.get(number) or _step(source, number, None) for number in range(1, last + 1)}


def _records(source: Source) -> dict[int, StepRecord]:
    """The history by step; a step that is in it twice was done twice, and the last time counts."""
    found: dict[int, StepRecord] = {}
    for row in source.rows(HISTORY) or ():
        done = _record(row)
        if done is None:
            continue
        if done.step in found:
            source.say(HISTORY, f"step {done.step} is in it more than once; the last one counts")
        found[done.step] = done
    for name in source.folders("steps"):
        match = _STEP.fullmatch(name)
        if match and int(match[1]) not in found:
            single = source.fields(f"steps/{name}/step_record.json")
            done = None if single is None else _record(single)
            if done is not None and done.step == int(match[1]):
                found[done.step] = done
    return found


def _step_numbers(source: Source, records: Mapping[int, StepRecord]) -> list[int]:
    """The steps that have a record or a folder, which may be empty."""
    named = {int(match[1]) for name in source.folders("steps") if (match := _STEP.fullmatch(name))}
    return sorted(number for number in (records.keys() | named) if 1 <= number <= _MOST_STEPS)


def _record(row: Fields) -> StepRecord | None:
    step, action = row.whole("step"), row.text("action")
    if step is None or not 1 <= step <= _MOST_STEPS or action is None:
        row.problems.append(Problem(row.path, "a record without step or action cannot be used"))
        return None
    applied = row.inner("edit_apply_summary")
    return record(
        StepRecord,
        row,
        step=step,
        action=action,
        batches=tuple(record(BatchRecord, each) for each in row.rows("accumulation_batches") or ()),
        applied=None if applied is None else applied.whole("applied"),
        seconds=_seconds(row),
        usage=read_usage(row.inner("tokens")),
        decision=_decision(row.inner("lr_decision")),
    )


def _seconds(row: Fields) -> dict[str, float]:
    timing = row.inner("timing")
    times = {} if timing is None else {key: timing.number(key) for key in timing.values}
    times["wall"] = row.number("wall_time_s")
    return {key: value for key, value in times.items() if value is not None}


def read_usage(table: Fields | None) -> dict[str, ImportedUsage]:
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
    asked = raw if isinstance(raw, int) and not isinstance(raw, bool) else None
    return record(Decision, row, budget=budget, asked=asked, fallback=row.flag("fallback") is True)


# --- a step's folder -----------------------------------------------------------------------------------------------


def _step(source: Source, number: int, done: StepRecord | None) -> OriginalStep:
    folder = step_folder(number)
    batches = _batch_folders(source, folder, done)
    digest = source.fields(f"{folder}/trajectory_digest.json")
    notes = source.fields(f"{folder}/appendix_notes.json")
    return OriginalStep(
        number=number,
        record=done,
        rollouts=tuple(read_results(source, f"{at}/rollout") for at in batches),
        proposals=tuple(_proposals(source, at) for at in batches),
        merged=_proposal(source, f"{folder}/merged_patch.json", ""),
        ranked=_proposal(source, f"{folder}/ranked_edits.json", ""),
        decision=_decision(source.fields(f"{folder}/lr_decision.json")) or (done.decision if done else None),
        rewrite=_rewrite(source.fields(f"{folder}/rewrite_result.json")),
        candidate=source.text(f"{folder}/candidate_skill.md"),
        report=_report(source, f"{folder}/edit_apply_report.json"),
        selection=read_results(source, f"{folder}/selection_eval"),
        standing=read_results(source, f"{folder}/selection_eval_current"),
        digest_before=None if digest is None else digest.number("score_before"),
        failed=None if digest is None else _failed(digest),
        notes=None if notes is None else notes.texts("appendix_after"),
        skill=source.text(skill_file(number)),
    )


def _failed(digest: Fields) -> tuple[str, ...] | None:
    """The items that the step's analysts saw as failures."""
    patterns = digest.rows("failure_patterns")
    return None if patterns is None else tuple(item for row in patterns for item in row.texts("task_ids"))


def _batch_folders(source: Source, folder: str, done: StepRecord | None) -> list[str]:
    """Where the step's batches lie, in order."""
    named = sorted(int(match[1]) for name in source.folders(folder) if (match := _BATCH.fullmatch(name)))
    recorded = len(done.batches) if done else 0
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
        changes=() if inner is None else _changes(inner, kind),
        reasoning="" if inner is None else inner.shown("reasoning"),
        patterns=_patterns(whole),
        notes=whole.texts("appendix_notes"),
        ranking="" if details is None else details.shown("reasoning"),
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


def _changes(patch: Fields, kind: str) -> tuple[Change, ...]:
    """What a patch proposes, under the key that its update mode has."""
    for key, read in _READ.items():
        rows = patch.rows(key)
        if rows is not None:
            return tuple(
                Change(
                    said=read(row),
                    support=row.whole("support_count"),
                    source=row.text("source_type") or kind,
                    level=row.whole("merge_level"),
                )
                for row in rows
            )
    return ()


def _edit(row: Fields) -> Edit | None:
    op = row.text("op")
    if op not in get_args(EditOp):
        return None
    return Edit(id="", op=cast("EditOp", op), content=row.shown("content"), target=row.shown("target"))


def _suggestion(row: Fields) -> Suggestion | None:
    kind, hint = row.text("type"), row.text("priority_hint")
    if kind not in get_args(SuggestionKind):
        return None
    return Suggestion(
        id="",
        kind=cast("SuggestionKind", kind),
        instruction=row.shown("instruction"),
        title=row.shown("title"),
        motivation=row.shown("motivation"),
        priority=cast("Priority", hint) if hint in get_args(Priority) else "medium",
    )


def _draft(row: Fields) -> Draft | None:
    text = row.shown("new_skill")
    return Draft(id="", text=text, title=row.shown("title"), changes=row.texts("change_summary")) if text else None


_READ: Mapping[str, Callable[[Fields], Proposed | None]] = {EDITS: _edit, SUGGESTIONS: _suggestion, DRAFTS: _draft}


def _rewrite(row: Fields | None) -> RewriteResult | None:
    written = None if row is None else record(RewriteResult, row)
    return written if written and written.text else None


def _report(source: Source, path: str) -> tuple[tuple[int | None, str], ...] | None:
    rows = source.rows(path)
    return None if rows is None else tuple((row.whole("index"), row.name("status")) for row in rows)
