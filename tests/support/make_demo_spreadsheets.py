"""
Writes the workbooks of the SpreadsheetBench demo: small tables that are to be changed by a script.

    python tests/support/make_demo_spreadsheets.py configs/demo/spreadsheetbench

What is expected is made here from the raw values, not by the simulated target's scripts. The same bytes on any machine.
"""

from __future__ import annotations

import json
import random
import sys
import zipfile
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

from openpyxl import Workbook, load_workbook
from openpyxl.worksheet.worksheet import Worksheet

COUNTS = {  # kind: items in train, val, test
    "total": (4, 3, 3),
    "date": (4, 3, 3),
    "product": (4, 2, 2),
    "entries": (3, 2, 2),
    "words": (3, 2, 2),
    "errors": (3, 2, 2),
    "text": (3, 2, 2),
}
SPLITS = ("train", "val", "test")
SCHEMES = (("{n}_{id}_input.xlsx", "{n}_{id}_answer.xlsx"), ("{n}_{id}_init.xlsx", "{n}_{id}_golden.xlsx"),
           ("initial.xlsx", "golden.xlsx"))  # fmt: skip
_SHEETS = ("Orders", "Stock", "Deliveries", "Sales")
_GOODS = ("Pens", "Ink", "Paper", "Tape", "Glue", "Rulers", "Staples", "Folders")
_STATES = ("open", "paid", "late")
_WORDS = ("checked", "final", "draft", "north", "south")
_EPOCH = (2024, 1, 1, 0, 0, 0)

Change = Callable[[Worksheet], None]
Made = tuple[str, str, str, Change]  # instruction, kind of task, answer position, what is to be done


def table(draw: random.Random, sheet: Worksheet, last: int) -> None:
    """Fills a sheet with rows of goods, up to the last row."""
    sheet.append(["Goods", "Price", "Count", "Day", "State", "Worth"])
    for _ in range(2, last + 1):
        day = datetime(2024, 1, 1) + timedelta(days=draw.randrange(300))
        sheet.append([draw.choice(_GOODS), draw.randrange(100, 900) / 100, draw.randint(1, 40), day,
                      draw.choice(_STATES)])  # fmt: skip
    for row in draw.sample(range(2, last + 1), 3):
        sheet.cell(row, 5).value = draw.choice((" {} ", "{} ")).format(draw.choice(_STATES).upper())


def _total(sheet: Worksheet, last: int, _draw: random.Random) -> Made:
    def change(on: Worksheet) -> None:
        on["H2"] = sum(on.cell(row, 3).value for row in range(2, last + 1))

    return f"Sum up the column Count of the sheet {sheet.title} and put the total into H2.", "Cell", "H2", change


def _date(sheet: Worksheet, last: int, _draw: random.Random) -> Made:
    def change(on: Worksheet) -> None:
        on["H3"] = max(on.cell(row, 4).value for row in range(2, last + 1))

    asked = f"Find the latest date in the column Day of the sheet {sheet.title} and put it into H3."
    return asked, "Cell", "H3", change


def _product(sheet: Worksheet, last: int, _draw: random.Random) -> Made:
    def change(on: Worksheet) -> None:
        for row in range(2, last + 1):
            on.cell(row, 6).value = on.cell(row, 2).value * on.cell(row, 3).value

    asked = f"Fill the column Worth of the sheet {sheet.title} with Price times Count, in every row."
    return asked, "Sheet", f"F2:F{last}", change


def _entries(sheet: Worksheet, last: int, _draw: random.Random) -> Made:
    def change(on: Worksheet) -> None:
        on["H4"] = last - 1

    return f"Write the number of entries of the sheet {sheet.title} into its cell H4.", "Cell", "H4", change


def _words(sheet: Worksheet, last: int, draw: random.Random) -> Made:
    word = draw.choice([str(sheet.cell(row, 5).value) for row in range(2, last + 1) if " " in sheet.cell(row, 5).value])
    word = word.strip().lower()

    def change(on: Worksheet) -> None:
        on["H5"] = sum(str(on.cell(row, 5).value).strip().lower() == word for row in range(2, last + 1))

    asked = f"Count the rows of the sheet {sheet.title} whose State is {word} and put the number into H5."
    return asked, "Cell", "H5", change


def _errors(sheet: Worksheet, last: int, draw: random.Random) -> Made:
    for row in draw.sample(range(2, last + 1), 2):
        sheet.cell(row, 2).value = draw.choice(("#N/A", "#DIV/0!", "unknown"))

    def change(on: Worksheet) -> None:
        prices = [on.cell(row, 2).value for row in range(2, last + 1)]
        on["H6"] = sum(price for price in prices if isinstance(price, float))

    asked = f"Add up the numbers in the column Price of the sheet {sheet.title} and put the result into H6."
    return asked, "Cell", "H6", change


def _text(sheet: Worksheet, _last: int, draw: random.Random) -> Made:
    word = draw.choice(_WORDS)

    def change(on: Worksheet) -> None:
        on["H7"] = word

    return f"Put the text {word} into H7 of the sheet {sheet.title}.", "Cell", "H7", change


MAKERS: Mapping[str, Callable[[Worksheet, int, random.Random], Made]] = {
    "total": _total, "date": _date, "product": _product, "entries": _entries, "words": _words, "errors": _errors,
    "text": _text,
}  # fmt: skip


def make_all(folder: Path) -> list[dict[str, Any]]:
    """Writes the workbooks and `dataset.json`; returns its entries."""
    records = []
    for kind, counts in COUNTS.items():
        for number in range(sum(counts)):
            split = SPLITS[(number >= counts[0]) + (number >= counts[0] + counts[1])]
            name = f"{kind}-{number + 1:02d}"
            records.append({**_make(folder, kind, name, len(records)), "split": split})
    lines = ",\n".join(json.dumps(record) for record in records)
    (folder / "dataset.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    return records


def _make(folder: Path, kind: str, name: str, number: int) -> dict[str, Any]:
    draw = random.Random(f"demo {name}")
    book = Workbook()
    other, wanted = draw.sample(_SHEETS, 2)
    book.active.title = other
    table(draw, book.active, 4)
    sheet, last = book.create_sheet(wanted), draw.randint(8, 14)
    table(draw, sheet, last)
    instruction, what, position, change = MAKERS[kind](sheet, last, draw)
    if number % 4 == 0:
        sheet.merge_cells("J1:K2")
    given, gold = (scheme.format(n=1, id=name) for scheme in SCHEMES[number % 3])
    place = folder / "spreadsheet" / name
    place.mkdir(parents=True, exist_ok=True)
    (place / given).write_bytes(_bytes(book))
    changed = load_workbook(place / given)
    change(changed[wanted])
    (place / gold).write_bytes(_bytes(changed))
    return {
        "id": name,
        "instruction": instruction,
        "instruction_type": f"{what}-Level Manipulation",
        "spreadsheet_path": f"spreadsheet/{name}",
        "answer_position": position,
        "answer_sheet": wanted,
    }


def _bytes(book: Workbook) -> bytes:
    """The workbook as a file without the time of its making, and without a theme, which would be most of it."""
    book.loaded_theme = b'<a:theme xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" name="none"/>'
    book.properties.created = book.properties.modified = datetime(2024, 1, 1)
    made, packed = BytesIO(), BytesIO()
    book.save(made)
    with zipfile.ZipFile(made) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "docProps/core.xml":
                content = _without_time(content)
            new.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def _without_time(core: bytes) -> bytes:
    head, mark, tail = core.partition(b"<dcterms:modified")
    return head + b"</cp:coreProperties>" if mark and tail else core


if __name__ == "__main__":
    make_all(Path(sys.argv[1]))
