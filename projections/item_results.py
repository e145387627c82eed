"""The results of single items, by the text they were tried under (validation, test) or by step (training)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import field, frozen

from skillopt_es.events.catalog import Recorded, RolloutCompleted
from skillopt_es.events.places import Place
from skillopt_es.events.values import Outcome

Results = Mapping[str, tuple[Outcome, ...]]
"""Every outcome of each item, by item, in the order in which they were recorded."""


@frozen(kw_only=True)
class ItemResults:
    """
    `validation` and `test` are by the hash of a skill, `train` is by step; `types` has each item's type of task.

    `at` has the validation and test results by the place at which they were evaluated.
    """

    validation: Mapping[str, Results]
    test: Mapping[str, Results]
    train: Mapping[int, Results]
    types: Mapping[str, str]
    at: Mapping[str, Mapping[str, Outcome]] = field(factory=dict)


def item_results(records: Iterable[Recorded]) -> ItemResults:
    """All results of single items; from all events, or RolloutCompleted alone."""
    validation: dict[str, dict[str, tuple[Outcome, ...]]] = {}
    test: dict[str, dict[str, tuple[Outcome, ...]]] = {}
    train: dict[int, dict[str, tuple[Outcome, ...]]] = {}
    types: dict[str, str] = {}
    at: dict[str, dict[str, Outcome]] = {}
    for recorded in records:
        event = recorded.event
        if not isinstance(event, RolloutCompleted):
            continue
        step = Place(event.place).step
        if event.purpose == "selection":
            of = validation.setdefault(event.skill, {})
        elif event.purpose == "test":
            of = test.setdefault(event.skill, {})
        elif event.purpose == "train" and step is not None:
            of = train.setdefault(step, {})
        else:
            continue
        types[event.item] = event.task_type
        if event.purpose != "train":
            at.setdefault(event.place, {})[event.item] = event.outcome
        of[event.item] = (*of.get(event.item, ()), event.outcome)
    return ItemResults(validation=validation, test=test, train=train, types=types, at=at)
