"""
`retract --apply`: a fork that never met some evidence, and goes on without it.

It leaves its run at the last moment between two steps before anything met the evidence, so nothing in it was written
by anybody who had seen it, and every skill that it comes to is judged anew by its own gate.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from attrs import frozen

from skillopt_es.audit.descent import Evidence
from skillopt_es.audit.retraction import before
from skillopt_es.errors import ConfigError
from skillopt_es.events.catalog import EvidenceRetracted, RolloutCompleted
from skillopt_es.events.log import EventLog
from skillopt_es.events.places import Place
from skillopt_es.projections.state import AnyState
from skillopt_es.sessions.forking import Fork, make_fork
from skillopt_es.sessions.session import read_state


@frozen
class Retracted:
    """A fork without the evidence; `again` of its parent's steps are to be done again, and why they are not shared."""

    fork: Fork
    event: EvidenceRetracted
    again: int


def retracted(
    parent: Path, evidence: Evidence, folder: Path, *, reason: str, by: str, now: Callable[[], datetime]
) -> Retracted:
    """A fork of the run in `parent` without the evidence; raises ConfigError where none can be or is needed."""
    event = EvidenceRetracted(items=(evidence.item,), reason=reason, by=by, place=evidence.place)
    with EventLog.open(parent) as log:
        _check_trajectory(evidence, log)
        seq, met = before(evidence, log)
        done = sum(1 for _ in log.read(after=seq, types=("CandidateGated", "StepSkipped")))
        if met is None and any(log.read(types=("RunCompleted",))):
            raise ConfigError(f"nothing in {parent.name} goes back to {evidence.item}: there is nothing to rebuild")
    _check_splits(evidence, parent, read_state(parent, seq))
    return Retracted(make_fork(parent, seq, folder, then=(event,), now=now), event, done)


def _check_splits(evidence: Evidence, parent: Path, state: AnyState) -> None:
    """That the run goes on with the item, and can go on without it; what cannot be forked, `make_fork` refuses."""
    if state.started is None or state.imported is not None or evidence.place:
        return
    splits = state.started.splits
    if evidence.item not in (*splits.train, *splits.val, *splits.test):
        raise ConfigError(f"{evidence.item} is retracted in {parent.name} already")
    for name, ids in (("train", splits.train), ("validation", splits.val)):
        if ids == (evidence.item,):
            raise ConfigError(
                f"{evidence.item} is the only item of the {name} split, and a run needs one",
                hint="start a new run with other data",
            )


def _check_trajectory(evidence: Evidence, log: EventLog) -> None:
    """That one trajectory alone can be left out."""
    for recorded in log.read(types=("RolloutCompleted",), mentioning=evidence.item) if evidence.place else ():
        event = recorded.event
        assert isinstance(event, RolloutCompleted)
        if evidence.is_of(event.item, event.place) and event.purpose != "train":
            raise ConfigError(
                f"the trajectory {Place(event.place).of_item(event.item)} is of a {_PURPOSES[event.purpose]}, "
                "where every item must count the same for all skills",
                hint=f"retract the item: `--item {event.item}`",
            )


_PURPOSES = {
    "selection": "validation",
    "test": "test",
    "slow_previous": "comparison",
    "slow_current": "comparison",
}
