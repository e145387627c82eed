"""Counts in words."""

from __future__ import annotations

_PLURALS = {"batch": "batches", "success": "successes", "trajectory": "trajectories", "try": "tries"}


def counted(number: int, noun: str) -> str:
    """A number and its noun: 1 edit, 2 edits, 1,000 new lines."""
    return f"{number:,} {noun if number == 1 else _PLURALS.get(noun, noun + 's')}"
