"""
`replay --check`: derives every recorded decision again from the recorded evidence, with the code that made it.

Evidence is what came from outside: the first event, that a writer came or went, and what each item measured. All else
is asked of the planner and performed anew, with answers from the journal alone, and must come out as it is recorded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import define, field

from skillopt_es.config import RunConfig
from skillopt_es.engine.algorithm import Algorithm
from skillopt_es.engine.algorithms import algorithm_at, algorithm_of, evolve
from skillopt_es.engine.differences import (
    ILLEGAL,
    CheckReport,
    Mismatch,
    all_of,
    came_out_otherwise,
    cannot_go_on,
    differences,
    mapping_differences,
    mismatch,
)
from skillopt_es.engine.evidence import RecordedCalls, RecordedTexts
from skillopt_es.engine.loop import Ports, derive
from skillopt_es.engine.run_config import config_of_run
from skillopt_es.engine.steering import values_without
from skillopt_es.engine.work import Rollouts, Unit
from skillopt_es.events.catalog import (
    MILESTONES,
    Event,
    EvidenceRetracted,
    Recorded,
    RolloutCompleted,
    RunForked,
    RunPaused,
    RunResumed,
    RunStarted,
    RunSteered,
    SealedTestOpened,
    TextsErased,
    skills_in,
)
from skillopt_es.events.errors import LogDamaged, TextErased
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import SkillTree
from skillopt_es.gate.forks import contradiction, gate_values
from skillopt_es.projections.held_out import HeldOut
from skillopt_es.projections.state import AnyState
from skillopt_es.sessions.opening import local_executor
from skillopt_es.skill.pins import without_line


async def check(log: EventLog, journal: Journal, folder: Path, *, until: int | None = None) -> CheckReport:
    """
    Walks a log to its end, or to an event.

    An event that does not follow is noted, and taken as it is recorded: what comes after is derived from there, so a
    later difference is one more that this code would decide otherwise, unless the first has brought the order down.
    """
    events = log.read(until=until)
    first = next(events, None)
    if first is None:
        return CheckReport(events=0, decisions=0, rollouts=0, status="new")
    if not isinstance(first.event, RunStarted):
        raise LogDamaged(f"the log begins with {type(first.event).__name__}, not with the start of a run", seq=1)
    own = algorithm_of(first.event).commands.check
    if own is not None:
        return own(first.event, events, folder)
    config = config_of_run(first.event, folder)
    executor = local_executor()
    texts = _Noticing(log, log.erasures.texts)
    ports = Ports(calls=RecordedCalls(journal, texts), evidence=RecordedTexts(texts, journal), executor=executor)
    walk = _Walk(config, folder, ports, texts, log.erasures.redacted, evolve(None, first.event))
    wrong = await walk.all(first, first.event, events)
    return CheckReport(
        events=walk.events,
        decisions=walk.decisions,
        rollouts=walk.rollouts,
        status=walk.state.status,
        evidence=walk.held_out.evidence,
        mismatches=all_of(wrong),
        unchecked={"decisions whose evidence was erased": walk.erased} if walk.erased else {},
    )


@define
class _Noticing:
    """The texts of a log; notices when one was asked for that was erased, also if it has come back since."""

    log: EventLog
    erased: frozenset[str]
    missed: bool = False

    def text(self, digest: str) -> str:
        """The text, or what is shown in its place."""
        self.missed = self.missed or digest in self.erased
        return self.log.text(digest)


@define
class _Walk:
    """The state so far, and what is still to come of the work under way: rollouts, or decisions made again."""

    config: RunConfig
    folder: Path
    ports: Ports
    evidence: _Noticing
    redacted: frozenset[int]
    state: AnyState
    coming: deque[Unit | Event] = field(factory=deque)
    held_out: HeldOut = field(factory=HeldOut)
    texts: dict[str, SkillTree] = field(factory=dict)
    events: int = 0
    decisions: int = 0
    rollouts: int = 0
    erased: int = 0
    ended: int = 0
    blind: int | None = None
    retracting: tuple[str, ...] = ()

    @property
    def algorithm(self) -> Algorithm[Any]:
        """How the run is trained."""
        return algorithm_at(self.state)

    async def all(self, first: Recorded, started: RunStarted, others: Iterator[Recorded]) -> list[Mismatch]:
        """Every event that does not follow."""
        wrong = self.leak(first) or self.start(first, started)
        found = [] if wrong is None else [wrong]
        for recorded in others:
            try:
                wrong = self.leak(recorded) or await self.step(recorded)
            except ILLEGAL as error:
                if not found:  # in a log whose events all followed so far, it is ours to fix
                    raise
                wrong = mismatch(recorded, f"cannot be derived from what is recorded before it ({error})")
            if wrong is not None:
                found.append(wrong)
                try:
                    self._take(recorded.event)
                except ILLEGAL as error:
                    return [*found, cannot_go_on(recorded, error)]
        return found

    def _take(self, event: Event) -> None:
        """An event as it is recorded, though it does not follow; what was due is planned anew after it."""
        self.coming.clear()
        self._evolve(event)
        if isinstance(event, RunForked | RunResumed):
            self.config = config_of_run(self.state.started, self.folder, self.state.overrides)

    def start(self, recorded: Recorded, event: RunStarted) -> Mismatch | None:
        """The first event: only the number of steps follows from the rest of it."""
        self.texts[event.skill.hash] = event.skill
        per_epoch, total = self.algorithm.plan.steps(self.config.train, len(event.splits.train))
        wanted = {"steps_per_epoch": per_epoch, "total_steps": total}
        found = {name: getattr(event, name) for name in wanted}
        if found != wanted:
            return came_out_otherwise(recorded, mapping_differences(found, wanted))
        self.events += 1
        return None

    def leak(self, recorded: Recorded) -> Mismatch | None:
        """Whether an event lets a validation or test item be evidence; looked at apart from what follows."""
        what = self.held_out.problem(recorded.event)
        return mismatch(recorded, what) if what else None

    async def step(self, recorded: Recorded) -> Mismatch | None:
        """One more event: folded if it follows, else what is wrong with it."""
        event = recorded.event
        self.texts.update({skill.hash: skill for skill in skills_in(event)})
        if isinstance(event, RunForked) and self.state.completed is None:
            return self._forked(recorded, event)
        if isinstance(event, SealedTestOpened) and event.by == "eval":
            self.coming.clear()
            return self._compared(recorded, {"look": self.state.looks.count + 1})
        if self._is_evidence(event):
            return self._from_outside(recorded)
        if self.state.status == "paused":
            return mismatch(recorded, "follows a pause without a RunResumed")
        try:
            due = await self._next()
        except TextErased:
            # What it would be derived from was erased; whether it may be taken on trust is told below.
            self.evidence.missed = True
            due = None
        wrong = self._follows(recorded, due)
        if wrong is not None and self._is_blind(recorded):
            self._take_on_trust(recorded)
            return None
        return wrong

    def _is_blind(self, recorded: Recorded) -> bool:
        """Whether what is derived in this step goes back to texts that were erased."""
        here = self.ended
        redacted = recorded.seq in self.redacted and not isinstance(recorded.event, RolloutCompleted)
        if self.evidence.missed or redacted:
            self.blind, self.evidence.missed = here, False
        return self.blind == here

    def _take_on_trust(self, recorded: Recorded) -> None:
        """The event as it stands, in the place of one that nobody can derive any more; what follows is planned anew."""
        self.coming.clear()
        self.erased += 1
        self._fold(recorded.event)

    def _forked(self, recorded: Recorded, event: RunForked) -> Mismatch | None:
        """That a fork begins here, and what it changes, is evidence; what measured skills then count follows."""
        self.coming.clear()
        overrides = {**self.state.overrides, **{setting.key: setting.value for setting in event.overrides}}
        config = config_of_run(self.state.started, self.folder, overrides)
        why = contradiction(self.state, self.config, config, self.algorithm.commands)
        if why:
            return mismatch(recorded, f"changes what cannot change here: {why}")
        values = gate_values(self.state, self.texts, self.config.evaluation, config)
        self.config = config
        return self._compared(recorded, {"seq": recorded.seq - 1, "values": values})

    def _follows(self, recorded: Recorded, due: Unit | Event | None) -> Mismatch | None:
        """The event against what had to come."""
        event = recorded.event
        match due:
            case None:
                return mismatch(recorded, "is recorded where nothing was left to do")
            case Unit() as unit if isinstance(event, RolloutCompleted):
                self.rollouts += 1
                wanted = {"place": unit.place, "item": unit.item, "purpose": unit.purpose, "skill": unit.skill.hash}
                return self._compared(recorded, wanted)
            case Unit() as unit:
                return mismatch(recorded, f"is recorded where {unit.item} should have been tried at {unit.place}")
            case derived if type(event) is type(derived) and self.algorithm.unreached(event):
                # That the optimizer was not there is evidence; asked again later, the same slot has an answer too.
                answered = self.algorithm.answers[type(event)]
                same = {name: getattr(derived, name) for name in answered.names}
                return self._compared(recorded, {**answered.nothing, **same})
            case derived:
                return self._derived(recorded, derived)

    def _from_outside(self, recorded: Recorded) -> Mismatch | None:
        """What only the outside world can say, folded; of an order, what it leaves follows from it."""
        event, current = recorded.event, self.state.current.skill
        if isinstance(event, RunSteered) and event.skill not in (None, without_line(current, event.text)):
            return mismatch(recorded, "says that another text is left once the line is struck")
        if isinstance(event, EvidenceRetracted):
            values = None if event.place else values_without(event.items, self.state, self.config)
            if event.values != values:
                return mismatch(recorded, "says that what was measured counts otherwise without these items")
        self.coming.clear()  # a writer stopped, took over or was told something: what comes next is planned anew
        self._fold(event)
        if (isinstance(event, RunResumed) and event.overrides) or isinstance(event, RunSteered):
            self.config = config_of_run(self.state.started, self.folder, self.state.overrides)
        return None

    def _is_evidence(self, event: Event) -> bool:
        """Whether nothing but the outside world can say that this happened."""
        if isinstance(event, RunResumed):
            return self.state.completed is None
        if isinstance(event, TextsErased):
            return True
        if isinstance(event, EvidenceRetracted):
            ordered = self.retracting == event.items and not event.place
            return (ordered or self.state.forked is not None) and not self.algorithm.commands.under_way(self.state)
        if isinstance(event, RunSteered):
            return self.state.status == "running"
        outside = ("interrupt", "error", "handoff", "budget", "asked")
        return isinstance(event, RunPaused) and event.reason in outside and self.state.status == "running"

    async def _next(self) -> Unit | Event | None:
        """What must be recorded next; None when the run is complete."""
        if not self.coming:
            work = self.algorithm.next_work(self.state, self.config)
            if isinstance(work, Rollouts):
                self.coming.extend(work.units)
            elif work is not None:
                async for emission in derive(self.algorithm, work, self.state, self.config, self.ports):
                    self.coming.extend(emission.events)
        return self.coming.popleft() if self.coming else None

    def _derived(self, recorded: Recorded, derived: Event) -> Mismatch | None:
        self.decisions += 1
        if recorded.event == derived:
            self._fold(recorded.event)
            return None
        if type(recorded.event) is not type(derived):
            return mismatch(recorded, f"is recorded where a {type(derived).__name__} follows from the evidence")
        return came_out_otherwise(recorded, differences(recorded.event, derived))

    def _compared(self, recorded: Recorded, wanted: Mapping[str, object]) -> Mismatch | None:
        """Folds the event if its fields are as wanted."""
        found = {name: getattr(recorded.event, name) for name in wanted}
        if found != wanted:
            return came_out_otherwise(recorded, mapping_differences(found, wanted))
        self._fold(recorded.event)
        return None

    def _fold(self, event: Event) -> None:
        self._evolve(event)
        self.retracting = (event.text,) if isinstance(event, RunSteered) and event.order == "retract" else ()
        self.events += 1

    def _evolve(self, event: Event) -> None:
        self.state = evolve(self.state, event)
        self.ended += isinstance(event, MILESTONES)
