"""A step's proposed, merged and chosen edits, from the files that the original leaves of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import evolve, frozen

from skillopt_es.events.catalog import EditsRanked, LearningRateChosen, PatchesMerged, PatchProposed
from skillopt_es.events.values import Edit, EditOp, Evidence
from skillopt_es.interchange.builder import Builder
from skillopt_es.interchange.imported_notes import import_notes
from skillopt_es.interchange.original import Change, Proposal, Step

_OPS: dict[str, EditOp] = {
    "append": "append",
    "insert_after": "insert_after",
    "replace": "replace",
    "delete": "delete",
}
_KINDS: dict[str, Evidence] = {"failure": "failure", "success": "success"}


@frozen
class Chosen:
    """The edits that a step applied, in order; None when that is not known."""

    edits: tuple[Edit, ...] | None


def import_edits(build: Builder, step: Step, place: str) -> Chosen:
    """Adds a step's patches, merge, budget and ranking, as far as they are there."""
    patches = _patches(build, step, place)
    import_notes(build, step, place)
    if step.merged is None:
        if step.record is not None and step.record.merged is not None:
            build.gap(place, "which edits were merged and chosen", "merged_patch.json is not there")
        return Chosen(None)
    pool = _pool(build, step.merged, patches, place)
    _decision(build, step, len(pool))
    if step.ranked is None or pool is None:
        return Chosen(None)
    chosen = _matched(step.ranked.changes, pool)
    budget = step.record.budget if step.record else (step.decision.budget if step.decision else None)
    if chosen is None:
        build.gap(place, "which edits were chosen", "ranked_edits.json does not fit the other files")
        return Chosen(None)
    details = step.ranked.indices is not None
    build.add(
        EditsRanked(
            step=step.number,
            budget=budget,
            pool=tuple(edit.id for edit in pool),
            chosen=tuple(edit.id for edit in chosen),
            reasoning=step.ranked.reasoning if details else "",
        )
    )
    return Chosen(chosen)


def _patches(build: Builder, step: Step, place: str) -> list[PatchProposed]:
    """One event an analyst's file; supports come from the merge, where a single patch is the whole pool."""
    usable = [proposal for group in step.proposals for proposal in group if proposal.changes]
    found: list[PatchProposed] = []
    for number, group in enumerate(step.proposals):
        for proposal in group:
            alone = step.merged if usable == [proposal] and step.merged else None
            name = f"{place}/b{number}/{proposal.kind}-{proposal.name}"
            edits = _edits(name, alone.changes if alone else proposal.changes, proposal.kind)
            if len(edits) < len(proposal.changes):
                build.gap(name, "what some of its edits do", "they have an unknown op")
            patch = PatchProposed(
                patch=name,
                step=step.number,
                kind=_KINDS[proposal.kind],
                items=(),
                result="edits" if edits else "notes" if proposal.notes else "nothing",
                edits=edits,
                notes=proposal.notes,
                patterns=proposal.patterns,
                reasoning=proposal.reasoning,
            )
            build.add(patch)
            found.append(patch)
    return found


def _edits(maker: str, changes: Iterable[Change], source: str) -> tuple[Edit, ...]:
    """The edits whose op is known, under the maker's name."""
    return tuple(
        _edit(f"{maker}#{number}", change, source)
        for number, change in enumerate(changes, start=1)
        if change.op in _OPS
    )


def _edit(name: str, change: Change, source: str) -> Edit:
    kind = _KINDS.get(change.source, _KINDS.get(source, "failure"))
    edit = Edit(id=name, op=_OPS[change.op], content=change.content, target=change.target, source=kind)
    return edit if change.support is None else evolve(edit, support=change.support)


def _pool(build: Builder, merged: Proposal, patches: Sequence[PatchProposed], place: str) -> tuple[Edit, ...]:
    """The edits that could be chosen: the only patch as it is, or a merge."""
    usable = [patch for patch in patches if patch.edits]
    if len(usable) == 1 and len(usable[0].edits) == len(merged.changes):
        return usable[0].edits
    levels = [change.level for change in merged.changes if change.level is not None]
    kinds = {_KINDS[change.source] for change in merged.changes if change.source in _KINDS}
    group = next(iter(kinds)) if levels and len(kinds) == 1 else "final"
    level = max(levels) if levels and group != "final" else 0
    name = f"{place}/merge/final" if group == "final" else f"{place}/merge/{group}-{level}-0"
    edits = with_origins(_edits(name, merged.changes, ""), [edit for patch in usable for edit in patch.edits])
    build.add(
        PatchesMerged(
            merge=name,
            step=usable[0].step if usable else _step_number(build),
            group=group,
            level=level,
            inputs=tuple(patch.patch for patch in usable),
            edits=edits,
            reasoning=merged.reasoning,
        )
    )
    return edits


def with_origins(merged: Sequence[Edit], inputs: Sequence[Edit]) -> tuple[Edit, ...]:
    """
    The merged edits with what they may come from, as no file says it: inputs of the same words, and all without such.

    An input that no merged edit repeats can be part of any; so nothing is said to be merged away that perhaps was not.
    """
    repeated = {_words(edit) for edit in merged}
    unplaced = [edit.id for edit in inputs if _words(edit) not in repeated]
    found = []
    for edit in merged:
        same = [each.id for each in inputs if _words(each) == _words(edit)]
        origins = (*same, *unplaced) or tuple(each.id for each in inputs)
        found.append(evolve(edit, origins=origins, origins_assumed=bool(origins)))
    return tuple(found)


def _words(change: Change | Edit) -> tuple[str, str, str]:
    return change.op, change.content, change.target


def _step_number(build: Builder) -> int:
    assert build.state.step is not None
    return build.state.step.number


def _decision(build: Builder, step: Step, pool: int) -> None:
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


def _matched(changes: Sequence[Change], pool: Sequence[Edit]) -> tuple[Edit, ...] | None:
    """The edits of the pool that say what the chosen ones say, each once; None when one is not in it."""
    left = list(pool)
    found: list[Edit] = []
    for change in changes:
        if change.op not in _OPS:
            continue
        same = [edit for edit in left if _words(edit) == _words(change)]
        if not same:
            return None
        left.remove(same[0])
        found.append(same[0])
    return tuple(found)
