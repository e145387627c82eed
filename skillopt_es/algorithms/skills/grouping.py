"""
Attempts in groups that one question can be about: those that opened the same skills and came out alike. Pure.

A group is as large as a question takes. What is left over and too little for a question waits for the next step.
"""

from __future__ import annotations

from collections.abc import Sequence

from skillopt_es.algorithms.skills.state import Key, SkillsState, Waiting, where_of
from skillopt_es.config import RunConfig
from skillopt_es.events.places import Place
from skillopt_es.events.values import Attempt, Minibatch, PatchSource

MOST_WAITING = 400
"""Attempts that wait for others like them, each with its trajectory in a later question; the oldest are dropped."""


def groups_of(state: SkillsState, config: RunConfig) -> tuple[tuple[Minibatch, ...], tuple[Attempt, ...]]:
    """The groups that the open step asks about, failures first, and the attempts that have waited too long."""
    place = where_of(state).place.in_batch(0)
    groups: list[Minibatch] = []
    for kind in _kinds(config):
        buckets = _buckets(state.algorithm.waiting, config, kind)
        for key in sorted(buckets):
            for rows in _chunks(buckets[key], config.skills.reflection_group_size):
                if len(rows) >= config.skills.reflection_trigger_size:
                    groups.append(_group(place, kind, len(groups), key, rows))
    used = {Attempt(*each) for group in groups for each in group.attempts}
    left = [each.attempt for each in state.algorithm.waiting if each.attempt not in used]
    return tuple(groups), tuple(left[: max(0, len(left) - MOST_WAITING)])


def _kinds(config: RunConfig) -> tuple[PatchSource, ...]:
    return ("failure",) if config.gradient.failure_only else ("failure", "success")


def _buckets(waiting: Sequence[Waiting], config: RunConfig, kind: PatchSource) -> dict[Key, list[Waiting]]:
    found: dict[Key, list[Waiting]] = {}
    for each in waiting:
        if config.passes(each.outcome) == (kind == "success"):
            found.setdefault(each.key, []).append(each)
    return found


def _chunks(rows: Sequence[Waiting], size: int) -> list[list[Waiting]]:
    """Groups of at most `size`, in order; an item that was tried twice is in two of them."""
    chunks: list[list[Waiting]] = []
    for row in rows:
        fitting = (
            chunk
            for chunk in chunks
            if len(chunk) < size and all(row.attempt.item != other.attempt.item for other in chunk)
        )
        chunk = next(fitting, None)
        if chunk is None:
            chunks.append([row])
        else:
            chunk.append(row)
    return chunks


def _group(place: Place, kind: PatchSource, index: int, key: Key, rows: Sequence[Waiting]) -> Minibatch:
    return Minibatch(
        id=place.analyst(kind, index),
        kind=kind,
        place=place,
        items=tuple(row.attempt.item for row in rows),
        earlier=tuple(row.attempt for row in rows if row.attempt.place != place),
        viewed=key,
    )
