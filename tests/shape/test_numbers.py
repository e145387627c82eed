"""
What a reader has to hold in the head stays small: see `numbers.py`, which also prints what it counts.

A number that decides something has its reason beside it: a comment on the line or right above it, or a docstring below.
A reason is what was measured, the fault that the number prevents, or the source that it comes from. Of a plain choice
it says what happens where the number is larger or smaller. It does not repeat the name.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.shape import numbers

MOST_CODE_LINES = 61_300
MOST_PROMISES = 12  # of rows, texts and types of the codec


def test_each_number_that_decides_something_has_its_reason_beside_it() -> None:
    found = numbers.unexplained()

    assert not found, f"say why, in a comment beside each (a measurement, a fault, a source): {', '.join(found)}"


def test_no_constructor_of_the_engine_has_more_than_eight_parameters() -> None:
    assert numbers.wide_constructors(8) == []


def test_no_algorithm_asks_for_a_version_of_itself() -> None:
    assert numbers.version_conditions() == []


def test_what_a_type_can_say_of_a_run_is_asserted_nowhere() -> None:
    """An assert, a cast or an ignore in the core is one of the few that do not speak of a state."""
    found = [where for where in numbers.promises() if where.startswith(numbers.CORE)]

    assert len(found) <= MOST_PROMISES, found


def test_the_product_does_not_grow_by_itself() -> None:
    """A change that needs more lines raises the bound here, in the open, and its message says what they buy."""
    assert sum(map(numbers.code_lines, numbers.modules())) <= MOST_CODE_LINES


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("_MOST = 5\n", False),
        ("_MOST = 5  # a screen has as many lines\n", True),
        ("# A screen has as many lines.\n_MOST = 5\n", True),
        ('MOST = 5\n"""A screen has as many lines."""\n', True),
        ("# A screen has as many lines.\n\n_MOST = 5\n", False),
        ("_MOST, _LEAST = 5, 2\n", False),
        ("_REFUSED = frozenset({400, 413})\n", False),
        ("_MOST = {'a': 1}\n", False),
        ("_MOST: int = 5\n", False),
        ("_MOST = 5  # fmt: skip\n", False),
        ("_NAME = 'five'\n", True),
        ("_FIRST = (*_ALL[0],)\n", True),
        ("_IS_THERE = True\n", True),
    ],
)
def test_a_reason_stands_on_the_line_or_right_above_or_below(
    source: str, told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "module.py"
    module.write_text(source, encoding="utf-8")
    monkeypatch.setattr(numbers, "ROOT", tmp_path)
    monkeypatch.setattr(numbers, "modules", lambda: (module,))
    monkeypatch.setattr(numbers, "tree_of", lambda _: ast.parse(source))

    assert (numbers.unexplained() == []) is told
