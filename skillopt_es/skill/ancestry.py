"""
Where the lines of a candidate come from: one walk for applied edits, whole rewrites and reminder notes.

A candidate is a few changes in a row, each from one text of a file to the next. A line that a change keeps has the
ancestry it had; any other was made by the proposals that the change stands for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from attrs import frozen

from skillopt_es.events.values import Edit, EditReport, Proposal, Rewrite, SameLines, SkillTree
from skillopt_es.skill.alignment import align, lines_of
from skillopt_es.skill.edits import apply_edit
from skillopt_es.skill.rewriting import repaired

L = TypeVar("L")


@frozen(kw_only=True)
class Change:
    """One file from one text to the next: the lines that were kept, and the proposals that made the others."""

    file: str
    before: str
    after: str
    kept: tuple[SameLines, ...]
    made_by: tuple[str, ...]


@frozen(kw_only=True)
class Origin:
    """
    What was recorded of a candidate's making; `written` is the text that a model wrote anew, as it wrote it.

    `gaps_closed` says by which rule its edits were applied.
    """

    reports: tuple[EditReport, ...]
    proposals: Mapping[str, Proposal]
    rewrite: Rewrite | None = None
    written: str = ""
    noted_by: tuple[str, ...] = ()
    gaps_closed: bool = False


def changes(parent: SkillTree, candidate: SkillTree, origin: Origin) -> tuple[Change, ...]:
    """How a candidate came out of its parent: its edits or its rewrite, and then its reminder notes."""
    applied = tuple(report.edit for report in origin.reports if report.status.startswith("applied"))
    made = []
    tree = parent
    if origin.rewrite is not None and applied:
        after = repaired(parent.text, origin.written).text
        made.append(_change(tree, tree.main, after, applied, origin.rewrite.kept))
        tree = tree.with_text(after)
    for name in applied if origin.rewrite is None else ():
        edit = origin.proposals[name]
        assert isinstance(edit, Edit)
        file = edit.file or tree.main
        after = apply_edit(tree.files[file], edit, close_gaps=origin.gaps_closed).text
        made.append(_change(tree, file, after, (name,)))
        tree = tree.with_text(after, file)
    if tree.text != candidate.text:
        made.append(_change(tree, tree.main, candidate.text, origin.noted_by))
    return tuple(made)


def _change(
    tree: SkillTree, file: str, after: str, made_by: tuple[str, ...], kept: tuple[SameLines, ...] | None = None
) -> Change:
    before = tree.files[file]
    return Change(
        file=file, before=before, after=after, kept=align(before, after) if kept is None else kept, made_by=made_by
    )


def carried(labels: Sequence[L], change: Change, made: L) -> tuple[L, ...]:
    """A label for each line after a change: kept lines keep theirs, the others get the label of the change."""
    after = [made] * len(lines_of(change.after))
    for run in change.kept:
        after[run.new_start : run.new_start + run.length] = labels[run.old_start : run.old_start + run.length]
    return tuple(after)
