"""The answer of another rule, or of other grades: each recorded verdict and score beside the derived one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import field, frozen

from skillopt_es.events.values import Outcome, Purpose, Score

Zone = Literal["exact", "estimate"]
Kind = Literal["candidate", "guidance", "promotion"]


@frozen
class Verdict:
    """
    One recorded verdict beside that of the other rule.

    Where the other rule misses a result, what it would decide cannot be told: `derived` and `changed` are None, `why`
    says what is missing, and the values are given as far as they are known.

    Where `bound`, the value is the most that the candidate could have had.
    """

    seq: int
    kind: Kind
    number: int
    recorded: str
    derived: str | None
    changed: bool | None
    zone: Zone = field(default="exact", kw_only=True)
    value: float | None = field(default=None, kw_only=True)
    against: float | None = field(default=None, kw_only=True)
    bound: bool = field(default=False, kw_only=True)
    why: str = field(default="", kw_only=True)


@frozen(kw_only=True)
class Rescored:
    """One recorded evaluation beside its score by other grades; where `bound`, both are the most that they could be."""

    seq: int
    place: str
    purpose: Purpose
    skill: str
    recorded: Score
    derived: Score
    bound: bool = False


@frozen(kw_only=True)
class Regraded:
    """Other outcomes of rollouts, by the numbers of their events, and which of them nobody can tell."""

    outcomes: Mapping[int, Outcome] = field(factory=dict)
    unknown: frozenset[int] = frozenset()


AS_RECORDED = Regraded()


@frozen(kw_only=True)
class Regated:
    """
    All verdicts in order, and the best skill by either rule (by hash).

    `told` is the first step after which analysts of its epoch would have read other scores of a refused candidate, and
    so might have answered otherwise, if there is one. `read` is the first result that has another grade, or that cannot
    be graded again, and that analysts saw (or a verdict counts): what follows it is an estimate.
    """

    verdicts: tuple[Verdict, ...]
    best_recorded: str
    best_derived: str
    told: int | None = None
    read: int | None = None
    evaluations: tuple[Rescored, ...] = ()

    @property
    def first_change(self) -> Verdict | None:
        """The first verdict that is another one."""
        return next((verdict for verdict in self.verdicts if verdict.changed), None)

    @property
    def parting(self) -> Verdict | None:
        """The first verdict that is another one, or of which that cannot be told: up to it all is exact."""
        return next((verdict for verdict in self.verdicts if verdict.changed is not False), None)
