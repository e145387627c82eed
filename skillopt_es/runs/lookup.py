"""Finding one thing of a run by what people have of it: an event's number, a moment, a slot, the start of a hash."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Literal, Protocol

from attrs import frozen

from skillopt_es.counting import counted
from skillopt_es.engine.algorithms import check_allowed
from skillopt_es.errors import NotInRun
from skillopt_es.events.catalog import (
    SKILL_TYPES,
    STEP_ENDS,
    AppendixWritten,
    EpochCompleted,
    Recorded,
    RunStarted,
    ended_step,
    names_of,
    only,
    skills_in,
)
from skillopt_es.events.journal import CallRow, Journal
from skillopt_es.events.log import EventLog, Head, RunInfo
from skillopt_es.events.values import SkillTree

_HASH = re.compile(r"[0-9a-f]{4,64}")


@frozen
class FoundSkill:
    """A skill and the first event that has it."""

    skill: SkillTree
    seq: int


@frozen
class FoundCalls:
    """The calls of one slot, in the order of their attempts."""

    calls: tuple[CallRow, ...]


Found = Recorded | FoundSkill | FoundCalls


def find(what: str, log: EventLog, journal: Journal) -> Found:
    """The event, calls or skill that `what` names; raises NotInRun when there is none or more than one."""
    head = log.head().seq
    # A hash may consist of digits, too; a number that the log has is meant as an event's.
    if what.isdecimal() and 1 <= int(what) <= head:
        return next(log.read(after=int(what) - 1, until=int(what)))
    attempts = journal.attempts(what)
    if attempts:
        return FoundCalls(tuple(attempts))
    found: list[Found] = []
    if _HASH.fullmatch(what.lower()):
        calls = (FoundCalls((row,)) for row in journal.read() if row.digest.startswith(what.lower()))
        found = [*_skills(what.lower(), log), *calls]
    if len(found) == 1:
        return found[0]
    if found:
        raise NotInRun(f"{what} is the beginning of {len(found)} skills and calls of {log.run.name}", hint="say more")
    raise NotInRun(
        f"{log.run.name} has no event, call or skill {what}",
        hint=f"give an event's number (1 to {head}), a call's slot as events name it, or the start of a skill's hash",
    )


def _skills(start: str, log: EventLog) -> list[FoundSkill]:
    found: dict[str, FoundSkill] = {}
    for recorded in log.read(types=SKILL_TYPES):
        for skill in skills_in(recorded.event):
            if skill.hash.startswith(start):
                found.setdefault(skill.hash, FoundSkill(skill, recorded.seq))
    return list(found.values())


Kind = Literal["step", "epoch", "seq"]
Moment = tuple[Kind, int]


class Events(Protocol):
    """The events of a run, however they are read."""

    @property
    def run(self) -> RunInfo:
        """The run."""

    def head(self) -> Head:
        """Where its log ends."""

    def read(
        self, after: int = 0, until: int | None = None, types: Collection[str] | None = None
    ) -> Iterator[Recorded]:
        """Those after `after` up to and with `until`, of these types."""


def seq_of(log: Events, moment: Moment) -> int:
    """The number of the event that a moment ends with; raises NotInRun for one that the run has not reached."""
    kind, number = moment
    head = log.head().seq
    if kind == "seq" and not 1 <= number <= head:
        raise NotInRun(f"{log.run.name} has no event {number}", hint=f"its events are 1 to {head}")
    if kind == "seq":
        return number
    return _end_of_step(log, number) if kind == "step" else _end_of_epoch(log, number)


def _end_of_step(log: Events, number: int) -> int:
    last = end = 0
    for recorded in log.read(types=names_of((*STEP_ENDS, AppendixWritten))):
        event = recorded.event
        step = event.step if isinstance(event, AppendixWritten) else ended_step(event)
        if step is None:
            continue
        if end and step > number:
            break
        last = step
        # Notes that are written after the verdict belong to the step as well.
        end = recorded.seq if last == number else end
    if end:
        return end
    raise _not_reached(log, "step", number, last)


def _end_of_epoch(log: Events, number: int) -> int:
    last = 0
    for seq, event in only(EpochCompleted, log.read(types=("EpochCompleted",))):
        last = event.epoch
        if last == number:
            return seq
    raise _not_reached(log, "epoch", number, last)


def _not_reached(log: Events, kind: Literal["step", "epoch"], number: int, last: int) -> NotInRun:
    beyond = not_in_run(log, kind, number, last)
    if beyond is not None:
        return beyond
    total = _planned(log, kind)
    far = f"the last {kind} that ended is {last} of {total}" if last else f"no {kind} of its {total} has ended"
    return NotInRun(f"{log.run.name} has not reached the end of {kind} {number}: {far}")


def not_in_run(log: Events, kind: Literal["step", "epoch"], number: int, last: int) -> NotInRun | None:
    """The error for a step or an epoch that the run will never have, where its `last` one is this; else None."""
    total, name = _planned(log, kind), log.run.name
    ended = any(log.read(types=("RunCompleted",)))
    # It was stopped by its calls or its target, before its plan was done.
    if ended and last < total and not 1 <= number <= last:
        return NotInRun(f"{name} has no {kind} {number}: it ended after {f'{kind} {last}' if last else f'no {kind}'}")
    if not 1 <= number <= total:
        return NotInRun(f"{name} has no {kind} {number}: it is a run of {counted(total, kind)}")
    return None


def _planned(log: Events, kind: Literal["step", "epoch"]) -> int:
    """How many steps or epochs a run was planned to have."""
    for _, started in only(RunStarted, log.read(until=1)):
        check_allowed("steps", started, log.run.name, NotInRun)
        return started.total_steps // (1 if kind == "step" else max(1, started.steps_per_epoch))
    return 0
