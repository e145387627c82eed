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
from skillopt_es.skill.edits import done_by, in_order
from skillopt_es.skill.rewriting import repaired

L = TypeVar("L")


@frozen(kw_only=True)
class Change:
    """
    One file from one text to the next: the lines that were kept, and the proposals that made the others.

    The text before is that of its `sources`: mostly the file itself, none for a new one, or those that it took over.
    """

    file: str
    sources: tuple[str, ...]
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
    made: list[Change] = []
    tree = parent
    if origin.rewrite is not None and applied:
        after = repaired(parent.text, origin.written).text
        made.append(_change(tree, tree.main, after, applied, (tree.main,), origin.rewrite.kept))
        tree = tree.with_text(after)
    edits = [origin.proposals[name] for name in applied] if origin.rewrite is None else []
    for edit in in_order([edit for edit in edits if isinstance(edit, Edit)]):
        done = done_by(tree, edit, close_gaps=origin.gaps_closed)
        made += [_change(tree, file, new.text, (edit.id,), new.sources) for file, new in done.written.items()]
        tree = done.tree(tree)
    if tree.text != candidate.text:
        made.append(_change(tree, tree.main, candidate.text, origin.noted_by, (tree.main,)))
    return tuple(made)


def _change(
    tree: SkillTree,
    file: str,
    after: str,
    made_by: tuple[str, ...],
    sources: tuple[str, ...],
    kept: tuple[SameLines, ...] | None = None,
) -> Change:
    before = together([tree.files[source] for source in sources])
    return Change(
        file=file,
        sources=sources,
        before=before,
        after=after,
        kept=align(before, after) if kept is None else kept,
        made_by=made_by,
    )


def together(texts: Sequence[str]) -> str:
    """Several texts as one, whose lines are those of each in turn."""
    return texts[0] if len(texts) == 1 else "".join(f"{line}\n" for text in texts for line in lines_of(text))


def carried(labels: Sequence[L], change: Change, made: L) -> tuple[L, ...]:
    """A label for each line after a change: kept lines keep theirs, the others get the label of the change."""
    after = [made] * len(lines_of(change.after))
    for run in change.kept:
        after[run.new_start : run.new_start + run.length] = labels[run.old_start : run.old_start + run.length]
    return tuple(after)
