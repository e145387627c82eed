"""Every cell is text; an error names file and line; lists stand in cells as JSON or Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillopt_es.adapters.environments.csv_rows import read_csv_rows, texts_of
from skillopt_es.errors import DataError


def rows_of(tmp_path: Path, text: str) -> list[tuple[str, dict[str, object]]]:
    """What a file with this text holds."""
    file = tmp_path / "rows.csv"
    file.write_text(text, encoding="utf-8")
    return [(where.rpartition(":")[2], dict(row)) for where, row in read_csv_rows(file)]


def test_cells_are_text_and_know_their_line(tmp_path: Path) -> None:
    """Also after a cell of two lines, and an empty one."""
    assert rows_of(tmp_path, 'a, b \n1,"x\ny"\n\n2,z\n') == [
        ("2", {"a": "1", "b": "x\ny"}),
        ("5", {"a": "2", "b": "z"}),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [("a,a\n1,2\n", ":1: the column 'a' is there twice"), ("a,b\n1\n", ":2: this row has 1 cells"),
     ('a\n"x" y\n', ":2: not CSV")],
)  # fmt: skip
def test_a_file_that_is_wrong_says_where(tmp_path: Path, text: str, said: str) -> None:
    """And what to do."""
    with pytest.raises(DataError, match=said) as refused:
        rows_of(tmp_path, text)
    assert refused.value.hint


@pytest.mark.parametrize(
    ("cell", "texts"),
    [('["a", "b"]', ["a", "b"]), ("['a', \"b\"]", ["a", "b"]), (["a"], ["a"]), ("a", None), ("[]", None),
     ("[1]", None), ("['a' 'b']", None), ("1,000", None), ("[open('x')]", None), ("[" * 5000, None)],
)  # fmt: skip
def test_a_list_in_a_cell_is_read_and_nothing_is_evaluated(cell: object, texts: list[str] | None) -> None:
    """JSON, or Python's way to print a list of texts."""
    assert texts_of(cell) == texts
