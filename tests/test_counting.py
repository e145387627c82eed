"""Counts in words."""

from __future__ import annotations

import pytest

from skillopt_es.counting import counted


@pytest.mark.parametrize(
    ("number", "noun", "said"),
    [
        (0, "edit", "0 edits"),
        (1, "edit", "1 edit"),
        (1, "trajectory", "1 trajectory"),
        (2, "batch", "2 batches"),
        (1234, "new line", "1,234 new lines"),
    ],
)
def test_a_noun_is_as_its_number(number: int, noun: str, said: str) -> None:
    """One of something, or several."""
    assert counted(number, noun) == said
