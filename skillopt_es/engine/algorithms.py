"""
Algorithms by their names, and the state of a run, folded from its events: the core's part of it, and the algorithm's.

Algorithms are found among the entry points of the installed packages, as models and environments are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import cache
from importlib.metadata import EntryPoint
from itertools import groupby
from typing import Any, cast, overload

from skillopt_es.engine.algorithm import Algorithm, Deed
from skillopt_es.errors import ConfigError
from skillopt_es.events.catalog import Event, Recorded, RolloutCompleted, RunStarted
from skillopt_es.events.errors import LogDamaged, SkillOptError
from skillopt_es.projections import core
from skillopt_es.projections.deciding import MOST_CALLS, setting_in
from skillopt_es.projections.state import AnyState, OutOfPlace
from skillopt_es.projections.summary import Summary
from skillopt_es.version import installed_for

ALGORITHMS = "skillopt_es.algorithms"


def most_calls(state: AnyState) -> int | None:
    """The calls that a run may make, as it was started or resumed; None for any number."""
    most = state.overrides.get(MOST_CALLS, setting_in(state.started, MOST_CALLS))
    return most if isinstance(most, int) else None


def planned_steps(summary: Summary) -> int | None:
    """How many steps a run has at most; None where its algorithm ends by the calls that it may make."""
    if summary.most_calls is None:
        return summary.total_steps
    try:
        by_calls = algorithm_named(summary.algorithm).plan.by_calls
    except ConfigError:  # a run can be read without the package that trained it
        by_calls = False
    return None if by_calls else summary.total_steps


_HANDED_OVER: dict[str, Algorithm[Any]] = {}


def hand_over(algorithm: Algorithm[Any]) -> None:
    """
    Makes an algorithm known to this process under its name, without a package that brings it.

    Raises ConfigError for a name that an installed algorithm has: what a log says of it must mean one thing.
    """
    if algorithm.name in installed_for(ALGORITHMS):
        if installed_algorithm(algorithm.name) is algorithm:
            return
        raise ConfigError(f"an algorithm named {algorithm.name!r} is installed already", hint="give yours another name")
    _HANDED_OVER[algorithm.name] = algorithm


def algorithm_named(name: str, place: str = "") -> Algorithm[Any]:
    """
    The algorithm of that name: one that was handed over, or an installed one.

    Raises ConfigError, which begins with the `place` where the name was written, and names those that train.
    """
    # Asked for every event of a fold, so both ways are a look-up.
    return _HANDED_OVER[name] if name in _HANDED_OVER else installed_algorithm(name, place)


@cache
def installed_algorithm(name: str, place: str = "") -> Algorithm[Any]:
    """The algorithm that a package brings under that name; it is looked for once, for every event asks."""
    found = installed_for(ALGORITHMS)
    if name not in found:
        ways = [each for each in found if _trains(found[each])]
        close = get_close_matches(name, ways, n=1)
        raise ConfigError(
            f"{place}train.algorithm is {name!r}, and no installed package provides an algorithm of that name",
            hint=f"did you mean {close[0]}?" if close else f"installed: {', '.join(ways)}",
        )
    algorithm = found[name].load()
    if not isinstance(algorithm, Algorithm):
        raise ConfigError(
            f"{place}train.algorithm is {name!r}, and what is installed under that name is not an Algorithm",
            hint=f"its entry point has to name a value of that class: {found[name].value}",
        )
    return algorithm


def _trains(point: EntryPoint) -> bool:
    """Whether runs can be started with it; what cannot even be imported is no way to train."""
    try:
        algorithm = point.load()
    except ImportError:
        return False
    return isinstance(algorithm, Algorithm) and "start" not in algorithm.commands.refuses


def algorithm_of(started: RunStarted) -> Algorithm[Any]:
    """The algorithm that a run is trained by."""
    return algorithm_named(started.algorithm)


def algorithm_at(state: AnyState) -> Algorithm[Any]:
    """The algorithm of a run that has begun."""
    return algorithm_of(state.started)


def check_allowed(
    deed: Deed, started: RunStarted, name: str, error: type[SkillOptError] = ConfigError, *, hint: str = ""
) -> None:
    """Raises the error for what cannot be done with a run, in the words of its algorithm."""
    refusal = algorithm_of(started).commands.refuses.get(deed)
    if refusal is not None:
        raise error(f"{name} {refusal.why}", hint=refusal.hint or hint)


def evolve(state: AnyState | None, event: Event) -> AnyState:
    """
    The state after one more event; before the first, which starts the run, there is None.

    Raises OutOfPlace for an event that nothing before it has led to.
    """
    if state is None:
        if not isinstance(event, RunStarted):
            raise OutOfPlace(f"{type(event).__name__} before the run has begun")
        return core.beginning(event, algorithm_of(event).initial(event))
    if isinstance(event, RunStarted):
        raise OutOfPlace("the run has begun already")
    handler = algorithm_at(state).evolve.get(type(event))
    # The algorithm comes first: it compares an event with the core as it was before.
    return core.evolve(state if handler is None else handler(state, event), event)


@overload
def fold(events: Iterable[Event], state: AnyState) -> AnyState: ...


@overload
def fold(events: Iterable[Event], state: AnyState | None = None) -> AnyState | None: ...


def fold(events: Iterable[Event], state: AnyState | None = None) -> AnyState | None:
    """The state after all these events, from nothing or from an earlier state; None where the run has not begun."""
    for kind, row in groupby(events, key=type):
        # Most of a log are rollouts in long rows: folded one by one, each would copy the mapping of all places.
        if kind is RolloutCompleted and state is not None and kind not in algorithm_at(state).evolve:
            state = core.with_rollouts(state, cast("Sequence[RolloutCompleted]", list(row)))
        else:
            for event in row:
                state = evolve(state, event)
    return state


def fold_log(log: Iterable[Recorded], state: AnyState | None = None) -> tuple[AnyState | None, int]:
    """
    The state after all these events of a log, None where the run has not begun, and the number of the last event.

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
    # OutOfPlace is one; an algorithm of the user's own may assert what must stand before an event.
    except (AssertionError, LookupError) as error:
        raise LogDamaged(f"the log before event {seq} cannot lead to it", seq=seq) from error
