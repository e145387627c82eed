"""A step's proposed, merged and chosen edits (or suggestions, or drafts) and notes, from the original's files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypedDict

from attrs import evolve

from skillopt_es.algorithms.classic.phases import open_step
from skillopt_es.algorithms.imported.original_edits import noted_by_original
from skillopt_es.events.catalog import (
    AppendixConsolidated,
    AppendixExtended,
    AppendixWritten,
    EditsRanked,
    LearningRateChosen,
    PatchesMerged,
    PatchProposed,
    SkillRewritten,
)
from skillopt_es.events.places import Place
from skillopt_es.events.values import AppendixOrder, Draft, Edit, PatchSource, Suggestion
from skillopt_es.events.values import Proposal as Proposed
from skillopt_es.interchange.builder import Builder
from skillopt_es.interchange.flat_config import followed
from skillopt_es.interchange.original import Change, OriginalStep, Proposal
from skillopt_es.projections.state import proposals_in
from skillopt_es.skill.appendix import Proposed as ProposedNote
from skillopt_es.skill.appendix import appendix_notes, extended, with_appendix

Chosen = tuple[Proposed, ...] | None
"""What a step applied, in order; None when that is not known."""
_KINDS: dict[str, PatchSource] = {"failure": "failure", "success": "success"}


def import_edits(build: Builder, step: OriginalStep, place: Place) -> Chosen:
    """Adds a step's patches, merge, budget and ranking, as far as they are there; what the step applied."""
    patches = _patches(build, step, place)
    import_notes(build, step, place)
    if step.merged is None:
        if step.record is not None and step.record.merged is not None:
            build.gap(place, "which edits were merged and chosen", "merged_patch.json is not there")
        return None
    pool = _pool(build, step.merged, patches, place)
    _decision(build, step, len(pool))
    if step.ranked is None or pool is None:
        return None
    chosen = _matched(step.ranked.changes, pool)
    budget = step.record.budget if step.record else (step.decision.budget if step.decision else None)
    if chosen is None:
        build.gap(place, "which edits were chosen", "ranked_edits.json does not fit the other files")
        return None
    build.add(
        EditsRanked(
            step=step.number,
            budget=budget,
            pool=tuple(edit.id for edit in pool),
            chosen=tuple(edit.id for edit in chosen),
            reasoning=step.ranked.ranking,
        )
    )
    if step.rewrite is not None:
        build.add(
            SkillRewritten(
                step=step.number,
                result="written",
                text=step.rewrite.text,
                changes=step.rewrite.changes,
                reasoning=step.rewrite.reasoning,
            )
        )
    return chosen


def _patches(build: Builder, step: OriginalStep, place: Place) -> list[PatchProposed]:
    """One event an analyst's file; supports come from the merge, where a single patch is the whole pool."""
    usable = [proposal for group in step.proposals for proposal in group if proposal.changes]
    found: list[PatchProposed] = []
    for number, group in enumerate(step.proposals):
        for proposal in group:
            alone = step.merged if usable == [proposal] and step.merged else None
            name = place.in_batch(number).analyst(proposal.kind, proposal.name)
            said = _named(name, alone.changes if alone else proposal.changes, proposal.kind)
            if len(said) < len(proposal.changes):
                build.gap(name, "what some of its edits do", "they are of an unknown kind")
            patch = PatchProposed(
                patch=name,
                step=step.number,
                kind=_KINDS[proposal.kind],
                items=(),
                result=_result(said) if said else "notes" if proposal.notes else "nothing",
                **_by_kind(said),
                notes=proposal.notes,
                patterns=proposal.patterns,
                reasoning=proposal.reasoning,
            )
            build.add(patch)
            found.append(patch)
    return found


class _Kinds(TypedDict):
    """What was proposed, by update mode: all but one are empty."""

    edits: tuple[Edit, ...]
    suggestions: tuple[Suggestion, ...]
    drafts: tuple[Draft, ...]


def _by_kind(said: Sequence[Proposed]) -> _Kinds:
    return _Kinds(
        edits=tuple(each for each in said if isinstance(each, Edit)),
        suggestions=tuple(each for each in said if isinstance(each, Suggestion)),
        drafts=tuple(each for each in said if isinstance(each, Draft)),
    )


def _result(said: Sequence[Proposed]) -> Literal["edits", "suggestions", "draft"]:
    match said[0]:
        case Edit():
            return "edits"
        case Suggestion():
            return "suggestions"
        case Draft():
            return "draft"


def _named(maker: str, changes: Iterable[Change], source: str) -> tuple[Proposed, ...]:
    """The proposals whose kind is known, under the maker's name."""
    found: list[Proposed] = []
    for number, change in enumerate(changes, start=1):
        if change.said is not None:
            kind = _KINDS.get(change.source, _KINDS.get(source, "failure"))
            named = evolve(change.said, id=f"{maker}#{number}", source=kind)
            found.append(named if change.support is None else evolve(named, support=change.support))
    return tuple(found)


def _pool(build: Builder, merged: Proposal, patches: Sequence[PatchProposed], place: Place) -> tuple[Proposed, ...]:
    """What could be chosen: the only patch as it is, or a merge."""
    usable = [patch for patch in patches if proposals_in(patch)]
    if len(usable) == 1 and len(proposals_in(usable[0])) == len(merged.changes):
        return proposals_in(usable[0])
    levels = [change.level for change in merged.changes if change.level is not None]
    kinds = {_KINDS[change.source] for change in merged.changes if change.source in _KINDS}
    kinds = kinds or {patch.kind for patch in usable}
    group = next(iter(kinds)) if levels and len(kinds) == 1 else "final"
    level = max(levels) if levels and group != "final" else 0
    name = place.last_merge if group == "final" else place.merge(group, level, 0)
    inputs = [each for patch in usable for each in proposals_in(patch)]
    united = with_origins(_named(name, merged.changes, ""), inputs)
    build.add(
        PatchesMerged(
            merge=name,
            step=usable[0].step if usable else _step_number(build),
            group=group,
            level=level,
            inputs=tuple(patch.patch for patch in usable),
            **_by_kind(united),
            reasoning=merged.reasoning,
        )
    )
    return united


def with_origins(merged: Sequence[Proposed], inputs: Sequence[Proposed]) -> tuple[Proposed, ...]:
    """
    What was merged with what they may come from, as no file says it: inputs of the same words, and all without such.

    An input that nothing merged repeats can be part of any; so nothing is said to be merged away that perhaps was not.
    """
    repeated = {_words(edit) for edit in merged}
    unplaced = [edit.id for edit in inputs if _words(edit) not in repeated]
    found: list[Proposed] = []
    for edit in merged:
        same = [each.id for each in inputs if _words(each) == _words(edit)]
        origins = (*same, *unplaced) or tuple(each.id for each in inputs)
        found.append(evolve(edit, origins=origins, origins_assumed=bool(origins)))
    return tuple(found)


def _words(said: Proposed) -> tuple[str, ...]:
    match said:
        case Edit():
            return said.op, said.content, said.target
        case Suggestion():
            return said.kind, said.title, said.motivation, said.instruction
        case Draft():
            return (said.text,)


def _step_number(build: Builder) -> int:
    return open_step(build.state).step.number


def _decision(build: Builder, step: OriginalStep, pool: int) -> None:
    made = step.decision
    if made is None:
        return
    build.add(
        LearningRateChosen(
            step=step.number,
            result="unusable" if made.fallback else "chosen",
            available=pool if made.available is None else made.available,
            budget=made.budget,
            asked=made.asked,
            confidence=made.confidence,
            risks=made.risks,
            reasoning=made.reasoning,
        )
    )


def _matched(changes: Sequence[Change], pool: Sequence[Proposed]) -> tuple[Proposed, ...] | None:
    """Those of the pool that say what the chosen ones say, each once; None when one is not in it."""
    left = list(pool)
    found: list[Proposed] = []
    for change in changes:
        if change.said is None:
            continue
        same = [each for each in left if _words(each) == _words(change.said)]
        if not same:
            return None
        left.remove(same[0])
        found.append(same[0])
    return tuple(found)


def import_notes(build: Builder, step: OriginalStep, place: str) -> None:
    """Adds what became of the notes that the step's patches have; a gap where the files do not agree."""
    if step.notes is None:
        return
    opened = open_step(build.state).step
    proposed = [ProposedNote(patch.patch, note) for patch in opened.patches.values() for note in patch.notes]
    before = appendix_notes(build.current.skill.text)
    most = build.original.config.get("optimizer.skill_aware_max_notes")
    room = most if isinstance(most, int) else len(before) + len(proposed)
    notes, reports = extended(before, proposed, most=room)
    if notes != step.notes:
        build.gap(place, "what became of the reminder notes", "appendix_notes.json does not follow from the patches")
        return
    measured = not build.of_original and "notes_after_verdict" not in followed(build.original.config)
    order: AppendixOrder = "measured" if measured else "after_verdict"
    build.add(AppendixExtended(step=step.number, order=order, reports=reports, notes=notes))
    fewer = step.record.notes_consolidated if step.record else None
    if fewer is not None:
        _consolidated(
            build, step.number, step.notes, place, text=step.candidate if measured else step.skill, fewer=fewer
        )


def _consolidated(
    build: Builder, step: int, before: tuple[str, ...], place: str, *, text: str | None, fewer: int
) -> None:
    """The shorter list is only in the text that it was written into."""
    notes = () if text is None else appendix_notes(text)
    if len(notes) != fewer:
        build.gap(place, "the shorter list of reminder notes", "none of the texts in the folder has so many")
        return
    build.add(AppendixConsolidated(step=step, result="consolidated", before=before, notes=notes))


def write_notes(build: Builder, step: OriginalStep, *, kept: bool) -> None:
    """Adds that the notes went into the current skill; `kept` says whether the step's own skill file has that text."""
    notes = build.state.algorithm.unwritten
    if not notes:
        return
    written = noted_by_original if build.of_original else with_appendix
    text = written(build.current.skill.text, notes)
    if kept and step.skill is not None and appendix_notes(step.skill) == notes:
        text = step.skill
    skill = build.tree(text)
    known = build.state.measured.get(skill.hash)
    build.add(
        AppendixWritten(
            step=step.number,
            previous=build.current.skill.hash,
            previous_value=build.current.value,
            skill=skill,
            notes=notes,
            value=known.value if known else None,
        )
    )
