"""Where a task began to pass or to fail, from recorded results alone; what nobody measured is said to be missing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from attrs import frozen

from skillopt_es.events.catalog import Recorded, RolloutCompleted, only
from skillopt_es.events.values import Measured
from skillopt_es.projections.chains import Seen
from skillopt_es.projections.lineage import Lineage

Result = Literal["passed", "failed", "mixed", "unmeasured", "missing"]


@frozen(kw_only=True)
class Under:
    """How an item came out under one text that was current: `mixed` where it passed and failed."""

    text: str
    seq: int
    skill: str
    result: Result
    results: tuple[Seen[RolloutCompleted], ...]


@frozen(kw_only=True)
class Turn:
    """Between `before` and `after` the item turned; `between` are the texts in which that is not known."""

    to: Literal["passed", "failed"]
    before: Under
    after: Under
    between: tuple[Under, ...]


@frozen(kw_only=True)
class TurningPoints:
    """One item under each text that was current, in order, and where it turned."""

    item: str
    under: tuple[Under, ...]
    turns: tuple[Turn, ...]


def turning_points(item: str, tree: Lineage, rollouts: Iterable[Recorded]) -> TurningPoints:
    """The turns of an item along the texts that were current."""
    by_skill: dict[str, list[Seen[RolloutCompleted]]] = {}
    for seq, event in only(RolloutCompleted, rollouts):
        if event.item == item:
            by_skill.setdefault(event.skill, []).append(Seen(seq, event))
    under = tuple(
        Under(text=node.name, seq=node.seq, skill=node.skill, result=_result(by_skill.get(node.skill, ())),
              results=tuple(by_skill.get(node.skill, ())))
        for node in tree.nodes
        if node.taken
    )  # fmt: skip
    return TurningPoints(item=item, under=under, turns=_turns(under))


def _result(results: Iterable[Seen[RolloutCompleted]]) -> Result:
    seen = [row.event.outcome for row in results]
    passed = {outcome.passed for outcome in seen if isinstance(outcome, Measured)}
    if not passed:
        return "unmeasured" if seen else "missing"
    return "mixed" if len(passed) > 1 else "passed" if True in passed else "failed"


def _turns(under: tuple[Under, ...]) -> tuple[Turn, ...]:
    turns = []
    last = -1
    for place, each in enumerate(under):
        if each.result not in ("passed", "failed"):
            continue
        if last >= 0 and under[last].result != each.result:
            between = under[last + 1 : place]
            turns.append(
                Turn(to="passed" if each.result == "passed" else "failed", before=under[last], after=each,
                     between=between)
            )  # fmt: skip
        last = place
    return tuple(turns)
