"""Which tasks of a question about failures had been solved: the optimizer saw them for comparison."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from attrs import evolve

from skillopt_es.engine.run_config import config_of_run
from skillopt_es.events.catalog import MinibatchesPlanned, only
from skillopt_es.events.values import Measured, Minibatch, Purpose
from skillopt_es.projections.not_taken import Refused
from skillopt_es.runs.reading import Reading

_TRAIN: tuple[Purpose, ...] = ("train",)


def solved_in(groups: Iterable[Minibatch], reading: Reading) -> Mapping[str, frozenset[str]]:
    """By group of failures, those of its tasks that had been solved; no group that has none."""
    shown = {group.id: frozenset(group.attempts) for group in groups if group.kind == "failure" and group.items}
    wanted = {attempt for attempts in shown.values() for attempt in attempts}
    if not wanted:
        return {}
    config = config_of_run(reading.started, reading.log.path.parent)
    passed: dict[tuple[str, str], bool] = {}
    for result in reading.results(_TRAIN):
        if (result.place, result.item) in wanted:
            passed[result.place, result.item] = isinstance(result.outcome, Measured) and config.passes(result.outcome)
    found = {
        name: frozenset(item for place, item in attempts if passed.get((place, item), False))
        for name, attempts in shown.items()
    }
    return {name: items for name, items in found.items() if items}


def with_comparisons(found: Refused, reading: Reading) -> Refused:
    """The same, with the tasks of each row apart that the optimizer saw solved."""
    if not found.rows:
        return found
    planned = only(MinibatchesPlanned, reading.read(types=(MinibatchesPlanned.__name__,)))
    groups = [group for _, event in planned for group in event.groups]
    solved = solved_in(groups, reading)
    rows = (evolve(row, solved=_of(row.items, solved.get(row.patch, ()))) for row in found.rows)
    return evolve(found, rows=tuple(rows))


def _of(items: Iterable[str], solved: Collection[str]) -> tuple[str, ...]:
    return tuple(item for item in items if item in solved)
