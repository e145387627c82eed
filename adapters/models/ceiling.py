"""How many calls at once an endpoint takes, where its refusals show that it counts them: pure."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

LOOKED_AT = 32
_FEWEST = 4
_MOST_WRONG = 0.1


@frozen
class Seen:
    """What became of a call, and how many were in flight when it was sent, itself included."""

    level: int
    refused: bool


def ceiling(seen: Sequence[Seen]) -> int | None:
    """
    The most calls at once that were not refused; None where the refusals have nothing to do with how many there were.

    An endpoint that counts refuses nearly all that are sent above its limit and nearly none below; one that counts
    calls a minute, or fails by chance, refuses at any level.
    """
    refused = sum(one.refused for one in seen)
    if refused < _FEWEST or len(seen) - refused < _FEWEST:
        return None
    best, fewest = None, len(seen)
    for level in sorted({one.level for one in seen if one.refused}):
        wrong = sum(one.refused != (one.level >= level) for one in seen)
        if wrong < fewest:
            best, fewest = level, wrong
    if best is None or fewest > _MOST_WRONG * len(seen):
        return None
    above = [one for one in seen if one.level >= best]
    enough = sum(one.refused for one in above) >= max(_FEWEST, (1 - _MOST_WRONG) * len(above))
    return max(1, best - 1) if enough else None
