"""
On what evidence a proposal stands: attempts whose texts somebody vouches for, or only such as nobody does.

The label comes from the trajectories and travels along ancestry: from a patch's group to its proposals, and through
merges to what was applied. What stands on no attempt at all (the first skill) is the user's own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Literal

from skillopt_es.events.catalog import Recorded, RolloutCompleted, only
from skillopt_es.events.values import Minibatch, Proposal, Trust

Support = Literal["trusted", "mixed", "untrusted"]
Attempts = frozenset[tuple[str, str]]
"""Attempts by place and item."""


def support_of(labels: Iterable[Trust]) -> Support:
    """What attempts with these labels support together; a single trusted one is enough not to be `untrusted`."""
    found = set(labels)
    if "untrusted" not in found:
        return "trusted"
    return "mixed" if "trusted" in found else "untrusted"


def untrusted_attempts(records: Iterable[Recorded]) -> Attempts:
    """The attempts of a log that nobody vouches for."""
    attempts = only(RolloutCompleted, records)
    return frozenset((event.place, event.item) for _, event in attempts if event.trust == "untrusted")


def label(place: str, item: str, untrusted: Attempts) -> Trust:
    """The label of one attempt."""
    return "untrusted" if (place, item) in untrusted else "trusted"


def patches_behind(name: str, proposals: Mapping[str, Proposal], patches: Collection[str]) -> tuple[str, ...]:
    """The analysts' patches that a proposal goes back to, through merges."""
    found: dict[str, None] = {}
    waiting, seen = [name], set[str]()
    while waiting:
        each = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        if each in patches:
            found[each] = None
        elif each in proposals:
            waiting += proposals[each].origins
    return tuple(found)


def attempts_of(patches: Iterable[str], groups: Iterable[Minibatch]) -> tuple[tuple[str, str], ...]:
    """The attempts that the analysts of these patches saw."""
    by_id = {group.id: group for group in groups}
    seen = (by_id[patch] for patch in patches if patch in by_id)
    return tuple(attempt for group in seen for attempt in group.attempts)
