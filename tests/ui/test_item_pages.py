"""Maps of a long run: a part of their columns, from which one comes to all others."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("starlette", reason="the page needs the extra `ui`")

from skillopt_es.report.items import Column
from skillopt_es.ui.item_pages import window

COLUMNS = [Column(head=str(number), said="", kind="", results={}) for number in range(150)]


def test_a_short_run_is_shown_whole() -> None:
    """Without a word."""
    shown = window("r", "train", COLUMNS[:60], "7")
    assert (shown.columns, shown.others) == (COLUMNS[:60], None)


@pytest.mark.parametrize(
    ("asked", "heads", "ways"),
    [
        ("", ["0", *map(str, range(90, 150))], ["90"]),
        ("90", ["0", *map(str, range(30, 90))], ["30", "150"]),
        ("30", [*map(str, range(60))], ["120"]),
        ("999999", ["0", *map(str, range(90, 150))], ["90"]),
        ("-1", ["0", *map(str, range(90, 150))], ["90"]),
        ("9" * 5000, ["0", *map(str, range(90, 150))], ["90"]),
    ],
)
def test_of_a_long_run_the_last_texts_are_shown_beside_the_first(asked: str, heads: list[str], ways: list[str]) -> None:
    """Earlier and later ones have addresses of their own; what is no number is as if it had not been given."""
    shown = window("r", "train", COLUMNS, asked)
    assert [column.head for column in shown.columns] == heads
    assert re.findall(r"items\?train=(\d+)", str(shown.others)) == ways
    assert shown.asked == bool(asked)
