"""
Made bulletins and questions for OfficeQA: three text files, one of them parsed, seven questions in each split.

    python tests/support/made_officeqa.py FOLDER

All figures are invented. The same bytes on any machine.
"""

from __future__ import annotations

import csv
import io
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SPLITS = ("train", "val", "test")
MONTHS = ("January", "February", "March", "April", "May", "June", "July")
YEARS = (1939, 1940, 1941)
PARSED_YEAR = 1941
PAGE = 2
COLUMNS = ("uid", "question", "answer", "source_docs", "source_files", "difficulty")


def file_of(year: int) -> str:
    """The name of a bulletin's text."""
    return f"treasury_bulletin_{year}_01.txt"


def figures(year: int) -> dict[str, tuple[str, str]]:
    """Receipts and expenditures of each month, as they are printed."""
    draw = random.Random(year)
    return {
        month: (f"{draw.randint(1000, 9999):,}.{draw.randint(0, 9)}", str(draw.randint(100, 999))) for month in MONTHS
    }


def bulletin(year: int) -> str:
    """The text of a bulletin."""
    rows = "\n".join(f"| {month} | {first} | {second} |" for month, (first, second) in figures(year).items())
    prose = "\n".join(f"Note {number}: this bulletin is made, and so are its figures." for number in range(1, 90))
    return (
        f"TREASURY BULLETIN\nJanuary {year}\n\n{prose}\n\nReceipts and expenditures (in millions of dollars)\n"
        f"| Month | Receipts | Expenditures |\n| --- | --- | --- |\n{rows}\n"
    )


def parsed(year: int) -> dict[str, Any]:
    """The same as parsed pages: a title on the first, the table on the second."""
    cells = "".join(
        f"<tr><td>{month}</td><td>{first}</td><td>{second}</td></tr>"
        for month, (first, second) in figures(year).items()
    )
    table = f"<table><tr><th>Month</th><th>Receipts</th><th>Expenditures</th></tr>{cells}</table>"
    elements = [
        {"type": "title", "content": f"TREASURY BULLETIN {year}", "bbox": [{"page_id": PAGE - 1}]},
        {
            "type": "text",
            "content": "Receipts &amp; expenditures\r\n(in millions of dollars)",
            "bbox": [{"page_id": PAGE}],
        },
        {"type": "table", "content": table, "bbox": [{"page_id": PAGE, "coord": [0, 0, 1, 1]}]},
    ]
    return {"document": {"elements": elements}}


def questions(split: str) -> list[dict[str, str]]:
    """The rows of one split; the last asks for a difference between two bulletins."""
    place = SPLITS.index(split)
    rows = [
        {
            "uid": f"UID{place}{number:03}",
            "question": f"What were the {kind} of {MONTHS[number]} in the bulletin of {YEARS[(number + place) % 3]}?",
            "answer": figures(YEARS[(number + place) % 3])[MONTHS[number]][number % 2],
            "source_docs": f"https://example.org/{YEARS[(number + place) % 3]}?page={PAGE}",
            "source_files": file_of(YEARS[(number + place) % 3]),
            "difficulty": "easy",
        }
        for number, kind in enumerate(["receipts", "expenditures"] * 3)
    ]
    month = MONTHS[place]
    first, last = (int(figures(year)[month][1]) for year in (YEARS[0], YEARS[2]))
    rows.append(
        {
            "uid": f"UID{place}006",
            "question": f"By how much did the expenditures of {month} change from {YEARS[0]} to {YEARS[2]}?",
            "answer": str(last - first),
            "source_docs": f"https://example.org/{YEARS[0]}?page={PAGE}\r\nhttps://example.org/{YEARS[2]}?page={PAGE}",
            "source_files": f"{file_of(YEARS[0])}\r\n{file_of(YEARS[2])}",
            "difficulty": "hard",
        }
    )
    return rows


def csv_of(rows: Sequence[dict[str, str]]) -> str:
    """The rows as the published CSV has them."""
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, COLUMNS)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def write_officeqa(folder: Path) -> Path:
    """The folder, now with `split/<split>/questions.csv` and the bulletins under `docs/`."""
    texts, pages = folder / "docs" / "transformed", folder / "docs" / "jsons"
    texts.mkdir(parents=True)
    pages.mkdir()
    for year in YEARS:
        (texts / file_of(year)).write_text(bulletin(year), encoding="utf-8", newline="")
    name = Path(file_of(PARSED_YEAR)).with_suffix(".json")
    (pages / name).write_text(json.dumps(parsed(PARSED_YEAR), indent=1), encoding="utf-8", newline="")
    for split in SPLITS:
        (folder / "split" / split).mkdir(parents=True)
        (folder / "split" / split / "questions.csv").write_text(csv_of(questions(split)), encoding="utf-8", newline="")
    return folder


if __name__ == "__main__":
    write_officeqa(Path(sys.argv[1]))
