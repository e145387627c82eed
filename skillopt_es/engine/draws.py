"""
Random draws, each from its own seed: batches, minibatches and comparison samples.

Python's Mersenne Twister and its shuffle, so that the same seed draws the same items as the original trainer. What is
drawn goes into an event; nothing is drawn twice.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from skillopt_es.events.values import Batch


def shuffled(items: Sequence[str], seed: int) -> list[str]:
    """A copy in the order that this seed gives."""
    order = list(items)
    random.Random(seed).shuffle(order)  # noqa: S311  # reproducible draws, not secrets
    return order


def some_of(names: Sequence[str], seed: str) -> tuple[str, ...]:
    """A part of two names or more that this seed draws: neither all nor none, each such part as likely."""
    bits = random.Random(seed).randrange(1, 2 ** len(names) - 1)  # noqa: S311  # reproducible draws, not secrets
    return tuple(name for at, name in enumerate(names) if bits >> at & 1)


def epoch_batches(items: Sequence[str], *, epoch: int, seed: int, batch_size: int, batches: int) -> tuple[Batch, ...]:
    """An epoch's batches: consecutive slices of the shuffled items; a slice that would be empty is drawn anew."""
    # The original's numbers, here and below: the same seed must draw the same items.
    epoch_seed = seed + epoch * 1000
    order = shuffled(items, epoch_seed)
    planned = []
    for index in range(batches):
        batch_seed = epoch_seed + index + 1
        chosen = order[index * batch_size : (index + 1) * batch_size]
        if not chosen:
            chosen = shuffled(order, batch_seed)[:batch_size]
        planned.append(Batch(seed=batch_seed, items=tuple(chosen)))
    return tuple(planned)


def comparison_seed(seed: int, epoch: int) -> int:
    """The seed of everything that is drawn for an epoch's comparison."""
    return seed + epoch * 2000


def draw_seed(seed: int, draw: int) -> int:
    """The seed of one of a text's draws on the validation items; the first one's is the run's, as it always was."""
    # Far away from all other seeds of a run, which are some thousands apart.
    return seed + (draw - 1) * 10_000_000


def comparison_sample(items: Sequence[str], *, epoch: int, seed: int, count: int) -> tuple[str, ...]:
    """The items on which an epoch's first and last skill are compared."""
    return tuple(shuffled(items, comparison_seed(seed, epoch))[:count])


def comparison_candidates(items: Sequence[str], *, epoch: int, seed: int, compared: Sequence[str]) -> tuple[str, ...]:
    """The items not compared yet, in the order in which they are drawn when more are wanted."""
    seen = set(compared)
    return tuple(item for item in shuffled(items, comparison_seed(seed, epoch)) if item not in seen)


def chunks(items: Sequence[str], size: int) -> list[tuple[str, ...]]:
    """Consecutive groups of at most `size`."""
    return [tuple(items[start : start + size]) for start in range(0, len(items), size)]
