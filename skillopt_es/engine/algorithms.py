"""
Ways to train: an algorithm says what comes next, what follows from recorded facts, and what to ask; the engine does it.

Algorithms are found by name among the entry points of the installed packages, as models and environments are. The state
of a run is folded here from its events: the core's part of it, and the algorithm's.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib.metadata import EntryPoint
from itertools import groupby
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar, cast, overload

from attrs import field, frozen

from skillopt_es.config import RunConfig, TrainConfig
from skillopt_es.engine.differences import CheckReport
from skillopt_es.engine.estimates import Part, Planned, kind_of_call, steps_plan
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.engine.run_config import validation_items
from skillopt_es.engine.work import Contest, Told, Unit, Work
from skillopt_es.errors import ConfigError
from skillopt_es.events.catalog import STEP_ENDS, CandidateBuilt, Event, Recorded, RolloutCompleted, RunStarted
from skillopt_es.events.errors import LogDamaged, SkillOptError
from skillopt_es.events.places import Place
from skillopt_es.events.values import CallRef, Json, Learned, Order, Purpose
from skillopt_es.ports import ChatRequest
from skillopt_es.projections import core, limits
from skillopt_es.projections.limits import calls_allowed
from skillopt_es.projections.state import AnyState, OutOfPlace, RunState
from skillopt_es.projections.summary import Summary
from skillopt_es.replies.json_reader import Unusable
from skillopt_es.version import installed_for

ALGORITHMS = "skillopt_es.algorithms"

S = TypeVar("S")
V = TypeVar("V")


@frozen(kw_only=True)
class Consulted(Generic[V]):
    """The result of asking the optimizer: a value, or why there is none (`failed`: an outage), and the calls made."""

    value: V | None
    failed: bool = False
    why: str = ""
    calls: tuple[CallRef, ...] = ()


class Nothing(Protocol):
    """The event that says why there is no value: an outage (`failed`), or answers that cannot be used."""

    def __call__(self, *, result: Literal["failed", "unusable"], note: str, calls: tuple[CallRef, ...]) -> Event:
        """It, with the calls made."""
        ...


@frozen(kw_only=True)
class Asking(Generic[V]):
    """
    A question to the optimizer: what is sent, how a reply is read, and the events for a value and for none.

    With `silence_fails` a reply without a word is an outage: a model that says nothing at all is not there.
    """

    request: ChatRequest
    read: Callable[[str], V | Unusable]
    event: Callable[[V, tuple[CallRef, ...]], Event]
    none: Nothing
    silence_fails: bool = False

    def stated(self, found: Consulted[V]) -> Event:
        """The event that states the result."""
        if found.value is not None:
            return self.event(found.value, found.calls)
        return self.none(result="failed" if found.failed else "unusable", note=found.why, calls=found.calls)


Handler = Callable[..., RunState[S]]
"""The state after an event of one type: `(state, event)`; the core has not changed yet."""
Decision = Callable[[RunState[S], RunConfig, RecordedTexts], Event]
"""A pure function from recorded facts to the event that states what follows from them."""
Question = Callable[[Any, RunState[S], RunConfig, RecordedTexts], Asking[Any]]
"""What is asked of the optimizer for one job. Pure."""


@frozen(kw_only=True)
class Answered:
    """How an event says that the optimizer could not be reached: what names its question, and what is not there."""

    names: tuple[str, ...]
    nothing: Mapping[str, object]


def _position(state: AnyState) -> str:
    return f"after step {state.steps_done} of {state.started.total_steps}"


def _step(state: AnyState) -> int | None:
    return state.steps_done + 1 if state.steps_done < state.started.total_steps else None


def _where(state: AnyState) -> str:
    return f"step {min(state.steps_done + 1, state.started.total_steps)}/{state.started.total_steps}"


def _place(state: AnyState) -> Place:
    return Place.of_step(state.steps_done + 1, state.steps_done + 1)


def _under_way(state: AnyState) -> str:
    if state.built is not None:
        return f"step {state.built.step} is"
    begun = next((place for place in state.rollouts if place not in state.scored), "")
    return f"the evaluation at {begun} is" if begun else ""


_TRYING: Mapping[Purpose, str] = {
    "selection": "scoring on the validation items",
    "train": "trying training items",
    "test": "scoring on the test items",
}


@frozen(kw_only=True)
class Judging:
    """
    A verdict that is no step's, to be asked for again: what is compared, and what other settings would make of it.

    `number` is that of what it was about, such as an epoch. `refused` says whether they would refuse the text for what
    it is, whatever it would measure.
    """

    number: int
    contest: Contest
    refused: Callable[[RunConfig], bool]
    decide: Callable[[RunConfig], Event]


@frozen(kw_only=True)
class Words(Generic[S]):
    """
    What is said of a run on the way.

    `position` is where it stands, `step` the number of the step under way, `where` what the line of progress begins
    with, `place` where an event happened that does not say so. `trying` says what rollouts are for, `asking` what each
    type of job is called, `before_the_gate` (a sentence) what an edit has to pass first. `snapshot` is the algorithm's
    part of a state as JSON, `remembered` as lines with a label each.
    """

    position: Callable[[RunState[S]], str] = _position
    step: Callable[[RunState[S]], int | None] = _step
    where: Callable[[RunState[S]], str] = _where
    place: Callable[[Event, RunState[S]], Place | None] = field(default=lambda event, state: None)
    trying: Callable[[Unit], str] = field(default=lambda unit: _TRYING.get(unit.purpose, "trying items"))
    asking: Mapping[type, str] = field(factory=dict)
    before_the_gate: str = ""
    remembered: Callable[[RunState[S]], tuple[tuple[str, str], ...]] = field(default=lambda state: ())
    snapshot: Callable[[RunState[S]], dict[str, Json]] = field(default=lambda state: {})


Deed = Literal["start", "resume", "fork", "score", "calibrate", "regate", "rescore", "erase", "compare", "steps"]
"""What can be done with runs, but not with every algorithm's; `steps` is to ask about a step of one."""


@frozen
class Refusal:
    """Why an algorithm's runs cannot do something, as it follows a run's name; and what can be done instead."""

    why: str
    hint: str = ""


@frozen
class Objection:
    """Why a candidate is refused that its rule would take, as a word of a verdict's `reason`, and for which items."""

    reason: str
    items: tuple[str, ...] = ()


@frozen(kw_only=True)
class GatePolicy(Generic[S]):
    """
    How the open step's candidate meets the gate.

    `place` is where that is recorded, `items` the validation items that the verdict takes, `config` the run's with the
    rule that the candidate has to meet. `told` is what the algorithm knows besides, `objection` why a candidate that
    its rule would take is refused all the same.
    """

    place: Callable[[RunState[S]], Place] = _place
    items: Callable[[RunState[S], RunConfig], tuple[str, ...]] = field(
        default=lambda state, config: validation_items(state.started, config)
    )
    config: Callable[[RunState[S], RunConfig], RunConfig] = field(default=lambda state, config: config)
    told: Callable[[RunState[S], RunConfig], Told] = field(default=lambda state, config: Told())
    objection: Callable[[RunState[S], CandidateBuilt, RunConfig], Objection | None] = field(
        default=lambda state, built, config: None
    )


OwnCheck = Callable[[Iterator[Recorded], Path], CheckReport]
"""A walk over a log's events, in the folder where it lies, that finds what does not follow."""


@frozen(kw_only=True)
class Algorithm(Generic[S]):
    """
    One way to train, as a value.

    `evolve` has a function for each event that changes the algorithm's part of the state; the core is changed after it.
    `decisions` are named by the work of `next_work`, `questions` are found by the type of a job. `answers` are the
    events that questions come to. `stage` tells parts of a run apart that do not share their evidence. `under_way` says
    what cannot be decided by other settings than it was begun with, `gate` how a candidate is judged, `doubts` why its
    candidate rests on nothing that anybody vouches for, `judging` what an event has decided that is no step's verdict,
    `elsewhere` what any other event would have been in another history (whose current text is the same or not), `ahead`
    what would be tried next if the work at hand came to nothing, and `milestones` are the events after which the log's
    head is noted outside of it.

    `steps` says how many steps an epoch and a whole run have with so many training items, `plan` which calls so many
    steps and epochs need, and `kind_of` which part of that plan a recorded call (its slot and stage) is of. `check`
    takes the place of planning and deciding a log again where that cannot be done, `refuses` says what else cannot.
    `heeds` are the orders that it follows; the loop follows the usual three for it. One that keeps items of its own
    takes those out that an EvidenceRetracted names.
    `contradicts` is why a fork cannot go on with another run's settings, the second, from what is known by the first.
    `hands_on` adds what a run that continues this one takes over beside its best skill.
    One that `trains_folder` begins with a folder of skills, not with one skill. One that goes `by_calls` plans its end
    by `budget.max_calls`, where that is given; `steps` is no bound then.
    """

    name: str
    initial: Callable[[RunStarted], S]
    evolve: Mapping[type[Event], Handler[S]]
    next_work: Callable[[RunState[S], RunConfig], Work | None]
    decisions: Mapping[str, Decision[S]]
    questions: Mapping[type, Question[S]] = field(factory=dict)
    answers: Mapping[type[Event], Answered] = field(factory=dict)
    stage: Callable[[RunState[S]], Hashable] = field(default=lambda state: state.steps_done)
    under_way: Callable[[RunState[S]], str] = field(default=_under_way)
    gate: GatePolicy[S] = field(factory=GatePolicy)
    doubts: Callable[[RunState[S], RunConfig], str] = field(default=lambda state, config: "")
    contradicts: Callable[[RunState[S], RunConfig, RunConfig], str] = field(default=lambda state, old, new: "")
    judging: Callable[[RunState[S], RunConfig, Event], Judging | None] = field(
        default=lambda state, config, event: None
    )
    elsewhere: Callable[[RunState[S], Event, bool], Event] = field(default=lambda state, event, same: event)
    ahead: Callable[[Work, RunState[S]], tuple[Unit, ...]] = field(default=lambda work, state: ())
    hands_on: Callable[[RunState[S], Learned], Learned] = field(default=lambda state, learned: learned)
    milestones: tuple[type[Event], ...] = STEP_ENDS
    words: Words[S] = field(factory=Words)
    steps: Callable[[TrainConfig, int], tuple[int, int]] = field(default=lambda train, items: (1, train.num_epochs))
    plan: Callable[[Planned, int, int], tuple[Part, ...]] = steps_plan
    kind_of: Callable[[str, str], str] = kind_of_call
    check: OwnCheck | None = None
    refuses: Mapping[Deed, Refusal] = field(factory=dict)
    heeds: frozenset[Order] = frozenset({"pause", "budget", "retract"})
    trains_folder: bool = False
    by_calls: bool = False

    def unreached(self, event: Event) -> bool:
        """Whether an event says that the optimizer could not be reached."""
        if type(event) not in self.answers:
            return False
        return getattr(event, "result", "") == "failed" or bool(getattr(event, "failed", ""))


def most_calls(state: AnyState) -> int | None:
    """The calls that a run may make, as it was started or resumed; None for any number."""
    most = state.overrides.get(limits.KEY, calls_allowed(state.started))
    return most if isinstance(most, int) else None


def planned_steps(summary: Summary) -> int | None:
    """How many steps a run has at most; None where its algorithm ends by the calls that it may make."""
    if summary.most_calls is None:
        return summary.total_steps
    try:
        by_calls = algorithm_named(summary.algorithm).by_calls
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
            f"{place}train.algorithm is {name!r}, and what is installed under that name is not a Algorithm",
            hint=f"its entry point has to name a value of that class: {found[name].value}",
        )
    return algorithm


def _trains(point: EntryPoint) -> bool:
    """Whether runs can be started with it; what cannot even be imported is no way to train."""
    try:
        algorithm = point.load()
    except ImportError:
        return False
    return isinstance(algorithm, Algorithm) and "start" not in algorithm.refuses


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
    refusal = algorithm_of(started).refuses.get(deed)
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
    # The fold asserts what must stand before an event.
    except (AssertionError, LookupError) as error:
        raise LogDamaged(f"the log before event {seq} cannot lead to it", seq=seq) from error
