"""The fold: the state of a run from its events, the core's and the program's part of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import cast

from attrs import evolve as replace

from skillopt_es.engine.programs import program_at, program_of
from skillopt_es.events.catalog import Event, Recorded, RolloutCompleted, RunStarted
from skillopt_es.events.errors import LogDamaged
from skillopt_es.projections import core
from skillopt_es.projections.state import AnyState, RunState


def evolve(state: AnyState, event: Event) -> AnyState:
    """The state after one more event."""
    if isinstance(event, RunStarted):
        return replace(core.evolve(state, event), program=program_of(event).initial(event))
    handler = program_at(state).evolve.get(type(event))
    return core.evolve(state if handler is None else handler(state, event), event)


def fold(events: Iterable[Event], state: AnyState | None = None) -> AnyState:
    """The state after all these events, from nothing or from an earlier state."""
    state = RunState[object]() if state is None else state
    for kind, row in groupby(events, key=type):
        if kind is RolloutCompleted and kind not in program_at(state).evolve:
            state = core.with_rollouts(state, cast("Sequence[RolloutCompleted]", list(row)))
        else:
            for event in row:
                state = evolve(state, event)
    return state


def fold_log(log: Iterable[Recorded], state: AnyState | None = None) -> tuple[AnyState, int]:
    """
    The state after all these events of a log, and the number of the last one (0 for none).

    Raises LogDamaged at the first that cannot follow what stands before it.
    """
    seq = 0

    def passing() -> Iterator[Event]:
        nonlocal seq
        for recorded in log:
            seq = recorded.seq
            yield recorded.event

    try:
        return fold(passing(), state), seq
    # The fold asserts what must stand before an event.
    except (AssertionError, LookupError) as error:
        raise LogDamaged(f"the log before event {seq} cannot lead to it", seq=seq) from error
