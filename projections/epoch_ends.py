"""What led to an epoch's guidance and memory: the tasks compared, what the optimizer wrote, what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import evolve, frozen

from skillopt_es.events.catalog import (
    ComparisonDrawn,
    ComparisonExtended,
    Event,
    MetaSkillWritten,
    Recorded,
    SlowUpdateApplied,
    SlowUpdateProposed,
)
from skillopt_es.projections.chains import Seen

END_TYPES = ("ComparisonDrawn", "ComparisonExtended", "SlowUpdateProposed", "SlowUpdateApplied", "MetaSkillWritten")
"""The events that ends of epochs are made of."""


@frozen(kw_only=True)
class EpochEnd:
    """The end of one epoch, as far as it has been recorded."""

    epoch: int
    drawn: Seen[ComparisonDrawn] | None = None
    extended: tuple[Seen[ComparisonExtended], ...] = ()
    proposed: Seen[SlowUpdateProposed] | None = None
    applied: Seen[SlowUpdateApplied] | None = None
    meta: Seen[MetaSkillWritten] | None = None

    @property
    def events(self) -> tuple[Seen[Event], ...]:
        """All that was recorded of it, in order."""
        there = [each for each in (self.drawn, self.proposed, self.applied, self.meta) if each is not None]
        return tuple(sorted([*there, *self.extended], key=lambda seen: seen.seq))


def epoch_ends(records: Iterable[Recorded]) -> Mapping[int, EpochEnd]:
    """The end of every epoch that has come to it; from all of a run's events, or those of END_TYPES."""
    ends: dict[int, EpochEnd] = {}
    for recorded in records:
        seq, event = recorded.seq, recorded.event
        match event:
            case ComparisonDrawn():
                ends[event.epoch] = evolve(_end(ends, event.epoch), drawn=Seen(seq, event))
            case ComparisonExtended():
                end = _end(ends, event.epoch)
                ends[event.epoch] = evolve(end, extended=(*end.extended, Seen(seq, event)))
            case SlowUpdateProposed():
                ends[event.epoch] = evolve(_end(ends, event.epoch), proposed=Seen(seq, event))
            case SlowUpdateApplied():
                ends[event.epoch] = evolve(_end(ends, event.epoch), applied=Seen(seq, event))
            case MetaSkillWritten():
                ends[event.epoch] = evolve(_end(ends, event.epoch), meta=Seen(seq, event))
    return ends


def _end(ends: Mapping[int, EpochEnd], epoch: int) -> EpochEnd:
    return ends.get(epoch) or EpochEnd(epoch=epoch)
