"""
Where a run's time went, from the moments at which its events were recorded: by stage and by step.

The time between two events belongs to the later one, which is what was waited for. Between a stop and what took over
nobody was at work, nor before what a command recorded on its own, and a fork's time begins with the fork.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import groupby
from typing import cast

from attrs import frozen

from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.places import Place
from skillopt_es.events.reader import Reader
from skillopt_es.events.values import Cell

COMINGS = frozenset({"RunResumed", "RunForked", "EvidenceRetracted", "TextsErased", "SealedTestOpened"})
"""The events that nobody waited for: a writer came, a command recorded something, a final evaluation began."""

_STAGES = {
    "RolloutCompleted": "rollout",
    "PatchProposed": "analyst",
    "AppendixConsolidated": "appendix",
    "PatchesMerged": "merge",
    "EditsRanked": "ranking",
    "LearningRateChosen": "learning_rate",
    "SkillRewritten": "rewrite",
    "SlowUpdateProposed": "slow_update",
    "MetaSkillWritten": "meta_skill",
}
_QUERY = (
    "select seq, type, recorded_at, json_extract(data, '$.step'), json_extract(data, '$.place') from events"
    " where seq <= ? order by seq"
)


@frozen
class Moment:
    """When an event of a type was recorded, the step it belongs to, if it does to one, and its number."""

    type: str
    at: datetime
    step: int | None = None
    seq: int = 0


@frozen(kw_only=True)
class Durations:
    """
    Seconds that a run's writers were at work; a stage's are those in which its results were waited for.

    What no stage explains (planning, gates, start-up) is only in `total`.
    """

    total: float
    by_stage: Mapping[str, float]
    by_step: Mapping[int, float]


def moments_of(reader: Reader, until: int) -> Iterator[Moment]:
    """
    The moments of a log's events up to number `until`; raises LogError for a log that cannot be read so far.

    Of the many results that follow each other at one place only the last: the time up to it is that of all of them.
    """
    for _, alike in groupby(reader.rows(_QUERY, (until,)), key=_likeness):
        *_, last = alike
        yield _moment(*last)


def _likeness(row: tuple[Cell, ...]) -> Cell:
    seq, kind, _, _, place = row
    return place if kind == "RolloutCompleted" else seq


def _moment(seq: Cell, kind: Cell, at: Cell, step: Cell, place: Cell) -> Moment:
    try:
        recorded = datetime.fromisoformat(cast("str", at))
    except (TypeError, ValueError) as error:  # a damaged file can give anything
        raise LogDamaged(f"the time of an event is damaged: {error}") from error
    own = step if isinstance(step, int) else Place(place).step if isinstance(place, str) else None
    return Moment(str(kind), recorded, own, cast("int", seq))


def durations(moments: Iterable[Moment]) -> Durations:
    """The time of a run, from all its moments in order."""
    total = 0.0
    last: datetime | None = None
    by_stage: dict[str, float] = {}
    by_step: dict[int, float] = {}
    for moment in moments:
        if moment.type == "RunForked":
            total, by_stage, by_step = 0.0, {}, {}
        elif last is not None and moment.type not in COMINGS:
            seconds = (moment.at - last).total_seconds()
            total += seconds
            stage = _STAGES.get(moment.type)
            if stage is not None:
                by_stage[stage] = by_stage.get(stage, 0.0) + seconds
            if moment.step is not None:
                by_step[moment.step] = by_step.get(moment.step, 0.0) + seconds
        last = moment.at
    return Durations(total=total, by_stage=by_stage, by_step=by_step)
