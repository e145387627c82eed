"""No validation or test item is evidence of a change, whatever a planner thought."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from attrs import evolve
from support.logs import events_of

from skillopt_es.events.catalog import (
    ComparisonDrawn,
    Event,
    MinibatchesPlanned,
    PatchProposed,
    RolloutCompleted,
    RunStarted,
    SlowUpdateProposed,
)
from skillopt_es.events.values import Pair, SkillTree, SplitIds
from skillopt_es.projections.held_out import HeldOut


def problems(events: Iterable[Event]) -> list[str]:
    """All that is wrong, in order."""
    held_out = HeldOut()
    return [found for event in events if (found := held_out.problem(event))]


def test_an_honest_run_has_none(demo_run: Path) -> None:
    """And what its analysts saw is counted."""
    held_out = HeldOut()
    events = events_of(demo_run)
    assert not [event for event in events if held_out.problem(event)]
    groups = [group for event in events if isinstance(event, MinibatchesPlanned) for group in event.groups]
    assert held_out.evidence == sum(len(group.items) for group in groups) > 0


def with_item(event: Event, item: str) -> Event:
    """The same event, resting on this item, too."""
    match event:
        case MinibatchesPlanned():
            [first, *rest] = event.groups
            return evolve(event, groups=(evolve(first, items=(*first.items, item)), *rest))
        case SlowUpdateProposed():
            return evolve(event, pairs=(*event.pairs, Pair(item, "improved")))
        case RolloutCompleted():
            return evolve(event, item=item)
        case PatchProposed() | ComparisonDrawn():
            return evolve(event, items=(*event.items, item))
        case _:
            raise AssertionError(type(event))


EVIDENCE = (RolloutCompleted, MinibatchesPlanned, PatchProposed, ComparisonDrawn, SlowUpdateProposed)


@pytest.mark.parametrize("kind", EVIDENCE)
@pytest.mark.parametrize("split", ["val", "test"])
def test_a_held_out_item_is_found_wherever_it_gets_in(demo_run: Path, kind: type[Event], split: str) -> None:
    """With its split and the place."""
    events = events_of(demo_run)
    started = events[0]
    assert isinstance(started, RunStarted)
    item = getattr(started.splits, split)[0]
    at = next(
        number
        for number, event in enumerate(events)
        if isinstance(event, kind) and getattr(event, "purpose", "train") == "train" and getattr(event, "groups", True)
    )
    [found] = problems([*events[:at], with_item(events[at], item)])
    assert f"{item} ({'validation' if split == 'val' else 'test'})" in found


def test_an_item_in_two_splits_is_found() -> None:
    """Of runs whose data nobody checked."""
    splits = SplitIds(train=("a", "b"), val=("c",), test=("b",), digests={})
    started = RunStarted(
        software="1", config={}, algorithm="classic", folder="/", skill=_skill(), splits=splits, steps_per_epoch=1,
        total_steps=1,
    )  # fmt: skip
    assert problems([started]) == ["has items in two splits: b"]


def _skill() -> SkillTree:
    return SkillTree(files={"SKILL.md": ""})
