"""
Writes the OfficeQA demo: made bulletins with tables, and questions whose answers take more than copying a figure.

    python tests/support/make_officeqa_demo.py configs/demo/officeqa

Writes items.jsonl and docs/ there. All figures are invented; the expected answers are made here from the raw values.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from attrs import frozen

COUNTS = {  # kind: items in train, val, test
    "unit": (8, 6, 6),
    "revision": (7, 6, 6),
    "total": (7, 5, 5),
    "change": (7, 5, 5),
    "fiscal year": (6, 4, 4),
    "rate": (5, 4, 4),
}
YEARS = range(1936, 1941)
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
SOURCES = ("Customs duties", "Excise taxes", "Income taxes")
AGENCIES = ("Public works", "Farm aid", "Rural roads")
STOCKS = ("Gold stock", "Silver stock")
BALANCES = ("Budget deficit", "Relief outlay", "Interest outlay")
_NOTES = (
    "Figures are rounded and may not add up to totals that are printed elsewhere.",
    "Receipts are those of the daily statements, after refunds.",
    "Outlays of agencies include loans that were repaid within the month.",
    "A figure that is corrected later is printed again in the next bulletin.",
    "Stocks are valued on the last working day of the month.",
    "This bulletin is made, and so are its figures.",
)
Made = tuple[str, str, tuple[str, ...]]


def name_of(year: int, half: int) -> str:
    """The bulletin of a half year, 0 or 1, by the month in which it comes out."""
    return f"treasury_bulletin_{year}_{'06' if half == 0 else '12'}.txt"


@frozen
class Year:
    """Everything that is known of a year: figures of twelve months, and of the year as a whole."""

    number: int

    def monthly(self, what: str, low: int, high: int) -> list[int]:
        """Twelve figures; a text seed is the same in every process and on every machine."""
        draw = random.Random(f"officeqa-demo/{self.number}/{what}")
        return [draw.randint(low, high) for _ in MONTHS]

    def receipts(self, source: str) -> list[int]:
        """Tenths of a million dollars."""
        return self.monthly(source, 180, 960)

    def spent(self, agency: str) -> list[int]:
        """Hundreds of thousands of dollars."""
        return self.monthly(agency, 25, 480)

    def stock(self, metal: str) -> list[int]:
        """Tenths of a million dollars."""
        return self.monthly(metal, 104_000, 139_000)

    def debt(self) -> list[tuple[int, int]]:
        """Tenths of a million dollars: as printed first, and as revised half a year later."""
        moved = self.monthly("revision", 11, 89)
        return [(first, first + by) for first, by in zip(self.monthly("debt", 380_000, 420_000), moved, strict=True)]

    def rate(self) -> list[int]:
        """Thousandths of a per cent."""
        return self.monthly("rate", 11, 420)

    def balance(self, what: str) -> tuple[int, int]:
        """Tenths of a million dollars, of the calendar and of the fiscal year."""
        calendar, fiscal, *_ = self.monthly(what, 11_000, 49_000)
        return calendar, fiscal


def tenths(value: int) -> str:
    """1,234.5."""
    return f"{value / 10:,.1f}"


def bulletin(year: int, half: int) -> str:
    """The text of one bulletin."""
    known, months = Year(year), range(half * 6, half * 6 + 6)

    def monthly(name: str, figures: Sequence[str]) -> list[str]:
        return [f"| {name}, {MONTHS[month]} {year} | {figures[month]} |" for month in months]

    receipts = [row for name in SOURCES for row in monthly(name, [*map(tenths, known.receipts(name))])]
    spent = [row for name in AGENCIES for row in monthly(name, [f"{each * 100:,}" for each in known.spent(name)])]
    stocks = [row for name in STOCKS for row in monthly(name, [*map(tenths, known.stock(name))])]
    debt = monthly("Public debt", [tenths(first) for first, _ in known.debt()])
    if half:
        debt += [
            f"| Public debt, {MONTHS[month]} {year} (revised) | {tenths(revised)} |"
            for month, (_, revised) in enumerate(known.debt()[:6])
        ]
    tables = [
        ("Receipts by source (in millions of dollars)", receipts),
        ("Outlays of agencies (in thousands of dollars)", spent),
        ("Stocks at the end of the month (in millions of dollars)", stocks),
        ("Public debt at the end of the month (in millions of dollars)", debt),
        ("Rates (in per cent)", monthly("Treasury bills", [f"{each / 1000:.3f}" for each in known.rate()])),
    ]
    if half:
        tables.append(("The year as a whole (in millions of dollars)", [*_whole(known)]))
    draw = random.Random(f"officeqa-demo/notes/{year}/{half}")
    parts = [f"TREASURY BULLETIN\n{MONTHS[half * 6 + 5]} {year}"]
    for heading, rows in tables:
        notes = "\n".join(f"Note. {note}" for note in draw.sample(_NOTES, 3))
        parts.append("\n".join([notes, "", heading, "| Item | Amount |", "| --- | --- |", *rows]))
    return "\n\n".join(parts) + "\n"


def _whole(known: Year) -> Iterator[str]:
    for name in BALANCES:
        calendar, fiscal = known.balance(name)
        yield f"| {name}, calendar year {known.number} | {tenths(calendar)} |"
        yield f"| {name}, fiscal year ended June 30, {known.number} | {tenths(fiscal)} |"


def _unit(draw: random.Random) -> Made:
    year, month, agency = draw.choice(YEARS), draw.randrange(12), draw.choice(AGENCIES)
    question = f"How many millions of dollars were spent on {agency.lower()} in {MONTHS[month]} {year}?"
    return question, tenths(Year(year).spent(agency)[month]), (name_of(year, month // 6),)


def _revision(draw: random.Random) -> Made:
    year, month = draw.choice(YEARS), draw.randrange(6)
    question = f"What was the public debt at the end of {MONTHS[month]} {year}, in millions of dollars?"
    return question, tenths(Year(year).debt()[month][1]), (name_of(year, 0), name_of(year, 1))


def _total(draw: random.Random) -> Made:
    year, half, source = draw.choice(YEARS), draw.randrange(2), draw.choice(SOURCES)
    when = f"the {('first', 'second')[half]} half of {year}"
    question = f"What were the receipts from {source.lower()} in {when}, in millions of dollars?"
    return question, tenths(sum(Year(year).receipts(source)[half * 6 : half * 6 + 6])), (name_of(year, half),)


def _change(draw: random.Random) -> Made:
    """Three in four are decreases."""
    falls = draw.random() < 0.75
    while True:
        year, half, metal = draw.choice(YEARS), draw.randrange(2), draw.choice(STOCKS)
        first, last = sorted(draw.sample(range(half * 6, half * 6 + 6), 2))
        figures = Year(year).stock(metal)
        change = figures[last] - figures[first]
        if change and (change < 0) == falls:
            break
    months = f"from {MONTHS[first]} {year} to {MONTHS[last]} {year}"
    question = f"By how much did the {metal.lower()} change {months}, in millions of dollars?"
    return question, f"{change / 10:.1f}", (name_of(year, half),)


def _fiscal(draw: random.Random) -> Made:
    year, what = draw.choice(YEARS), draw.choice(BALANCES)
    question = f"What was the {what.lower()} of the fiscal year {year}, in millions of dollars?"
    return question, tenths(Year(year).balance(what)[1]), (name_of(year, 1),)


def _rate(draw: random.Random) -> Made:
    """Of these no document is named: all can be read."""
    year, month = draw.choice(YEARS), draw.randrange(12)
    question = f"What was the rate of treasury bills in {MONTHS[month]} {year}, in per cent?"
    return question, f"{Year(year).rate()[month] / 1000:.3f}", ()


_MAKERS: dict[str, Callable[[random.Random], Made]] = {
    "unit": _unit, "revision": _revision, "total": _total, "change": _change, "fiscal year": _fiscal, "rate": _rate,
}  # fmt: skip


def make_items() -> list[dict[str, object]]:
    """All items, no two with the same question."""
    rows: list[dict[str, object]] = []
    asked: set[str] = set()
    for kind, counts in COUNTS.items():
        draw = random.Random(f"officeqa-demo/{kind}")
        for split, count in zip(("train", "val", "test"), counts, strict=True):
            for _ in range(count):
                made = _MAKERS[kind](draw)
                while made[0] in asked:
                    made = _MAKERS[kind](draw)
                asked.add(made[0])
                rows.append(_item(f"UID{len(rows) + 1:04}", kind, split, made))
    return rows


def _item(name: str, kind: str, split: str, made: Made) -> dict[str, object]:
    question, answer, files = made
    pages = [f"https://example.org/{Path(file).stem}?page=2" for file in files]
    return {"uid": name, "question": question, "answer": answer, "source_files": [*files], "source_docs": pages,
            "category": kind, "split": split}  # fmt: skip


def make_documents() -> dict[str, str]:
    """The texts of all bulletins by file name."""
    return {name_of(year, half): bulletin(year, half) for year in YEARS for half in (0, 1)}


def make(folder: Path) -> Path:
    """The folder, now with items.jsonl and docs/."""
    (folder / "docs").mkdir(parents=True, exist_ok=True)
    for name, text in make_documents().items():
        (folder / "docs" / name).write_text(text, encoding="utf-8", newline="\n")
    lines = [json.dumps(row) + "\n" for row in make_items()]
    (folder / "items.jsonl").write_text("".join(lines), encoding="utf-8", newline="\n")
    return folder


if __name__ == "__main__":
    make(Path(sys.argv[1]))
