"""
What a run's calls cost: a pure fold over the journal, by stage, role, step, epoch and place.

A provider that does not report a number has not reported 0: a tally keeps apart what was counted and how many calls
said nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

from attrs import evolve, field, frozen

from skillopt_es.events.journal import CallRow

_EPOCH = re.compile(r"e(\d+)")
_STEP = re.compile(r"s(\d+)")


@frozen
class SlotPlace:
    """Where in the algorithm a call was made; epoch and step are None outside of them."""

    place: str
    epoch: int | None = None
    step: int | None = None


def slot_place(slot: str) -> SlotPlace:
    """The place that a call's slot names, read from the left: what follows may be an item's id, slashes and all."""
    parts = slot.split("/")
    first, second = parts[0], parts[1] if len(parts) > 1 else ""
    epoch = _EPOCH.fullmatch(first)
    if epoch is None:
        depth = {"final": 3 if second == "test" else 2, "eval": 2}.get(first, 1)
        return SlotPlace("/".join(parts[:depth]))
    step = _STEP.fullmatch(second)
    depth = 3 if step or second == "slow" else 2
    return SlotPlace("/".join(parts[:depth]), int(epoch[1]), int(step[1]) if step else None)


@frozen
class Tally:
    """A count of tokens: the sum of what was reported, and how many calls did not report it."""

    reported: int = 0
    silent: int = 0
    speaking: int = 0

    def plus(self, count: int | None) -> Tally:
        """With one more call."""
        if count is None:
            return evolve(self, silent=self.silent + 1)
        return evolve(self, reported=self.reported + count, speaking=self.speaking + 1)

    @property
    def known(self) -> int | None:
        """The sum, at least; None when no call reported anything."""
        return self.reported if self.speaking else None


@frozen(kw_only=True)
class Usage:
    """What a group of calls came to; `tries` counts attempts on the wire, those that were repeated too."""

    calls: int = 0
    failed: int = 0
    tries: int = 0
    input: Tally = field(factory=Tally)
    output: Tally = field(factory=Tally)
    cached: Tally = field(factory=Tally)
    reasoning: Tally = field(factory=Tally)

    def plus(self, row: CallRow) -> Usage:
        """With one more call."""
        call = row.call
        return Usage(
            calls=self.calls + 1,
            failed=self.failed + (call.outcome == "failed"),
            # Recorded are the attempts that gave no answer.
            tries=self.tries + len(json.loads(call.tries)) + (call.outcome == "answered"),
            input=self.input.plus(call.input_tokens),
            output=self.output.plus(call.output_tokens),
            cached=self.cached.plus(call.cached_tokens),
            reasoning=self.reasoning.plus(call.reasoning_tokens),
        )


@frozen(kw_only=True)
class RunUsage:
    """The usage of a run, whole and by group; groups stand in the order in which their first call was recorded."""

    total: Usage
    by_stage: Mapping[str, Usage]
    by_role: Mapping[str, Usage]
    by_step: Mapping[int | None, Usage]
    by_epoch: Mapping[int | None, Usage]
    by_place: Mapping[str, Usage]


def usage_of(rows: Iterable[CallRow]) -> RunUsage:
    """The usage of all these calls; None is the key of what lies outside every step or epoch."""
    nothing, total = Usage(), Usage()
    stages: dict[str, Usage] = {}
    roles: dict[str, Usage] = {}
    steps: dict[int | None, Usage] = {}
    epochs: dict[int | None, Usage] = {}
    places: dict[str, Usage] = {}
    for row in rows:
        where = slot_place(row.call.slot)
        total = total.plus(row)
        stages[row.call.stage] = stages.get(row.call.stage, nothing).plus(row)
        roles[row.call.role] = roles.get(row.call.role, nothing).plus(row)
        steps[where.step] = steps.get(where.step, nothing).plus(row)
        epochs[where.epoch] = epochs.get(where.epoch, nothing).plus(row)
        places[where.place] = places.get(where.place, nothing).plus(row)
    return RunUsage(total=total, by_stage=stages, by_role=roles, by_step=steps, by_epoch=epochs, by_place=places)
