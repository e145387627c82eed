"""
Blank lines where an edit was: what a removed line leaves behind, and what an inserted one brings along.

An author's own blank lines stay. Where two runs of them meet, the longer one is left; nothing else of a text changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile


def removed(head: str, tail: str, *, line_ended: bool) -> str:
    """
    A text without what stood between head and tail, and without the empty line or the second gap that this leaves.

    `line_ended` says that what stood there ended its own line, so that the tail begins with a line of its own.
    """
    before, after = head.split("\n"), tail.split("\n")
    if (before[-1] + after[0]).strip():
        return head + tail
    rest = after if line_ended else after[1:]
    return _met(before[:-1], rest)


def inserted(head: str, content: str, tail: str) -> str:
    """A text with new lines after head, as a paragraph of their own: with the gaps that are there, or else one line."""
    above = _met(head.removesuffix("\n").split("\n"), [content], least=1)
    return _met(above.split("\n"), tail.split("\n"), least=1)


def _met(before: Sequence[str], after: Sequence[str], *, least: int = 0) -> str:
    """Two pieces of a text, with the longer one of the two runs of blank lines where they meet; none at either end."""
    above = list(before[: len(before) - _blank(reversed(before))])
    below = list(after[_blank(after) :])
    gap = max(least, len(before) - len(above), len(after) - len(below))
    if not above:
        return "\n".join(below)
    if not below:
        return "\n".join([*above, ""])
    return "\n".join([*above, *[""] * gap, *below])


def _blank(lines: Iterable[str]) -> int:
    """How many lines at the beginning are blank."""
    return sum(1 for _ in takewhile(lambda line: not line.strip(), lines))
