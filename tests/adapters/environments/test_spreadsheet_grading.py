"""What is told of a workbook's cells stays short, however long the texts in them are."""

from __future__ import annotations

from skillopt_es.adapters.environments.spreadsheetbench.grading import Cell, Verdict, report, wrong_cells

LONG = "a" * 150_000 + "b" * 150_000


def verdict(cells: int, found: str = LONG) -> Verdict:
    """So many wrong cells, each with a long text in place of another."""
    wrong = [Cell(place=("Sheet1", row, 1), gold=LONG + "!", found=found, right=False) for row in range(1, cells + 1)]
    return Verdict(cells=tuple(wrong), blank=2)


def test_a_long_text_in_a_cell_is_cut_in_its_middle() -> None:
    """Its ends are told, in the feedback, the report and the reason."""
    for told in (wrong_cells(verdict(1)), report(verdict(1)), verdict(1).reason):
        assert len(told) < 3000
        assert "A1" in told
        assert "aaaa\n[… 299002 characters left out …]\nbbbb" in told
    assert wrong_cells(verdict(1)).endswith("bbb'\n2 graded cells are right.")
    assert "bbb!" in report(verdict(1))
    assert "bbb!" in verdict(1).reason


def test_many_long_cells_are_cut_as_a_whole() -> None:
    """The first, the last and the sum are there."""
    told = wrong_cells(verdict(60))
    assert len(told) < 13_000
    assert told.startswith("- Sheet1!A1 holds 'aaa")
    assert told.endswith("- and 10 more\n2 graded cells are right.")
    assert len(report(verdict(60))) < 13_000


def test_ordinary_cells_are_told_whole() -> None:
    """One line each."""
    assert wrong_cells(verdict(2, "7")) == "- Sheet1!A1 holds '7'\n- Sheet1!A2 holds '7'\n2 graded cells are right."
