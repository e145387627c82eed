"""Texts within a budget of characters: heads and tails are kept, and each cut is marked."""

from __future__ import annotations

from collections.abc import Sequence

_LEAST = 400  # a record cut to less says nothing: then the whole is cut once


def shortened(text: str, most: int) -> str:
    """The text, or its head and tail with the cut marked."""
    if len(text) <= most:
        return text
    head = most * 2 // 3
    tail = most - head
    return f"{text[:head]}\n[… {len(text) - most} characters cut …]\n{text[len(text) - tail :]}"


def fitted(records: Sequence[str], most: int) -> str:
    """
    The records on lines of their own, together at most so long but for the marks.

    The longest ones are cut, all to the same length, so that one long record does not hide the others.
    """
    whole = "\n".join(records)
    if len(whole) <= most:
        return whole
    share = _share([len(record) for record in records], most - len(records) + 1)
    if share < _LEAST:
        return shortened(whole, most)
    return "\n".join(shortened(record, share) for record in records)


def _share(lengths: Sequence[int], most: int) -> int:
    """The length to which the longest are cut, so that all of them add up to at most so much."""
    left = most
    for place, length in enumerate(sorted(lengths)):
        share = left // (len(lengths) - place)
        if length > share:
            return share
        left -= length
    return left
