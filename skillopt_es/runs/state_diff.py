"""What differs between two states of the trainer: skills, where they stand, configs, scores and items. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from attrs import frozen

from skillopt_es.events.values import Json, SkillTree
from skillopt_es.projections.deciding import metric_in
from skillopt_es.projections.state import AnyState, Measurement, Standing, stated_score
from skillopt_es.runs.snapshot import snapshot

_LEDGERS = ("measured", "tests", "buffer", "current", "best")
"""What the other parts of a difference tell better than a line of the state would."""


@frozen
class Changed:
    """One value that is not the same; `there` is False on the side that has no such key."""

    key: str
    before: Json
    after: Json
    was_there: bool = True
    is_there: bool = True


@frozen(kw_only=True)
class SkillDiff:
    """One of the two standing skills on both sides, and its files as a unified diff; empty when they are the same."""

    which: str
    before: str
    after: str
    lines: tuple[str, ...]


@frozen(kw_only=True)
class ScoreDiff:
    """
    The value of a standing skill on both sides; `won` and `lost` are items measured under both texts that turned.

    `metrics` say which score each value is, `items` over how many items it is.
    """

    which: str
    before: float | None
    after: float | None
    won: tuple[str, ...]
    lost: tuple[str, ...]
    compared: int
    metrics: tuple[str, str] = ("", "")
    items: tuple[int | None, int | None] = (None, None)


@frozen(kw_only=True)
class StateDiff:
    """All that differs between two states."""

    skills: tuple[SkillDiff, ...]
    state: tuple[Changed, ...]
    config: tuple[Changed, ...]
    scores: tuple[ScoreDiff, ...]


def state_diff(before: AnyState, after: AnyState, known: Mapping[str, Measurement]) -> StateDiff:
    """What differs, from the first to the second; `known` are measurements of texts, also from other moments."""
    sides = (("current", before.current, after.current), ("best", before.best, after.best))
    metrics = (_metric(before), _metric(after))
    return StateDiff(
        skills=tuple(_skills(which, left, right) for which, left, right in sides),
        state=_changed(_told(before), _told(after)),
        config=_changed(_config(before), _config(after)),
        scores=tuple(_scores(which, known, left, right, metrics) for which, left, right in sides),
    )


def standing_diff(which: str, before: Standing, after: Standing, state: AnyState) -> StateDiff:
    """What differs between two skills of a state, and nothing else."""
    scores = _scores(which, state.measured, before, after, (_metric(state), _metric(state)))
    return StateDiff(skills=(_skills(which, before, after),), state=(), config=(), scores=(scores,))


def _metric(state: AnyState) -> str:
    return metric_in(state.started, state.overrides)


def skill_diff(before: SkillTree, after: SkillTree) -> tuple[str, ...]:
    """Two skills as a unified diff, file by file."""
    lines: list[str] = []
    for file in sorted({*before.files, *after.files}):
        old, new = (tree.files.get(file, "").splitlines() for tree in (before, after))
        lines += difflib.unified_diff(old, new, file if file in before.files else "/dev/null",
                                      file if file in after.files else "/dev/null", lineterm="")  # fmt: skip
    return tuple(lines)


def _skills(which: str, before: Standing, after: Standing) -> SkillDiff:
    lines = skill_diff(before.skill, after.skill)
    return SkillDiff(which=which, before=before.skill.hash, after=after.skill.hash, lines=lines)


def _scores(
    which: str, known: Mapping[str, Measurement], left: Standing, right: Standing, metrics: tuple[str, str]
) -> ScoreDiff:
    old, new = known.get(left.skill.hash), known.get(right.skill.hash)
    pairs = {} if old is None or new is None else {i: (old.items[i], new.items[i]) for i in old.items if i in new.items}
    turned: dict[bool, list[str]] = {True: [], False: []}
    for item, (before, after) in pairs.items():
        if before.passed != after.passed:
            turned[after.passed].append(item)
    return ScoreDiff(
        which=which,
        before=_value(left, old),
        after=_value(right, new),
        won=tuple(turned[True]),
        lost=tuple(turned[False]),
        compared=len(pairs),
        metrics=metrics,
        items=(_items(left, old), _items(right, new)),
    )


def _items(standing: Standing, measured: Measurement | None) -> int | None:
    """Over how many items a skill's value is."""
    score = stated_score(measured if standing.score is None else standing)
    return None if score is None else score.measured


def _value(standing: Standing, measured: Measurement | None) -> float | None:
    """What a skill counted then; for one that was only measured at another time, its score."""
    if standing.value is not None or measured is None:
        return standing.value
    return measured.value


def _told(state: AnyState) -> Mapping[str, Json]:
    return _flat({key: value for key, value in snapshot(state).items() if key not in _LEDGERS})


def _config(state: AnyState) -> Mapping[str, Json]:
    return {**_flat(state.started.config), **state.overrides}


def _flat(values: Mapping[str, Json], lead: str = "") -> dict[str, Json]:
    """Nested keys joined by dots."""
    flat: dict[str, Json] = {}
    for key, value in values.items():
        flat |= _flat(value, f"{lead}{key}.") if isinstance(value, dict) and value else {f"{lead}{key}": value}
    return flat


def _changed(before: Mapping[str, Json], after: Mapping[str, Json]) -> tuple[Changed, ...]:
    keys = dict.fromkeys((*before, *after))
    return tuple(
        Changed(key, before.get(key), after.get(key), was_there=key in before, is_there=key in after)
        for key in keys
        if (key in before) != (key in after) or before.get(key) != after.get(key)
    )
