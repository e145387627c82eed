"""Made SpreadsheetBench data: small workbooks with dates, errors, merged cells, formulas and several sheets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

from support.extras import needs

Sheets = Mapping[str, Mapping[str, Any]]

SALES: Sheets = {
    "Sales": {
        "A1": "Item", "B1": "Price", "C1": "Sold", "D1": "Total",
        "A2": "Pens", "B2": 1.2, "C2": datetime(2024, 1, 15), "A3": "Ink", "B3": 7.255, "C3": datetime(2024, 2, 1),
        "A4": "Paper", "B4": "4.50", "C4": date(2024, 3, 1), "A5": "Tape", "B5": "#N/A", "C5": time(9, 30),
        "A6": "Glue", "B6": 3, "C6": True, "A7": "Rulers", "B7": "=SUM(B2:B6)", "A9": "merged A9:C9",
    },
    "Other sheet": {"A1": "two\nlines", "B2": 42},
}  # fmt: skip
NAMINGS = {
    "input": ("{n}_{id}_input.xlsx", "{n}_{id}_answer.xlsx"),
    "init": ("{n}_{id}_init.xlsx", "{n}_{id}_golden.xlsx"),
    "bare": ("initial.xlsx", "golden.xlsx"),
}


def workbook(sheets: Sheets, *, merged: Sequence[str] = ()) -> bytes:
    """An xlsx file with these cells; `merged` are ranges of the first sheet."""
    book = needs("openpyxl", extra="spreadsheet").Workbook()
    book.remove(book.active)
    for name, cells in sheets.items():
        sheet = book.create_sheet(name)
        for place, value in cells.items():
            sheet[place] = value
    for each in merged:
        book.worksheets[0].merge_cells(each)
    held = BytesIO()
    book.save(held)
    return held.getvalue()


@cache
def sales() -> bytes:
    """The workbook that most tests start from."""
    return workbook(SALES, merged=["A9:C9"])


@cache
def sales_with(**cells: Any) -> bytes:
    """The same one with further cells on its first sheet."""
    return workbook({**SALES, "Sales": {**SALES["Sales"], **cells}}, merged=["A9:C9"])


def write_task(
    root: Path, name: str, cases: Sequence[tuple[bytes, bytes]], *, naming: str = "input", numbers: Sequence[int] = ()
) -> None:
    """The workbooks of one task below `root`, in one of the three naming schemes."""
    folder = root / "spreadsheet" / name
    folder.mkdir(parents=True, exist_ok=True)
    given, gold = NAMINGS[naming]
    for number, (before, after) in zip(numbers or range(1, len(cases) + 1), cases, strict=True):
        (folder / given.format(n=number, id=name)).write_bytes(before)
        (folder / gold.format(n=number, id=name)).write_bytes(after)


def record(name: str, **fields: Any) -> dict[str, Any]:
    """One entry of dataset.json."""
    return {
        "id": name,
        "instruction": f"Put 5 into D2 ({name}).",
        "instruction_type": "Cell-Level Manipulation",
        "spreadsheet_path": f"spreadsheet/{name}",
        "answer_position": "D2",
        **fields,
    }


def write_records(root: Path, records: Sequence[Mapping[str, Any]]) -> Path:
    """dataset.json in `root`."""
    path = root / "dataset.json"
    path.write_text(json.dumps(records), encoding="utf-8")
    return path
