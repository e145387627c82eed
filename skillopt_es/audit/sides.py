"""The two sides of a `diff`, as words: moments of one run, two runs, or a moment of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

from attrs import frozen

from skillopt_es.moments import Moment

_Part = tuple[Literal["run"], str] | tuple[Literal["moment"], Moment]
_KINDS = ("step", "epoch", "seq")


@frozen
class Side:
    """A run (the newest when None) at a moment (its end when None)."""

    run: str | None
    moment: Moment | None


def sides_of(words: Sequence[str]) -> tuple[Side, Side] | None:
    """Both sides, or None for words that do not name two: `[RUN] A B`, `RUN RUN`, `[RUN] A`, `RUN A RUN B`."""
    match _parts(words):
        case [("run", one), ("run", other)]:
            return Side(one, None), Side(other, None)
        case [("run", one), ("moment", first), ("run", other), ("moment", second)]:
            return Side(one, first), Side(other, second)
        case [("run", run), *moments]:
            return _of_one(run, moments)
        case moments:
            return _of_one(None, moments)


def _of_one(run: str | None, parts: Sequence[_Part]) -> tuple[Side, Side] | None:
    """Two moments of a run, or one and now."""
    match parts:
        case [("moment", first)]:
            return Side(run, first), Side(run, None)
        case [("moment", first), ("moment", second)]:
            return Side(run, first), Side(run, second)
        case _:
            return None


def _parts(words: Sequence[str]) -> list[_Part]:
    parts: list[_Part] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word in _KINDS and rest and rest[0].isdecimal():
            parts.append(("moment", cast("Moment", (word, int(rest.pop(0))))))
        else:
            parts.append(("run", word))
    return parts
