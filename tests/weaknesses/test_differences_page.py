"""The page about the differences is whole, and what it leans on exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from support.params import each_of

TESTS = Path(__file__).parent.parent
PAGE = (TESTS.parent / "docs" / "differences.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if re.match(r"\| B?\d", line)
]
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)))


@cache
def functions_of(file: str) -> frozenset[str]:
    """The functions that a test module defines."""
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_every_weakness_has_one_row() -> None:
    """The numbers 1 to 65, and those of the benchmarks, B1 to B46, in order."""
    assert [row[0] for row in ROWS] == [*map(str, range(1, 66)), *(f"B{number}" for number in range(1, 47))]


@each_of("row", ROWS)
def test_a_row_is_whole(row: list[str]) -> None:
    """Four cells, the last of which names tests, or says why there is none."""
    _, weakness, behaviour, test = row
    assert weakness
    assert behaviour
    assert re.fullmatch(
        r"(cannot occur|not built yet|as in the original): .+|`[\w/]+\.py::test_\w+`(, `[\w/]+\.py::test_\w+`)*", test
    )


@each_of(("file", "name"), NAMED)
def test_a_named_test_exists(file: str, name: str) -> None:
    """In that file, under that name."""
    assert name in functions_of(file)


def test_every_test_about_a_weakness_is_named() -> None:
    """What is tested in this folder stands on the page."""
    here = {
        (f"{file.parent.name}/{file.name}", name)
        for file in TESTS.glob("weaknesses/test_13_*.py")
        for name in functions_of(f"weaknesses/{file.name}")
        if name.startswith("test_")
    }
    assert here
    assert not here - set(NAMED)
