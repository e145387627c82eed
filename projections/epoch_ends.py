"""What led to an epoch's guidance and memory: the tasks compared, what the optimizer wrote, what became of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from attrs import evolve, frozen

from skillopt_es.events.catalog import (
    ComparisonDrawn,
    ComparisonExtended,
    Event,
    MetaSkillWritten,
    Recorded,
    SlowUpdateApplied,
    SlowUpdateProposed,
    names_of,
)
from skillopt_es.projections.chains import Seen


@frozen(kw_only=True)
class EpochEnd:
    """The end of one epoch, as far as it has been recorded; advice that failed is asked for again, and judged later."""

    epoch: int
    drawn: Seen[ComparisonDrawn] | None = None
    extended: tuple[Seen[ComparisonExtended], ...] = ()
    proposed: tuple[Seen[SlowUpdateProposed], ...] = ()
    applied: tuple[Seen[SlowUpdateApplied], ...] = ()
    meta: tuple[Seen[MetaSkillWritten], ...] = ()

    @property
    def events(self) -> tuple[Seen[Event], ...]:
        """All that was recorded of it, in order."""
        drawn = () if self.drawn is None else (self.drawn,)
        there: tuple[Seen[Event], ...] = (*drawn, *self.extended, *self.proposed, *self.applied, *self.meta)
        return tuple(sorted(there, key=lambda seen: seen.seq))


def epoch_ends(records: Iterable[Recorded]) -> Mapping[int, EpochEnd]:
    """The end of every epoch that has come to it; from all of a run's events, or those of END_TYPES."""
    ends: dict[int, EpochEnd] = {}
    for recorded in records:
        join = _JOINED.get(type(recorded.event))
        if join is not None:
            epoch = int(getattr(recorded.event, "epoch"))  # noqa: B009 -- all that are joined have one
            ends[epoch] = join(ends.get(epoch) or EpochEnd(epoch=epoch), Seen(recorded.seq, recorded.event))
    return ends


_JOINED: Mapping[type[Event], Callable[..., EpochEnd]] = {
    ComparisonDrawn: lambda end, seen: evolve(end, drawn=seen),
    ComparisonExtended: lambda end, seen: evolve(end, extended=(*end.extended, seen)),
    SlowUpdateProposed: lambda end, seen: evolve(end, proposed=(*end.proposed, seen)),
    SlowUpdateApplied: lambda end, seen: evolve(end, applied=(*end.applied, seen)),
    MetaSkillWritten: lambda end, seen: evolve(end, meta=(*end.meta, seen)),
}
END_TYPES = names_of(_JOINED)
"""The events that ends of epochs are made of."""
