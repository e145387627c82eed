"""How near a wrong answer came to a right one: a hint where grades are all or nothing, and never a score. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

_MOST_CHARS = 1_000  # of either text: longer ones are compared by their beginning
_NOT_RIGHT = 0.99


def nearness(said: str, accepted: Sequence[str]) -> float | None:
    """The share of characters that an answer has in common with the nearest accepted one; None where there is none."""
    mine = said.strip()[:_MOST_CHARS]
    if not accepted:
        return None
    likest = max(SequenceMatcher(None, mine, each.strip()[:_MOST_CHARS], autojunk=False).ratio() for each in accepted)
    return min(_NOT_RIGHT, round(likest, 2))
