"""What the words of `explain` and `diff` name: a step, an epoch's end, an event, a skill, or a run at a moment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, cast, get_args

from attrs import frozen

from skillopt_es.errors import NotInRun
from skillopt_es.events.catalog import (
    ComparisonDrawn,
    ComparisonExtended,
    MetaSkillWritten,
    Recorded,
    RolloutCompleted,
    SkillScored,
    SlowUpdateApplied,
    SlowUpdateProposed,
)
from skillopt_es.events.places import Place
from skillopt_es.projections.lineage import TYPES, Node, lineage
from skillopt_es.runs.lookup import Moment
from skillopt_es.runs.reading import Reading

Named = Literal["step", "epoch", "event", "candidate", "anything"]
_HASH = re.compile(r"[0-9a-f]{4,64}")


@frozen
class StepTarget:
    """A step; `about` is the event, patch or edit of it that was named, if one was."""

    step: int
    about: str = ""


@frozen
class EpochTarget:
    """What happened at an epoch's end."""

    epoch: int
    about: str = ""


@frozen
class EventTarget:
    """An event that no step and no epoch's end led to."""

    recorded: Recorded


Target = StepTarget | EpochTarget | EventTarget


def target_of(named: Named, value: str, reading: Reading) -> Target:
    """What was named; raises NotInRun, which says what there is instead."""
    name = reading.run.name
    if named == "step":
        return StepTarget(_number(value, "step"))
    if named == "epoch":
        return EpochTarget(_number(value, "epoch"))
    if named == "event" or (named == "anything" and value.isdecimal() and _is_event(value, reading)):
        return _of_event(_number(value, "event"), reading)
    if named == "candidate" or _HASH.fullmatch(value.lower()):
        return _of_hash(value.lower(), reading)
    step, epoch = Place(value).step, Place(value).epoch
    if step is not None:
        return StepTarget(step, about=value)
    if epoch is not None:
        return EpochTarget(epoch, about=value)
    raise NotInRun(
        f"{name} has nothing called {value}",
        hint="say `step 3`, `epoch 1`, an event's number, the id of a patch or an edit, or the start of a skill's hash",
    )


def _number(value: str, what: str) -> int:
    if not value.isdecimal():
        raise NotInRun(f"{value} is not the number of a {what}", hint=f"say `explain {what} 3`")
    return int(value)


def _is_event(digits: str, reading: Reading) -> bool:
    """Whether digits are meant as an event's number: there is such an event, or no skill whose hash begins so."""
    return int(digits) <= reading.until or not _skills(digits, reading)


def _of_event(number: int, reading: Reading) -> Target:
    found = list(reading.read(after=number - 1, until=number)) if 1 <= number <= reading.until else []
    if not found:
        name = reading.run.name
        raise NotInRun(f"{name} has no event {number} that can be read", hint=f"its events are 1 to {reading.until}")
    event, about = found[0].event, f"event {number}"
    match event:
        case ComparisonDrawn() | ComparisonExtended() | SlowUpdateProposed() | SlowUpdateApplied() | MetaSkillWritten():
            return EpochTarget(event.epoch, about)
        case RolloutCompleted():
            return EventTarget(found[0])
        case SkillScored():
            place = Place(event.place)
            step, epoch = place.step, place.epoch
        case _:
            step, epoch = getattr(event, "step", None), None
    if step is not None:
        return StepTarget(step, about)
    return EventTarget(found[0]) if epoch is None else EpochTarget(epoch, about)


def _of_hash(start: str, reading: Reading) -> Target:
    name = reading.run.name
    nodes = _skills(start, reading)
    if not nodes:
        raise NotInRun(f"{name} has no skill whose hash begins with {start}", hint="`skillopt-es lineage` has them all")
    if len({node.skill for node in nodes}) > 1:
        raise NotInRun(
            f"{start} is the beginning of {len({node.skill for node in nodes})} skills", hint="give more of the hash"
        )
    made = [node for node in nodes if node.kind != "initial"]
    if len(made) > 1:
        places = ", ".join(node.name for node in made)
        raise NotInRun(
            f"the skill {start} was made {len(made)} times: {places}", hint=f"say `explain {_said(made[0])}`"
        )
    return _of_node(made[0] if made else nodes[0], reading)


def _skills(start: str, reading: Reading) -> list[Node]:
    """The skills whose hash begins so, each time that they were made."""
    return [node for node in lineage(reading.read(types=TYPES)).nodes if node.skill.startswith(start)]


def _said(node: Node) -> str:
    return f"epoch {node.epoch}" if node.step is None else f"step {node.step}"


def _of_node(node: Node, reading: Reading) -> Target:
    if node.step is not None:
        return StepTarget(node.step)
    if node.epoch is not None:
        return EpochTarget(node.epoch)
    return _of_event(node.seq, reading)


_Part = tuple[Literal["run"], str] | tuple[Literal["moment"], Moment]
SkillName = Literal["initial", "best", "current"]
SKILLS: tuple[SkillName, ...] = get_args(SkillName)
"""The skills of a run that have a name."""
_KINDS = ("step", "epoch", "seq")


@frozen
class Side:
    """A run (the newest when None) at a moment (its end when None)."""

    run: str | None
    moment: Moment | None


def skills_of(words: Sequence[str]) -> tuple[str | None, SkillName, SkillName] | None:
    """The run and the two of its skills that `[RUN] A B` names, or None for words that name none."""
    *run, before, after = ("", *words) if len(words) == 2 else words if len(words) == 3 else ("", "", "")
    if before not in SKILLS or after not in SKILLS:
        return None
    return run[0] or None, before, after


def sides_of(words: Sequence[str]) -> tuple[Side, Side] | None:
    """Both sides, or None for words that do not name two: `[RUN] A B`, `RUN RUN`, `[RUN] A`, `RUN A RUN B`."""
    match _parts(words):
        case [("run", one), ("run", other)]:
            return Side(one, None), Side(other, None)
        case [("run", one), ("moment", first), ("run", other), ("moment", second)]:
            return Side(one, first), Side(other, second)
        case [("run", run), *moments]:
            return _of_one(run, moments)
        case moments:
            return _of_one(None, moments)


def _of_one(run: str | None, parts: Sequence[_Part]) -> tuple[Side, Side] | None:
    """Two moments of a run, or one and now."""
    match parts:
        case [("moment", first)]:
            return Side(run, first), Side(run, None)
        case [("moment", first), ("moment", second)]:
            return Side(run, first), Side(run, second)
        case _:
            return None


def _parts(words: Sequence[str]) -> list[_Part]:
    parts: list[_Part] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word in _KINDS and rest and rest[0].isdecimal():
            parts.append(("moment", cast("Moment", (word, int(rest.pop(0))))))
        else:
            parts.append(("run", word))
    return parts
