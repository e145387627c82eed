"""
The lines of a text and of the one before it: which survive, which were changed, and where each comes from.

Lines that stand once in both texts decide first (as in a patience diff), so that blank and repeated lines follow what
they belong to. Lines only ever keep their order: what moved is one line gone and one line new. The same two texts have
the same alignment anywhere.

A candidate is a few changes in a row, each from one text of a file to the next. A line that a change keeps has the
ancestry it had; any other was made by the proposals that the change stands for.
"""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from attrs import frozen

from skillopt_es.events.values import Edit, EditReport, Proposal, Rewrite, SameLines, SkillTree
from skillopt_es.skill.edits import done_by, in_order
from skillopt_es.skill.rewriting import repaired

_SMALL = 40_000  # pairs of lines that are compared each with each where no line stands once
_PATIENCE = 2_000_000  # lines looked at in all; texts made to take longer keep fewer lines


def lines_of(text: str) -> list[str]:
    """The lines of a text, whether or not a line break ends the last one."""
    return text.removesuffix("\n").split("\n") if text else []


def align(before: str, after: str) -> tuple[SameLines, ...]:
    """The runs of lines of `before` that stand in `after`, in order; each is as long as it can be."""
    old, new = lines_of(before), lines_of(after)
    pairs: list[tuple[int, int]] = []
    waiting = [_Range(0, len(old), 0, len(new))]
    seen = 0
    while waiting:
        matched, rest = _trimmed(old, new, waiting.pop())
        pairs += matched
        if rest is None or seen > _PATIENCE:
            continue
        seen += rest.old_end - rest.old + rest.new_end - rest.new
        anchors = _anchors(old, new, rest)
        if anchors:
            pairs += anchors
            waiting += _between(rest, anchors)
        elif (rest.old_end - rest.old) * (rest.new_end - rest.new) <= _SMALL:
            pairs += _compared(old, new, rest)
    return _runs(sorted(pairs))


@frozen
class _Range:
    """A stretch of the old lines beside a stretch of the new ones."""

    old: int
    old_end: int
    new: int
    new_end: int


def _trimmed(old: Sequence[str], new: Sequence[str], part: _Range) -> tuple[list[tuple[int, int]], _Range | None]:
    """The equal lines at both ends of a range, and what is left between them, if both sides have something left."""
    pairs = []
    left, right, left_end, right_end = part.old, part.new, part.old_end, part.new_end
    while left < left_end and right < right_end and old[left] == new[right]:
        pairs.append((left, right))
        left, right = left + 1, right + 1
    while left < left_end and right < right_end and old[left_end - 1] == new[right_end - 1]:
        left_end, right_end = left_end - 1, right_end - 1
        pairs.append((left_end, right_end))
    if left == left_end or right == right_end:
        return pairs, None
    return pairs, _Range(left, left_end, right, right_end)


def _anchors(old: Sequence[str], new: Sequence[str], part: _Range) -> list[tuple[int, int]]:
    """The longest list, in order, of lines that stand exactly once on both sides."""
    in_old = Counter(old[part.old : part.old_end])
    in_new = Counter(new[part.new : part.new_end])
    places = {new[at]: at for at in range(part.new, part.new_end) if in_new[new[at]] == 1}
    pairs = [
        (at, places[old[at]]) for at in range(part.old, part.old_end) if in_old[old[at]] == 1 and old[at] in places
    ]
    return _longest_rising(pairs)


def _longest_rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part of the pairs in which the second number rises as the first one does."""
    # `ends` has, for each length, the smallest place at which a rising part of that length ends.
    ends: list[int] = []
    last_of: list[int] = []
    before: list[int] = []
    for index, (_, place) in enumerate(pairs):
        length = bisect_left(ends, place)
        before.append(last_of[length - 1] if length else -1)
        if length == len(ends):
            ends.append(place)
            last_of.append(index)
        else:
            ends[length], last_of[length] = place, index
    chosen = []
    index = last_of[-1] if last_of else -1
    while index >= 0:
        chosen.append(pairs[index])
        index = before[index]
    return chosen[::-1]


def _between(part: _Range, anchors: Sequence[tuple[int, int]]) -> Iterable[_Range]:
    """The ranges before, between and after the anchors."""
    left, right = part.old, part.new
    for old, new in anchors:
        yield _Range(left, old, right, new)
        left, right = old + 1, new + 1
    yield _Range(left, part.old_end, right, part.new_end)


def _compared(old: Sequence[str], new: Sequence[str], part: _Range) -> Iterable[tuple[int, int]]:
    left, right = old[part.old : part.old_end], new[part.new : part.new_end]
    # With autojunk, lines that are frequent in a long text would be passed over.
    for match in difflib.SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks():
        for offset in range(match.size):
            yield part.old + match.a + offset, part.new + match.b + offset


def _runs(pairs: Sequence[tuple[int, int]]) -> tuple[SameLines, ...]:
    runs: list[SameLines] = []
    for old, new in pairs:
        last = runs[-1] if runs else None
        if last is not None and (last.old_start + last.length, last.new_start + last.length) == (old, new):
            runs[-1] = SameLines(last.old_start, last.new_start, last.length + 1)
        else:
            runs.append(SameLines(old, new, 1))
    return tuple(runs)


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
    applied = tuple(report.edit for report in origin.reports if report.applied)
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
