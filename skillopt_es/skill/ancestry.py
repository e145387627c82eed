"""
Where the lines of a candidate come from: one walk for applied edits and for whole rewrites.

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

L = TypeVar("L")


@frozen(kw_only=True)
class Change:
    """One file from one text to the next: the lines that were kept, and the proposals that made the others."""

    file: str
    before: str
    after: str
    kept: tuple[SameLines, ...]
    made_by: tuple[str, ...]


def changes(
    parent: SkillTree,
    candidate: SkillTree,
    reports: Sequence[EditReport],
    rewrite: Rewrite | None,
    proposals: Mapping[str, Proposal],
) -> tuple[Change, ...]:
    """How a candidate came out of its parent, from what was recorded when it was built."""
    applied = [report.edit for report in reports if report.status.startswith("applied")]
    if rewrite is not None:
        whole = Change(
            file=parent.main, before=parent.text, after=candidate.text, kept=rewrite.kept, made_by=tuple(applied)
        )
        return (whole,) if applied else ()
    made = []
    tree = parent
    for name in applied:
        edit = proposals[name]
        assert isinstance(edit, Edit)
        file = edit.file or tree.main
        before, after = tree.files[file], apply_edit(tree.files[file], edit).text
        made.append(Change(file=file, before=before, after=after, kept=align(before, after), made_by=(name,)))
        tree = tree.with_text(after, file)
    return tuple(made)


def carried(labels: Sequence[L], change: Change, made: L) -> tuple[L, ...]:
    """A label for each line after a change: kept lines keep theirs, the others get the label of the change."""
    after = [made] * len(lines_of(change.after))
    for run in change.kept:
        after[run.new_start : run.new_start + run.length] = labels[run.old_start : run.old_start + run.length]
    return tuple(after)
