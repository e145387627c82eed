"""
Which lines of a text survive in a newer one: the alignment of two texts, as runs of equal lines.

Lines that stand once in both texts decide first (as in a patience diff), so that blank and repeated lines follow what
they belong to. Lines only ever keep their order: what moved is one line gone and one line new. The same two texts have
the same alignment anywhere.
"""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence

from attrs import frozen

from skillopt_es.events.values import SameLines

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
