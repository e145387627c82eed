"""The edit budget follows the original's formulas."""

from __future__ import annotations

import pytest

from skillopt_es.skill.schedule import Scheduler, edit_budget


@pytest.mark.parametrize(
    ("scheduler", "highest", "lowest", "total", "budgets"),
    [
        ("linear", 4, 2, 6, [4, 3, 3, 3, 2, 2]),
        ("linear", 8, 2, 10, [7, 7, 6, 6, 5, 4, 4, 3, 3, 2]),
        ("linear", 10, 2, 4, [8, 6, 4, 2]),
        ("cosine", 4, 2, 6, [4, 4, 3, 2, 2, 2]),
        ("cosine", 8, 2, 10, [8, 7, 7, 6, 5, 4, 3, 3, 2, 2]),
        ("cosine", 10, 2, 4, [9, 6, 3, 2]),
        ("constant", 4, 2, 3, [4, 4, 4]),
        ("linear", 7, 2, 1, [7]),
        ("cosine", 7, 2, 1, [7]),
        ("linear", 10, 2, 2, [6, 2]),
        ("cosine", 10, 2, 2, [6, 2]),
        ("uncapped", 4, 2, 2, [999, 999]),
    ],
)
def test_budgets_follow_the_schedule(
    scheduler: Scheduler, highest: int, lowest: int, total: int, budgets: list[int]
) -> None:
    """The published vectors, one budget a step."""
    assert budgets == [
        edit_budget(scheduler, highest=highest, lowest=lowest, step=step, total_steps=total)
        for step in range(1, total + 1)
    ]
