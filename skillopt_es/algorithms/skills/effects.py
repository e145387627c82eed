"""
What each of several changes does to the items that notice it, from draws of items under some of the changes. Pure.

A plain least-squares fit. What an item comes to is taken as a level of its own, plus the effect of each change that it
noticed and that was on in that draw, plus chance. Each item is compared with its own other draws alone, so levels drop
out, and a draw under a part of the changes tells those apart that every other draw had all on or all off.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import sqrt

from attrs import frozen

_DOUBT = 0.5
"""What speaks for no effect from the start, in draws: it keeps a single item from saying very much."""
_DIGITS = 6  # so that what rounding leaves of nothing is nothing


@frozen
class Draw:
    """One result of an item, and the changes that were on which it notices."""

    item: str
    on: frozenset[str]
    value: float


def effects(draws: Iterable[Draw], changes: Sequence[str]) -> dict[str, float]:
    """By how much each change moves an item that notices it; 0 for one that nothing is known of."""
    seen = _compared(draws, changes)
    solved = _solved(seen.products, seen.towards)
    return {change: round(value, _DIGITS) + 0.0 for change, value in zip(changes, solved, strict=True)}


def standard_errors(draws: Iterable[Draw], changes: Sequence[str]) -> dict[str, float]:
    """How far each effect may lie from the true one by chance; nothing of those that too few draws tell of."""
    seen = _compared(draws, changes)
    told = [at for at in range(len(changes)) if any(apart[at] for apart, _ in seen.rows)]
    free = len(seen.rows) - seen.items - len(told)
    if free <= 0:
        return {}
    solved = _solved(seen.products, seen.towards)
    fitted = [sum(one * by for one, by in zip(apart, solved, strict=True)) for apart, _ in seen.rows]
    left = sum((value - fit) ** 2 for (_, value), fit in zip(seen.rows, fitted, strict=True)) / free
    units = {at: [float(other == at) for other in range(len(changes))] for at in told}
    return {changes[at]: round(sqrt(left * _solved(seen.products, unit)[at]), _DIGITS) for at, unit in units.items()}


@frozen(kw_only=True)
class _Compared:
    """Draws beside the other draws of their items: what was on, more than usual there, and how much more it came to."""

    rows: list[tuple[list[float], float]]
    items: int
    products: list[list[float]]
    towards: list[float]


def _compared(draws: Iterable[Draw], changes: Sequence[str]) -> _Compared:
    by_item: dict[str, list[Draw]] = {}
    for draw in draws:
        by_item.setdefault(draw.item, []).append(draw)
    found: list[tuple[list[float], float]] = []
    products = [[_DOUBT * (row == column) for column in range(len(changes))] for row in range(len(changes))]
    towards = [0.0] * len(changes)
    for rows in by_item.values():
        level = sum(draw.value for draw in rows) / len(rows)
        usual = [sum(change in draw.on for draw in rows) / len(rows) for change in changes]
        for draw in rows:
            apart = [(change in draw.on) - usual[at] for at, change in enumerate(changes)]
            found.append((apart, draw.value - level))
            for at, one in enumerate(apart):
                towards[at] += one * (draw.value - level)
                for column, other in enumerate(apart):
                    products[at][column] += one * other
    return _Compared(rows=found, items=len(by_item), products=products, towards=towards)


def _solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """The solution of a positive definite system, by elimination: doubt keeps every pivot away from 0."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for at, pivot in enumerate(rows):
        for row in rows[at + 1 :]:
            factor = row[at] / pivot[at]
            row[at:] = [value - factor * above for value, above in zip(row[at:], pivot[at:], strict=True)]
    found = [0.0] * len(right)
    for at in range(len(rows) - 1, -1, -1):
        known = sum(rows[at][column] * found[column] for column in range(at + 1, len(right)))
        found[at] = (rows[at][-1] - known) / rows[at][at]
    return found
