"""Credit: which tasks came out better under a candidate, which worse, and which edits have earned that. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from skillopt_es.events.values import Edit, Measured
from skillopt_es.gate.compare import Worth

_ROUNDING = 1e-9


@frozen(kw_only=True)
class Screened:
    """The tasks that came out better under a candidate than under the current skill, and those that came out worse."""

    better: frozenset[str]
    worse: frozenset[str]

    @property
    def won(self) -> bool:
        """Whether more came out better than worse."""
        return len(self.better) > len(self.worse)


def screened(before: Mapping[str, Measured], after: Mapping[str, Measured], worth: Worth) -> Screened:
    """What turned among the tasks that were measured under both."""
    gains = {
        item: worth(found.hard, found.soft) - worth(before[item].hard, before[item].soft)
        for item, found in after.items()
        if item in before
    }
    return Screened(
        better=frozenset(item for item, gain in gains.items() if gain > _ROUNDING),
        worse=frozenset(item for item, gain in gains.items() if gain < -_ROUNDING),
    )


def earned(edits: Sequence[Edit], claims: Mapping[str, Sequence[str]], found: Screened) -> dict[str, tuple[str, ...]]:
    """For each edit the tasks that it claims and that came out better; nothing for one that has earned nothing."""
    return {edit.id: tuple(item for item in claims[edit.id] if item in found.better) for edit in edits}
