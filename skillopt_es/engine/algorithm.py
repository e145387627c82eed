"""
What an algorithm is: it says what comes next, what follows from recorded facts, and what to ask; the engine does it.

Values alone. How one is found by its name, and how a run's state is folded with it, is in `algorithms.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Generic, Literal, Protocol, TypeVar, runtime_checkable

from attrs import field, frozen

from skillopt_es.config import RunConfig, TrainConfig
from skillopt_es.engine.differences import CheckReport
from skillopt_es.engine.estimates import Part, Planned, kind_of_call, steps_plan
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.engine.run_config import validation_items
from skillopt_es.engine.work import Contest, Told, Unit, Work
from skillopt_es.events.catalog import CandidateBuilt, CandidateGated, Event, Recorded, RunStarted, SlowUpdateApplied
from skillopt_es.events.places import Place
from skillopt_es.events.values import CallRef, Json, Learned, Order, Purpose
from skillopt_es.ports import ChatRequest
from skillopt_es.projections.state import AnyState, RunState
from skillopt_es.replies.json_reader import Unusable

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


@frozen(kw_only=True)
class Stands:
    """Where a run stands: in a few words, the number of the step under way, and what a line of progress begins with."""

    position: str
    step: int | None = None
    where: str = ""


def _stands(state: AnyState) -> Stands:
    done, total = state.steps_done, state.started.total_steps
    return Stands(
        position=f"after step {done} of {total}",
        step=done + 1 if done < total else None,
        where=f"step {min(done + 1, total)}/{total}",
    )


_TRYING: Mapping[Purpose, str] = {
    "selection": "scoring on the validation items",
    "train": "trying training items",
    "test": "scoring on the test items",
}


def _doing(work: object) -> str:
    return _TRYING.get(work.purpose, "trying items") if isinstance(work, Unit) else "ask the optimizer"


@frozen(kw_only=True)
class Words(Generic[S]):
    """
    What is said of a run on the way.

    `stands` is where it is, `doing` what a unit or a job for the optimizer is for, `before_the_gate` (a sentence) what
    an edit has to pass first. `snapshot` is the algorithm's part of a state as JSON, `remembered` as lines, each with a
    label.
    """

    stands: Callable[[RunState[S]], Stands] = _stands
    doing: Callable[[object], str] = _doing
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
class Judging:
    """
    A verdict that is no step's, to be asked for again: what is compared, and what other settings would make of it.

    `number` is that of what it was about, such as an epoch. `refused` says whether they would refuse the text for what
    it is, whatever it would measure.
    """

    number: int
    contest: Contest
    refused: Callable[[RunConfig], bool]
    decide: Callable[[RunConfig], CandidateGated | SlowUpdateApplied]


@frozen(kw_only=True)
class Terms:
    """What a verdict goes by: validation items, the config with the rule, and what the algorithm knows besides."""

    items: tuple[str, ...]
    config: RunConfig
    told: Told = field(factory=Told)


def usual_terms(state: AnyState, config: RunConfig) -> Terms:
    """All validation items, by the configured rule."""
    return Terms(items=validation_items(state.started, config), config=config)


def _place(state: AnyState) -> Place:
    return Place.of_step(state.steps_done + 1, state.steps_done + 1)


@frozen(kw_only=True)
class GatePolicy(Generic[S]):
    """
    How candidates meet the gate.

    `place` is where the open step is recorded, `terms` on what its verdict goes. `doubts` is why its candidate rests on
    nothing that is trusted, `objection` why one that its rule would take is refused all the same. `judging` is what an
    event has decided that is no step's verdict.
    """

    place: Callable[[RunState[S]], Place] = _place
    terms: Callable[[RunState[S], RunConfig], Terms] = usual_terms
    doubts: Callable[[RunState[S], RunConfig], str] = field(default=lambda state, config: "")
    objection: Callable[[RunState[S], CandidateBuilt, RunConfig], Objection | None] = field(
        default=lambda state, built, config: None
    )
    judging: Callable[[RunState[S], RunConfig, Event], Judging | None] = field(
        default=lambda state, config, event: None
    )


@frozen(kw_only=True)
class Plan:
    """
    A whole run in numbers.

    `steps` says how many steps an epoch and the run have with so many training items, `parts` which calls so many steps
    and epochs need, and `kind_of` which of these parts a recorded call (its slot and stage) is of. One that goes
    `by_calls` plans its end by `budget.max_calls`, where that is given; `steps` is no bound then.
    """

    steps: Callable[[TrainConfig, int], tuple[int, int]] = field(default=lambda train, items: (1, train.num_epochs))
    parts: Callable[[Planned, int, int], tuple[Part, ...]] = steps_plan
    kind_of: Callable[[str, str], str] = kind_of_call
    by_calls: bool = False


OwnCheck = Callable[[RunStarted, Iterator[Recorded], Path], CheckReport]
"""A walk over a log in its folder, from the first event over the others, that finds what does not follow."""


def _under_way(state: AnyState) -> str:
    if state.built is not None:
        return f"step {state.built.step} is"
    begun = next((place for place in state.rollouts if place not in state.scored), "")
    return f"the evaluation at {begun} is" if begun else ""


@frozen(kw_only=True)
class Commands(Generic[S]):
    """
    What can be done with runs of an algorithm, by commands.

    `heeds` are the orders that it follows; the loop follows the usual three for it. One that keeps items of its own
    takes those out that an EvidenceRetracted names. `refuses` says what else cannot be done. `under_way` is what cannot
    be decided by other settings than it was begun with, `contradicts` why a fork cannot take the second settings in the
    place of the first. `check` takes the place of planning and deciding a log again where that cannot be done.
    """

    heeds: frozenset[Order] = frozenset({"pause", "budget", "retract"})
    refuses: Mapping[Deed, Refusal] = field(factory=dict)
    under_way: Callable[[RunState[S]], str] = _under_way
    contradicts: Callable[[RunState[S], RunConfig, RunConfig], str] = field(default=lambda state, old, new: "")
    check: OwnCheck | None = None


@runtime_checkable
class HandsOn(Protocol):
    """An algorithm's part of a state, of which a run that continues this one takes something over."""

    def hands_on(self, learned: Learned) -> Learned:
        """What it takes over beside the best skill."""
        ...


@frozen(kw_only=True)
class Algorithm(Generic[S]):
    """
    One way to train, as a value.

    `evolve` has a function for each event that changes the algorithm's part of the state; the core is changed after it.
    `decisions` are named by the work of `next_work`, `questions` are found by the type of a job, and `answers` are the
    events that questions come to. `words`, `plan`, `commands` and `gate` have a usual form. One that `trains_folder`
    begins with a folder of skills, not with one skill.
    """

    name: str
    initial: Callable[[RunStarted], S]
    evolve: Mapping[type[Event], Handler[S]]
    next_work: Callable[[RunState[S], RunConfig], Work | None]
    decisions: Mapping[str, Decision[S]]
    questions: Mapping[type, Question[S]] = field(factory=dict)
    answers: Mapping[type[Event], Answered] = field(factory=dict)
    words: Words[S] = field(factory=Words)
    plan: Plan = field(factory=Plan)
    commands: Commands[S] = field(factory=Commands)
    gate: GatePolicy[S] = field(factory=GatePolicy)
    trains_folder: bool = False

    def unreached(self, event: Event) -> bool:
        """Whether an event says that the optimizer could not be reached."""
        if type(event) not in self.answers:
            return False
        return getattr(event, "result", "") == "failed" or bool(getattr(event, "failed", ""))
