"""What a retraction changes in the state: the splits, and the batches of the open epoch."""

from __future__ import annotations

from attrs import evolve as replace

from skillopt_es.events.catalog import EvidenceRetracted
from skillopt_es.events.places import Place
from skillopt_es.events.values import Batch
from skillopt_es.projections.state import TrainerState, step_after


def retracted(state: TrainerState, event: EvidenceRetracted) -> TrainerState:
    """What is still to be drawn and tried is so without the retracted items."""
    assert state.started is not None
    splits = state.started.splits
    if not event.place:
        splits = replace(
            splits,
            train=_but(splits.train, event.items),
            val=_but(splits.val, event.items),
            test=_but(splits.test, event.items),
        )
    started = replace(state.started, splits=splits)
    if state.epoch is None:
        return replace(state, started=started)
    first = (state.epoch.number - 1) * started.steps_per_epoch + 1
    share = len(state.epoch.batches) // started.steps_per_epoch
    batches = tuple(
        _without_items(batch, Place.of_step(state.epoch.number, first + index // share).in_batch(index % share), event)
        for index, batch in enumerate(state.epoch.batches)
    )
    epoch = replace(state.epoch, batches=batches)
    step = None if state.step is None else step_after(state, epoch, state.step.number)
    return replace(state, started=started, epoch=epoch, step=step)


def _without_items(batch: Batch, place: Place, event: EvidenceRetracted) -> Batch:
    return replace(batch, items=_but(batch.items, event.items)) if event.place in ("", place) else batch


def _but(items: tuple[str, ...], gone: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(item for item in items if item not in gone)
