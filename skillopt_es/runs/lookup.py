"""Finding one thing of a run by what people have of it: an event's number, a call's slot, the start of a hash."""

from __future__ import annotations

import re

from attrs import frozen

from skillopt_es.errors import NotInRun
from skillopt_es.events.catalog import SKILL_TYPES, Recorded, skills_in
from skillopt_es.events.journal import CallRow, Journal
from skillopt_es.events.log import EventLog
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
    if what.isdecimal() and 1 <= int(what) <= head:
        return next(log.read(after=int(what) - 1, until=int(what)))
    attempts = journal.attempts(what)
    if attempts:
        return FoundCalls(tuple(attempts))
    found: list[Found] = []
    if _HASH.fullmatch(what.lower()):
        found = [*_skills(what.lower(), log), *_calls(what.lower(), journal)]
    if len(found) == 1:
        return found[0]
    if found:
        raise NotInRun(f"{what} is the beginning of {len(found)} skills and calls of {log.run.name}", hint="say more")
    raise NotInRun(
        f"{log.run.name} has no event, call or skill {what}",
        hint=f"say an event's number (1 to {head}), a call's slot as events name it, or how a skill's hash begins",
    )


def _skills(start: str, log: EventLog) -> list[FoundSkill]:
    found: dict[str, FoundSkill] = {}
    for recorded in log.read(types=SKILL_TYPES):
        for skill in skills_in(recorded.event):
            if skill.hash.startswith(start):
                found.setdefault(skill.hash, FoundSkill(skill, recorded.seq))
    return list(found.values())


def _calls(start: str, journal: Journal) -> list[FoundCalls]:
    return [FoundCalls((row,)) for row in journal.read() if row.digest.startswith(start)]
