"""The two sides of a `diff`, as words: moments of one run, two runs, or a moment of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast, get_args

from attrs import frozen

from skillopt_es.runs.moments import Moment

_Part = tuple[Literal["run"], str] | tuple[Literal["moment"], Moment]
SkillName = Literal["initial", "best", "current"]
SKILLS: tuple[SkillName, ...] = get_args(SkillName)
"""The skills of a run that have a name."""
_KINDS = ("step", "epoch", "seq")


@frozen
class Side:
    """A run (the newest when None) at a moment (its end when None)."""

    run: str | None
    moment: Moment | None


def skills_of(words: Sequence[str]) -> tuple[str | None, SkillName, SkillName] | None:
    """The run and the two of its skills that `[RUN] A B` names, or None for words that name none."""
    *run, before, after = ("", *words) if len(words) == 2 else words if len(words) == 3 else ("", "", "")
    if before not in SKILLS or after not in SKILLS:
        return None
    return run[0] or None, before, after


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
