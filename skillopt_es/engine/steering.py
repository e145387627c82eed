"""
Orders that people give a run while it is open: what each needs, what it becomes in the log, and why one is refused.

The log has one writer, so an order waits in an inbox until the writer looks, between two tasks. What an order does is
in the state from then on, and algorithms plan and decide by that: a run that was steered derives from its log like any
other.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from attrs import field, frozen

from skillopt_es.config import RunConfig
from skillopt_es.engine.algorithms import algorithm_at
from skillopt_es.errors import ConfigError
from skillopt_es.events.catalog import Event, EvidenceRetracted, RunPaused, RunSteered
from skillopt_es.events.values import Json, Order, Setting
from skillopt_es.projections.core import waiting
from skillopt_es.projections.state import AnyState
from skillopt_es.skill.pins import file_of, without_line

LIMITS = ("budget.max_calls", "budget.max_tokens", "budget.max_cost", "budget.max_minutes")
MOST_TEXT, MOST_WHY = 4000, 1000
"""Characters of a hint or a line; of who gives an order, and why."""
_NEEDS_TEXT = frozenset({"hint", "pin", "unpin", "strike", "retract"})
_BETWEEN_STEPS = frozenset({"strike", "retract"})


_BY_FORK = "`skillopt-es retract` makes a fork that never met it"


class OrderRefused(ConfigError):
    """An order that cannot be followed, and why."""


@frozen(kw_only=True)
class Asked:
    """An order as it was given: its name, what is to be done, who asks and why."""

    name: str
    order: Order
    by: str
    why: str
    text: str = ""
    settings: Mapping[str, Json] = field(factory=dict)


class Orders(Protocol):
    """Where orders wait for the writer of a run."""

    def waiting(self) -> Sequence[Asked]:
        """Those that have not been followed or refused, the first one first."""
        ...

    def pausing(self) -> bool:
        """Whether one of them asks for a pause; cheap enough to be asked before every call."""
        ...

    def followed(self, name: str) -> None:
        """An order is in the log."""
        ...

    def refused(self, name: str, why: str) -> None:
        """An order cannot be followed."""
        ...


def is_due(asked: Asked, state: AnyState) -> bool:
    """Whether an order can be followed now; an open step has its text and its items already."""
    return asked.order not in _BETWEEN_STEPS or not algorithm_at(state).commands.under_way(state)


def check_order(asked: Asked, state: AnyState | None) -> None:
    """Raises OrderRefused for what cannot be done with the run as it stands."""
    if state is None:
        raise OrderRefused("the run has not begun")
    if state.completed is not None:
        raise OrderRefused("the run is over")
    algorithm = algorithm_at(state)
    if asked.order not in algorithm.commands.heeds:
        able = ", ".join(sorted(algorithm.commands.heeds)) or "nothing"
        raise OrderRefused(f"a run of {algorithm.name} cannot be told to {asked.order}", hint=f"it heeds: {able}")
    if not asked.by.strip() or not asked.why.strip():
        raise OrderRefused("an order says who gives it and why")
    if asked.order in _NEEDS_TEXT and not asked.text.strip():
        raise OrderRefused(f"{asked.order} needs a text")
    for text, most in ((asked.text, MOST_TEXT), (asked.why, MOST_WHY), (asked.by, MOST_WHY)):
        if len(text) > most:
            raise OrderRefused(f"a text of {len(text):,} characters is too long; {most:,} are allowed")
    _check_of_its_kind(asked, state)


def _check_of_its_kind(asked: Asked, state: AnyState) -> None:
    match asked.order:
        case "pin" | "strike":
            _check_line(asked, state)
        case "unpin" if asked.text not in state.steering.pins:
            raise OrderRefused("no such line is pinned")
        case "stop" if state.stopped is not None:
            raise OrderRefused("the training has ended already; the final evaluation is under way")
        case "budget":
            _check_limits(asked)
        case "take" | "refuse":
            _check_candidate(asked, state)
        case "retract":
            _check_item(asked.text, state)
        case _:
            pass


def _check_line(asked: Asked, state: AnyState) -> None:
    if not file_of(state.current.skill, asked.text):
        raise OrderRefused(
            "the current skill has no such line outside its protected parts",
            hint="give one whole line, as it stands there",
        )
    if asked.order == "pin" and asked.text in state.steering.pins:
        raise OrderRefused("this line is pinned already")
    if asked.order == "strike" and asked.text in state.steering.pins:
        raise OrderRefused("this line is pinned", hint="`unpin` it first")


def _check_limits(asked: Asked) -> None:
    if not asked.settings:
        raise OrderRefused("a budget needs a limit", hint=f"its limits are {', '.join(LIMITS)}")
    for key, value in asked.settings.items():
        if key not in LIMITS:
            raise OrderRefused(f"{key} is no limit of a budget", hint=f"its limits are {', '.join(LIMITS)}")
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < math.inf:
            raise OrderRefused(f"{key} must be a number above 0")


def _check_candidate(asked: Asked, state: AnyState) -> None:
    if state.built is None:
        raise OrderRefused("no candidate waits for its verdict just now")
    candidate = state.built.candidate.hash
    if asked.text and not candidate.startswith(asked.text):
        raise OrderRefused(f"the candidate that waits is {candidate[:12]}, not {asked.text[:12]}")
    if asked.order == "take" and any(skill == candidate for skill, _ in state.partial):
        raise OrderRefused("the candidate was not run to its end, because it could no longer win: it has no score")


def _check_item(item: str, state: AnyState) -> None:
    """That the run goes on with the item, and can go on without it."""
    if state.stopped is not None or state.steps_done >= state.started.total_steps:
        raise OrderRefused("the training has ended already; the final evaluation is under way", hint=_BY_FORK)
    splits = state.started.splits
    if item not in (*splits.train, *splits.val, *splits.test):
        raise OrderRefused(f"the run has no item {item[:200]}, or goes on without it already")
    if item in splits.test:
        raise OrderRefused(
            f"{item} is a test task, and the test decides nothing in this run: it only says what the skill is worth",
            hint=f"if the task itself is wrong, `skillopt-es retract RUN --item {item[:200]} --apply` makes a fork "
            "without it, and the fork says so beside its scores",
        )
    if (item,) in (splits.train, splits.val):
        raise OrderRefused(f"{item} is the only item of its split, and a run needs one")
    drawn = [each for known in state.measured.values() for each in (*known.drawn, known.fresh) if each is not None]
    if any(each.items.keys() == {item} for each in drawn):
        raise OrderRefused(f"a skill was measured on {item} alone, and would have no score without it", hint=_BY_FORK)


def events_of(asked: Asked, state: AnyState, config: RunConfig) -> tuple[Event, ...]:
    """The events that an order becomes: itself, and what it brings about at once; raises OrderRefused."""
    steered = event_of(asked, state)
    match asked.order:
        case "pause":
            return (steered, RunPaused(reason="asked", message=f"{asked.by} asked for it: {asked.why}"))
        case "retract":
            values = values_without((asked.text,), state, config)
            return (steered, EvidenceRetracted(items=(asked.text,), reason=asked.why, by=asked.by, values=values))
        case _:
            return (steered,)


def values_without(items: Collection[str], state: AnyState, config: RunConfig) -> dict[str, float] | None:
    """What each skill counts (by its hash) that was measured with these items, by its other results; None for none."""
    found = {}
    for skill, known in state.measured.items():
        left = known.without(items, known.value)
        if known.value is not None and left != known:
            before, after = (config.worth(each.stated.hard, each.stated.soft) for each in (known, left))
            # What the text itself adds, which only its value says here, stays.
            bonus = known.value - before if config.evaluation.use_semantic_density else 0.0
            found[skill] = after + bonus
    return found or None


def event_of(asked: Asked, state: AnyState) -> RunSteered:
    """The event that states an order; raises OrderRefused."""
    check_order(asked, state)
    text = waiting(state).candidate.hash if asked.order in ("take", "refuse") else asked.text
    return RunSteered(
        name=asked.name,
        order=asked.order,
        by=asked.by,
        why=asked.why,
        text=text,
        settings=tuple(Setting(key, value) for key, value in asked.settings.items()),
        skill=without_line(state.current.skill, text) if asked.order == "strike" else None,
    )
