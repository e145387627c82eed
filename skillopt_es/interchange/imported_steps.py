"""The events of one step of an imported run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast, get_args

from skillopt_es.algorithms.classic.phases import open_step
from skillopt_es.algorithms.imported.original_edits import applied_by_original, rewritten_by_original
from skillopt_es.events.catalog import CandidateBuilt, CandidateGated, StepImported, StepSkipped
from skillopt_es.events.places import Place
from skillopt_es.events.values import (
    Draft,
    Edit,
    EditReport,
    GateAction,
    GateVerdict,
    ImportedBatch,
    Measured,
    Rewrite,
    Score,
    SkillTree,
    exceeds,
)
from skillopt_es.interchange.builder import Builder, score_of
from skillopt_es.interchange.imported_edits import Chosen, import_edits
from skillopt_es.interchange.layout import skill_file, skill_hash
from skillopt_es.interchange.original import BatchRecord, OriginalStep, Result, StepRecord
from skillopt_es.skill.alignment import align
from skillopt_es.skill.edits import apply_edits

_ACTIONS: frozenset[str] = frozenset(get_args(GateAction)) - {"indecisive"}
_SKIPS = ("skip_no_patches", "skip_no_rewrite")
_OUR_SKIPS = (
    *("nothing_to_fix", "nothing_asked", "nothing_proposed", "no_usable_patch", "no_edit_chosen"),
    *("unchanged", "too_large", "untrusted_only"),
)


def import_step(build: Builder, step: OriginalStep, epoch: int, *, last: bool) -> None:
    """Adds one step: all that is recorded of it, and what is not."""
    place = Place.of_step(epoch, step.number)
    if not step.begun:
        build.gap(
            place, "the step", "neither a record nor a file of it is there", step=step.number, skill=_after(build, step)
        )
        return
    build.add(_recorded(build, step))
    for number, rows in enumerate(step.rollouts):
        _train(build, step, place.in_batch(number), number, rows)
    chosen = import_edits(build, step, place)
    candidate = _candidate(build, step, place, chosen)
    build.rollouts(place.gate, "selection", candidate.hash if candidate else "", step.selection)
    build.rollouts(place.current, "selection", build.current.skill.hash, step.standing)
    if step.record is None:
        _without_record(build, step, place, last=last)
        return
    _verdict(build, step, step.record, place, candidate)


def follow_text(build: Builder, step: int, text: str | None, place: Place) -> None:
    """Says so when the skill that was kept is not the one that the recorded decisions lead to."""
    if text is None:
        build.gap(place, "whether the kept skill is the current one", f"{skill_file(step)} is not there")
    elif text != build.current.skill.text:
        why = f"{skill_file(step)} is not the text that the recorded decisions lead to"
        build.gap(place, "what changed the current skill", why, skill=build.tree(text))


def _after(build: Builder, step: OriginalStep) -> SkillTree | None:
    """The skill after a step of which the end is not known, where its text is there and another one."""
    if step.skill is None or step.skill == build.current.skill.text:
        return None
    return build.tree(step.skill)


def _without_record(build: Builder, step: OriginalStep, place: Place, *, last: bool) -> None:
    """A step that was cut short, or whose record is lost."""
    if last:
        build.gap(place, "how the step ended", "it has no record: the run stopped in the middle of it")
    else:
        build.gap(place, "how the step ended", "its record is not there", step=step.number, skill=_after(build, step))


# --- what the trainer recorded -------------------------------------------------------------------------------------


def _recorded(build: Builder, step: OriginalStep) -> StepImported:
    record = step.record
    single = [change for group in step.proposals for proposal in group for change in proposal.changes]
    seen = any(group for group in step.proposals) or (record is not None and record.patches == 0)
    batches = record.batches if record and record.batches else (None,) * len(step.rollouts)
    applied = record.applied if record else None
    if applied is None and step.report is not None:
        applied = sum(status.startswith("applied") for _, status in step.report)
    skipped = record is not None and record.action == "skip_no_patches"
    return StepImported(
        step=step.number,
        batches=tuple(_batch(step, number, batch, alone=len(batches) == 1) for number, batch in enumerate(batches)),
        failed=step.failed,
        proposed=len(single) if seen else None,
        merged=0 if skipped else _first(record.merged if record else None, step.merged),
        chosen=0 if skipped else _first(record.chosen if record else None, step.ranked),
        applied=0 if skipped else applied,
        candidate_value=record.value if record else None,
        current_value=record.current if record else None,
        best_value=record.best if record else None,
        seconds=record.seconds if record else {},
        usage=record.usage if record else {},
    )


def _first(recorded: int | None, proposal: object) -> int | None:
    changes = getattr(proposal, "changes", None)
    return recorded if recorded is not None or changes is None else len(changes)


def _batch(step: OriginalStep, number: int, batch: BatchRecord | None, *, alone: bool) -> ImportedBatch:
    rows = step.rollouts[number] if number < len(step.rollouts) else None
    return ImportedBatch(
        seed=batch.seed if batch else None,
        size=batch.size if batch else None,
        items=None if rows is None else tuple(row.item for row in rows),
        score=_train_score(step, number, batch, rows, alone=alone),
        failure_patches=batch.failure_patches if batch else None,
        success_patches=batch.success_patches if batch else None,
    )


def _train_score(
    step: OriginalStep, number: int, batch: BatchRecord | None, rows: tuple[Result, ...] | None, *, alone: bool
) -> Score | None:
    if batch is None:
        return None
    whole = step.record.rollouts if step.record and alone else batch.size
    hard, soft = batch.hard, batch.soft
    if alone and step.record is not None and hard is None:
        hard, soft = step.record.hard, step.record.soft
    return score_of(rows, (hard, soft), whole)


def _train(build: Builder, step: OriginalStep, place: Place, number: int, rows: tuple[Result, ...] | None) -> None:
    skill = build.current.skill.hash
    if rows is None:
        build.gap(place, "the result of each training item", "rollout/results.jsonl is not there")
    build.rollouts(place, "train", skill, rows)
    record = step.record
    batch = record.batches[number] if record and number < len(record.batches) else None
    alone = record is not None and len(record.batches) == 1
    score = _train_score(step, number, batch, rows, alone=alone)
    if score is not None:
        build.scored(place, "train", skill, rows, recorded=(score.hard, score.soft), measured=score.measured)


# --- the candidate and its verdict ---------------------------------------------------------------------------------


def _candidate(build: Builder, step: OriginalStep, place: Place, chosen: Chosen) -> SkillTree | None:
    """The candidate's text: the file, or what has the recorded hash; None, and a gap, when neither is there."""
    record = step.record
    wanted = record.candidate_hash if record else ""
    texts = [step.candidate] if step.candidate is not None else _possible(build, step, chosen)
    for text in texts:
        if wanted and skill_hash(text) != wanted:
            build.gap(place, "the candidate's text", f"none of the texts in the folder has its recorded hash {wanted}")
            return None
        parent, tree = build.current.skill, build.tree(text)
        whole = _is_whole(chosen)
        build.add(
            CandidateBuilt(
                step=step.number,
                parent=parent.hash,
                candidate=tree,
                reports=_written(chosen, changed=tree != parent) if whole else _reports(step, chosen),
                rewrite=Rewrite(kept=align(parent.text, tree.text)) if whole else None,
                notes=_added_notes(build),
                gaps_closed=_is_closed(parent, tree, chosen),
            )
        )
        return tree
    if wanted:
        build.gap(place, "the candidate's text", "candidate_skill.md is not there")
    return None


def _added_notes(build: Builder) -> int:
    """How many reminder notes the candidate has that the current skill does not have."""
    extended = open_step(build.state).step.extended
    return 0 if extended is None or extended.order != "measured" else len(extended.added)


def _possible(build: Builder, step: OriginalStep, chosen: Chosen) -> list[str]:
    """Texts that may be the candidate's, when one has the recorded hash."""
    wanted = step.record.candidate_hash if step.record else ""
    texts = [step.skill] if step.skill is not None else []
    parent, edits = build.current.skill, chosen or ()
    if _is_whole(chosen):
        written = [step.rewrite.text] if step.rewrite else [each.text for each in edits if isinstance(each, Draft)]
        texts += [rewritten_by_original(text) for text in written[:1]]
    elif chosen is not None:
        known = [each for each in edits if isinstance(each, Edit)]
        texts += [apply_edits(parent, known, close_gaps=close)[0].text for close in (True, False)]
        texts.append(applied_by_original(parent.text, known))
    return [text for text in texts if wanted and skill_hash(text) == wanted][:1]


def _is_closed(parent: SkillTree, tree: SkillTree, chosen: Chosen) -> bool:
    """Whether the candidate is what the edits give only where the gaps that they leave are closed."""
    edits = [each for each in chosen or () if isinstance(each, Edit)]
    return apply_edits(parent, edits, close_gaps=True)[0] == tree != apply_edits(parent, edits)[0]


def _is_whole(chosen: Chosen) -> bool:
    """Whether a whole new text took the skill's place."""
    return any(not isinstance(each, Edit) for each in chosen or ())


def _written(chosen: Chosen, *, changed: bool) -> tuple[EditReport, ...]:
    """What became of suggestions or of a draft: a text is written from all of them or from none."""
    status = "applied_rewrite" if changed else "skipped_no_change"
    return tuple(EditReport(each.id, status) for each in chosen or ())


def _reports(step: OriginalStep, chosen: Chosen) -> tuple[EditReport, ...]:
    if step.report is None or chosen is None:
        return ()
    by_index: Mapping[int | None, str] = dict(step.report)
    return tuple(
        EditReport(edit.id, by_index[number]) for number, edit in enumerate(chosen, start=1) if number in by_index
    )


def _verdict(build: Builder, step: OriginalStep, record: StepRecord, place: Place, candidate: SkillTree | None) -> None:
    if record.action in _SKIPS:
        reason = record.skip_reason if record.skip_reason in _OUR_SKIPS else record.action
        build.add(StepSkipped(step=step.number, reason=cast("object", reason)))  # type: ignore[arg-type]
        return
    metric, hard, soft = build.metric(record.metric), record.selection_hard, record.selection_soft
    why = _unusable(build, step, record, candidate)
    if why or metric is None or hard is None or soft is None or record.value is None:
        why = why or "its record has no whole selection score"
        after = None if record.action == "reject" else _after(build, step)  # what was refused changed nothing
        build.gap(place, "the verdict", why, step=step.number, skill=after)
        return
    known = build.state.measured.get(candidate.hash) if candidate else None
    if candidate is not None and known is None:
        at, recorded = place.gate, (hard, soft)
        build.scored(at, "selection", candidate.hash, step.selection, recorded=recorded, value=record.value)
    if step.standing is not None:
        build.scored(place.current, "selection", build.current.skill.hash, step.standing)
    compared, won, lost = _turned(build, candidate)
    score = score_of(step.selection, (hard, soft))
    assert score is not None
    action, best_value = cast("GateAction", record.action), _best_value(build, step, record)
    forced_best = action == "force_accept" and exceeds(record.value, best_value)
    verdict = GateVerdict(
        action=action,
        new_best=action == "accept_new_best" or forced_best,
        metric=metric,
        candidate_score=score if known is None else known.score,
        candidate_value=record.value,
        current_score=build.current.score,
        current_value=_current_value(build, step, record),
        best_value=best_value,
        compared=compared,
        won=won,
        lost=lost,
        known_from="" if known is None else known.place,
        rule=None if action == "force_accept" else "strict",
    )
    build.add(CandidateGated(step=step.number, candidate=candidate.hash if candidate else "", verdict=verdict))


def _unusable(build: Builder, step: OriginalStep, record: StepRecord, candidate: SkillTree | None) -> str:
    if record.action not in _ACTIONS:
        return f"the action {record.action!r:.40} is not known"
    if candidate is None and record.action != "reject":
        return "the text that was accepted is not there"
    return ""


def _before(build: Builder, step: OriginalStep) -> StepRecord | None:
    earlier = build.original.steps.get(step.number - 1)
    return earlier.record if earlier else None


def _current_value(build: Builder, step: OriginalStep, record: StepRecord) -> float | None:
    """The score that the candidate had to beat, which the original keeps when the text changes unmeasured."""
    if record.action == "reject":
        return record.current
    for value in (step.digest_before, build.current.value):
        if value is not None:
            return value
    earlier = _before(build, step)
    return earlier.current if earlier else None


def _best_value(build: Builder, step: OriginalStep, record: StepRecord) -> float | None:
    if record.action in ("reject", "accept"):
        return record.best
    if build.best.value is not None:
        return build.best.value
    earlier = _before(build, step)
    return earlier.best if earlier else None


def _turned(build: Builder, candidate: SkillTree | None) -> tuple[int | None, tuple[str, ...], tuple[str, ...]]:
    """How many items both skills were measured on, and which the candidate won and lost; None when not known."""
    new = build.state.measured.get(candidate.hash) if candidate else None
    old = build.state.measured.get(build.current.skill.hash)
    if new is None or old is None or not new.items or not old.items:
        return None, (), ()
    both: list[tuple[str, Measured, Measured]] = [
        (item, new.items[item], old.items[item]) for item in new.items if item in old.items
    ]
    won = tuple(item for item, now, then in both if now.hard > then.hard)
    lost = tuple(item for item, now, then in both if now.hard < then.hard)
    return len(both), won, lost
