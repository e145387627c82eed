"""When two cells count as the same, which cells a position names, and which script a reply holds."""

from __future__ import annotations

import itertools
from datetime import date, datetime, time, timedelta
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.params import each_of

from skillopt_es.adapters.environments.spreadsheetbench.cells import CellValue, Oddity, same_value
from skillopt_es.adapters.environments.spreadsheetbench.prompt import code_in
from skillopt_es.adapters.environments.spreadsheetbench.ranges import Range, column_name, read_ranges

NEW_YEAR = datetime(2024, 1, 1)

# The original's table: what stands in one row is equal, what stands in two is not.
UPSTREAM: list[list[CellValue]] = [
    [None, ""],
    [0, False, 0.0, -0.0, "0", "0.00", "-0", 0.004, "0.004"],
    [1, True, 1.0, "1", "1.004", " 1 ", "1e0", 1.004, 1.005, "+1"],
    [1.01, "1.01", 1.0149],
    [5, " 5 ", "5.0", "5\n"],
    [1000, "1e3", "1_000"],
    [inf, "inf", "Infinity", " INF "],
    [-inf, "-inf"],
    [45292, NEW_YEAR, NEW_YEAR.replace(hour=12), "45292", NEW_YEAR.replace(hour=3)],
    [45293, NEW_YEAR.replace(hour=13), datetime(2024, 1, 2)],
    [date(2024, 1, 1)],
    [date(2024, 1, 2)],
    [time(1, 2, 3), time(1, 2, 50), "01:02"],
    [time(1, 3), "01:03"],
    [timedelta(hours=1)],
    ["a"],
    ["A"],
    ["a "],
    ["True"],
    ["2024-01-01"],
    ["#N/A"],
    ["1,000"],
    ["5%"],
    ["nothing"],
    [Oddity("other", "x")],
]
EXTENDED: list[list[CellValue]] = [
    [None, ""],
    [0, False, 0.0, "0", 0.004, "false", "FALSE"],
    [1, True, "1", "1.004", " 1 ", "True", "true"],
    [1.02, "1.02"],
    [1000, "1e3", "1_000"],
    [inf, "inf"],
    [45292, NEW_YEAR, date(2024, 1, 1), "45292"],
    [45292.5, NEW_YEAR.replace(hour=12)],
    [NEW_YEAR.replace(hour=13)],
    [date(2024, 1, 2), datetime(2024, 1, 2)],
    [time(1, 2), "01:02"],
    [time(1, 2, 50), "01:02:50"],
    [timedelta(hours=1)],
    ["nan", "nan"],
    ["a"],
    ["A"],
    ["#N/A"],
]


def pairs(table: list[list[CellValue]]) -> list[tuple[CellValue, CellValue, bool]]:
    """Every two values of a table, in both orders, and whether they stand in one row."""
    placed = [(row, value) for row, values in enumerate(table) for value in values]
    return [(left, right, one == other) for (one, left), (other, right) in itertools.product(placed, repeat=2)]


@pytest.mark.parametrize("scoring", ["skillopt", "extended"])
def test_cells_compare_as_the_table_says(scoring: str) -> None:
    """Every pair of it, either way round."""
    table = pairs(UPSTREAM if scoring == "skillopt" else EXTENDED)
    assert len(table) > 150
    wrong = [pair for pair in table if same_value(pair[0], pair[1], scoring) is not pair[2]]  # type: ignore[arg-type]
    assert not wrong


@pytest.mark.parametrize(
    ("gold", "found", "skillopt", "extended"),
    [
        (1.005, 1.01, False, True),
        (1.0049, 1.0051, False, True),
        (1.0, 1.02, False, False),
        (1e12, 1e12 + 1, False, False),
        (True, "True", False, True),
        (date(2024, 1, 1), NEW_YEAR, False, True),
        (NEW_YEAR, NEW_YEAR.replace(hour=11), True, False),
        (NEW_YEAR.replace(microsecond=1), NEW_YEAR, True, True),
        ("nan", "nan", False, True),
        (nan, nan, False, False),
        ("2024-01-01", NEW_YEAR, False, False),
        (None, 0, False, False),
        ("", 0, False, False),
        ("#N/A", None, False, False),
        (time(1, 2, 3), time(1, 2, 50), True, False),
        (10**400, 10**400, True, True),
        (10**400, 1, False, False),
    ],
)
def test_the_extended_scoring_differs_where_the_original_cuts(
    gold: CellValue, found: CellValue, skillopt: bool, extended: bool
) -> None:
    """Half a cent, days and moments, yes and no in words."""
    assert same_value(gold, found, "skillopt") is same_value(found, gold, "skillopt") is skillopt
    assert same_value(gold, found, "extended") is same_value(found, gold, "extended") is extended


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(), st.dates(), st.times(),
    st.datetimes(), st.timedeltas(),
)  # fmt: skip


@given(VALUES, VALUES, st.sampled_from(["skillopt", "extended"]))
def test_comparing_is_symmetric_and_never_fails(left: CellValue, right: CellValue, scoring: str) -> None:
    """A value equals itself, unless it is text that reads as not a number."""
    assert same_value(left, right, scoring) == same_value(right, left, scoring)  # type: ignore[arg-type]
    reads_as_nan = isinstance(left, str) and left.strip().lower().lstrip("+-") == "nan"
    assert reads_as_nan or same_value(left, left, scoring)  # type: ignore[arg-type]


def rectangle(left: int, top: int, right: int, bottom: int, sheet: str = "") -> Range:
    return Range(sheet=sheet, left=left, top=top, right=right, bottom=bottom)


@pytest.mark.parametrize(
    ("position", "ranges"),
    [
        ("A1", [rectangle(1, 1, 1, 1)]),
        ("a1", [rectangle(1, 1, 1, 1)]),
        ("$A$1", [rectangle(1, 1, 1, 1)]),
        ("A1:B2", [rectangle(1, 1, 2, 2)]),
        ("$A$1:$B$2", [rectangle(1, 1, 2, 2)]),
        ("B2:A1", [rectangle(1, 1, 2, 2)]),
        ("AA10 : AB12", [rectangle(27, 10, 28, 12)]),
        ("'S'!'A1'", [rectangle(1, 1, 1, 1, "S")]),
        ("A1, A3", [rectangle(1, 1, 1, 1), rectangle(1, 3, 1, 3)]),
        ("Sheet1!C2:C10", [rectangle(3, 2, 3, 10, "Sheet1")]),
        ("'Q1, north'!A1,B2", [rectangle(1, 1, 1, 1, "Q1, north"), rectangle(2, 2, 2, 2)]),
        ("'it''s'!A1", [rectangle(1, 1, 1, 1, "it's")]),
        ("Sheet1'!A1", [rectangle(1, 1, 1, 1, "Sheet1")]),
        ("'a!b'!A1", [rectangle(1, 1, 1, 1, "a!b")]),
    ],
)
def test_positions_name_ranges(position: str, ranges: list[Range]) -> None:
    """With both scorings."""
    assert [*read_ranges(position, sheet="", scoring="skillopt")] == ranges
    assert [*read_ranges(position, sheet="", scoring="extended")] == ranges


def test_lower_case_ranges_are_what_they_say_only_in_the_extended_scoring() -> None:
    """The original counts small letters from AG on."""
    assert read_ranges("a1:b2", sheet="", scoring="skillopt") == (rectangle(33, 1, 34, 2),)
    assert [column_name(33), column_name(34)] == ["AG", "AH"]
    assert read_ranges("a1:b2", sheet="", scoring="extended") == (rectangle(1, 1, 2, 2),)


@pytest.mark.parametrize(
    ("position", "extended"),
    [("A:B", rectangle(1, 1, 2, 1_048_576)), ("2:3", rectangle(1, 2, 16_384, 3))],
)
def test_whole_columns_and_rows_are_graded_in_the_extended_scoring(position: str, extended: Range) -> None:
    """The original fails on them."""
    assert read_ranges(position, sheet="", scoring="extended") == (extended,)
    with pytest.raises(ValueError, match="`scoring: extended`"):
        read_ranges(position, sheet="", scoring="skillopt")


def test_the_answer_sheet_holds_for_every_range_that_names_none() -> None:
    """Not for the first of a list alone."""
    found = read_ranges("A1,B1,Other!C1", sheet="Data", scoring="skillopt")
    assert [each.sheet for each in found] == ["Data", "Data", "Other"]


@each_of("position", ["", " , ", "A", "1", "A0", "A1:", "A1:B2:C3", "XFE1", "A1048577", "total", "Ä1"])
@each_of("scoring", ["skillopt", "extended"])
def test_a_position_that_names_no_cell_is_refused(position: str, scoring: str) -> None:
    """With what is wrong; nothing passes because nothing is compared."""
    with pytest.raises(ValueError, match="`answer_position`"):
        read_ranges(position, sheet="", scoring=scoring)  # type: ignore[arg-type]


@given(st.integers(1, 16_384))
def test_column_names_are_read_as_they_are_written(column: int) -> None:
    """Both ways."""
    [found] = read_ranges(f"{column_name(column)}1", sheet="", scoring="skillopt")
    assert found.left == found.right == column


@pytest.mark.parametrize(
    ("reply", "skillopt", "extended"),
    [
        ("```python\nx = 1\n```", "x = 1", "x = 1"),
        ("First:\n```\nx = 1\n```\nthen\n```python\ny = 2\n```", "x = 1", "x = 1"),
        ("x = 1", "x = 1", "x = 1"),
        ("```python\nx = 1", "```python\nx = 1", "x = 1"),
        ("", "", ""),
        (" \n", "", ""),
        ("```python\n\n```", "", ""),
        ("```python\n    x = 1\n```", "    x = 1", "    x = 1"),
    ],
)
def test_the_script_is_the_first_fenced_block(reply: str, skillopt: str, extended: str) -> None:
    """A block that is never closed counts only in the extended reading."""
    assert code_in(reply, "skillopt") == skillopt
    assert code_in(reply, "extended") == extended
