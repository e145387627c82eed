"""Which event wrote each line of an exported skill, as runs of lines that one event wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from skillopt_es.audit.blame import BLAME_TYPES, Attributed, Maker, blame
from skillopt_es.deploy.facts import EventRef, LinesFrom, Which
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import SkillTree


def origins_of(log: EventLog, which: Which, skill: SkillTree, until: int) -> Mapping[str, tuple[LinesFrom, ...]] | None:
    """By file, who wrote the lines of a skill as they were measured; None for a text that nothing explains."""
    records = list(log.read(until=until, types=frozenset(BLAME_TYPES)))
    refs = {each.seq: EventRef(seq=each.seq, type=type(each.event).__name__, hash=each.hash) for each in records}
    found = blame(records[:1] if which == "initial" else records)
    if found is None:
        return None
    text: Attributed = found.best if which == "best" else found.current
    if text.skill != skill:
        return None
    return {path: _runs(makers, refs) for path, makers in sorted(text.makers.items())}


def _runs(makers: Sequence[Maker], refs: Mapping[int, EventRef]) -> tuple[LinesFrom, ...]:
    found = []
    for maker, group in groupby(enumerate(makers, start=1), key=lambda each: each[1]):
        numbers = [number for number, _ in group]
        found.append(
            LinesFrom(
                first=numbers[0],
                last=numbers[-1],
                written_by=refs[maker.seq],
                kind=maker.kind,
                step=maker.step,
                epoch=maker.epoch,
            )
        )
    return tuple(found)
