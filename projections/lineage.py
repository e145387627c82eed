"""
The tree of skills of a run: which text came from which, how it was judged, and which one is the best.

A node is one text at the moment it was made: the initial skill, a candidate, guidance at an epoch's end, reminder
notes written after a verdict, the current text without a line that somebody struck. Its parent is the text that was
current when it was made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from attrs import define, evolve, field, frozen

from skillopt_es.events.catalog import (
    AppendixWritten,
    BestPromoted,
    CandidateBuilt,
    CandidateGated,
    Event,
    EvidenceRetracted,
    Recorded,
    RunForked,
    RunStarted,
    RunSteered,
    SkillScored,
    SlowUpdateApplied,
    StepSkipped,
    names_of,
)
from skillopt_es.events.values import TAKEN, Decided, GateVerdict
from skillopt_es.projections.core import moved

Kind = Literal["initial", "candidate", "guidance", "notes", "struck"]
Verdict = Literal[Decided, "", "too_large", "untrusted_only", "no_edit_chosen", "written"]


@frozen(kw_only=True)
class Node:
    """
    One text and its judgement; `verdict` is empty until there is one.

    `value` is what the gate compared, `against` the current text's value beside it; None is what was never measured.
    Where `bound`, the text was not run to its end: its value is the most that it could have been.
    """

    name: str
    kind: Kind
    skill: str
    parent: str
    seq: int
    step: int | None = None
    epoch: int | None = None
    verdict: Verdict = ""
    value: float | None = None
    against: float | None = None
    won: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    stale_from: str = ""
    reason: str = ""
    repeats: int = 1
    bound: bool = False
    promoted: bool = False

    @property
    def taken(self) -> bool:
        """Whether it became the current skill (the initial one always was)."""
        return self.kind == "initial" or self.verdict in TAKEN or self.verdict == "written"


@frozen(kw_only=True)
class Branch:
    """Where the run was forked from another one: what was made up to event `seq` is that run's; items it never met."""

    parent: str
    seq: int
    without: tuple[str, ...] = ()


@frozen(kw_only=True)
class Lineage:
    """
    All nodes in the order of their making; names of the current and of the best one.

    Of a fork, `forks` says from which runs it came, the first one first.
    """

    nodes: tuple[Node, ...]
    current: str
    best: str
    forks: tuple[Branch, ...] = ()

    @property
    def by_name(self) -> Mapping[str, Node]:
        """The nodes by name."""
        return {node.name: node for node in self.nodes}


@define
class _Growing:
    """The lineage while it is read; `ordered` is the item that was ordered last to be retracted."""

    nodes: dict[str, Node] = field(factory=dict)
    held: dict[str, str] = field(factory=dict)
    forks: list[Branch] = field(factory=list)
    ordered: tuple[str, ...] = ()

    @property
    def current(self) -> str:
        return self.held.get("current", "")

    @property
    def best(self) -> str:
        return self.held.get("best", "")


def lineage(records: Iterable[Recorded]) -> Lineage:
    """The tree that these events grow; all of a run's events, or those of TYPES."""
    growing = _Growing()
    for recorded in records:
        handler = _HANDLERS.get(type(recorded.event))
        if handler is not None:
            handler(growing, recorded.event, recorded.seq)
    return Lineage(
        nodes=tuple(growing.nodes.values()), current=growing.current, best=growing.best, forks=tuple(growing.forks)
    )


def _started(growing: _Growing, event: RunStarted, seq: int) -> None:
    growing.nodes["start"] = Node(name="start", kind="initial", skill=event.skill.hash, parent="", seq=seq)
    growing.held = moved(growing.held, event, "start")


def _retracted(growing: _Growing, event: EvidenceRetracted, seq: int) -> None:
    # A retraction belongs to the fork that was made for it; one that was ordered later does not.
    if growing.forks and growing.ordered != event.items:
        last = growing.forks.pop()
        growing.forks.append(evolve(last, without=(*last.without, *event.items)))


def _scored(growing: _Growing, event: SkillScored, seq: int) -> None:
    """A text that had no value yet is measured, by itself or beside a candidate."""
    # A bound is no measurement.
    if event.purpose != "selection" or not event.exact:
        return
    for node in growing.nodes.values():
        if node.skill == event.skill and node.value is None:
            growing.nodes[node.name] = evolve(node, value=event.value)


def _gated(growing: _Growing, event: CandidateGated, seq: int) -> None:
    name = f"step {event.step}"
    growing.nodes[name] = _judged(growing.nodes[name], event.verdict)
    growing.held = moved(growing.held, event, name)


def _skipped(growing: _Growing, event: StepSkipped, seq: int) -> None:
    name = f"step {event.step}"
    if name not in growing.nodes:
        return
    match event.reason:
        case "unchanged" | "too_large" | "untrusted_only" | "no_edit_chosen" as verdict:
            growing.nodes[name] = evolve(growing.nodes[name], verdict=verdict)


def _guided(growing: _Growing, event: SlowUpdateApplied, seq: int) -> None:
    # None of these made a new text.
    if event.verdict.action in ("postponed", "unchanged", "no_content"):
        return
    name = f"epoch {event.epoch}"
    node = Node(name=name, kind="guidance", skill=event.candidate or event.skill.hash, parent=growing.current, seq=seq,
                epoch=event.epoch)  # fmt: skip
    _grow(growing, event, _judged(node, event.verdict))


def _judged(node: Node, verdict: GateVerdict) -> Node:
    return evolve(
        node,
        verdict=verdict.action,
        value=verdict.candidate_value,
        against=verdict.current_value,
        won=verdict.won,
        lost=verdict.lost,
        stale_from=verdict.stale_from,
        reason=verdict.reason,
        repeats=verdict.repeats,
        bound=not verdict.exact,
    )


def _noted(growing: _Growing, event: AppendixWritten, seq: int) -> None:
    name = f"notes of step {event.step}"
    node = Node(name=name, kind="notes", skill=event.skill.hash, parent=growing.current, seq=seq, step=event.step,
                verdict="written", value=event.value, stale_from=event.stale_from)  # fmt: skip
    _grow(growing, event, node)


def _steered(growing: _Growing, event: RunSteered, seq: int) -> None:
    growing.ordered = (event.text,) if event.order == "retract" else ()
    if event.skill is None:
        return
    name = f"struck at event {seq}"
    step = max((node.step for node in growing.nodes.values() if node.step is not None), default=0)
    node = Node(name=name, kind="struck", skill=event.skill.hash, parent=growing.current, seq=seq, step=step,
                verdict="written")  # fmt: skip
    _grow(growing, event, node)


def _promoted(growing: _Growing, event: BestPromoted, seq: int) -> None:
    name = growing.current
    growing.held = moved(growing.held, event, name)
    growing.nodes[name] = evolve(growing.nodes[name], promoted=True)


def _built(growing: _Growing, event: CandidateBuilt, seq: int) -> None:
    node = Node(name=f"step {event.step}", kind="candidate", skill=event.candidate.hash, parent=growing.current,
                seq=seq, step=event.step)  # fmt: skip
    _grow(growing, event, node)


def _grow(growing: _Growing, event: Event, node: Node) -> None:
    """Adds a node, with the places that its event gives it; a text that was measured before keeps its value."""
    known = next((each.value for each in growing.nodes.values() if each.skill == node.skill and not each.bound), None)
    growing.nodes[node.name] = node if node.value is not None else evolve(node, value=known)
    growing.held = moved(growing.held, event, node.name)


_HANDLERS: Mapping[type[Event], Callable[[_Growing, Any, int], None]] = {
    RunStarted: _started,
    RunForked: lambda growing, event, seq: growing.forks.append(Branch(parent=event.parent, seq=event.seq)),
    EvidenceRetracted: _retracted,
    RunSteered: _steered,
    SkillScored: _scored,
    CandidateBuilt: _built,
    CandidateGated: _gated,
    StepSkipped: _skipped,
    SlowUpdateApplied: _guided,
    AppendixWritten: _noted,
    BestPromoted: _promoted,
}
TYPES = names_of(_HANDLERS)
"""The events that a lineage is made of."""
