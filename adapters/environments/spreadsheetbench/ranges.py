"""Answer positions: which cells of which sheets are graded."""

from __future__ import annotations

import re
from string import ascii_uppercase

from attrs import frozen

from skillopt_es.adapters.environments.spreadsheetbench.cells import Scoring

MOST_ROWS, MOST_COLUMNS = 1_048_576, 16_384  # Excel's own: a whole column or row of a range has so many
_CELL = re.compile(r"\$?([A-Za-z]+)\$?([0-9]+)$")
_COLUMN = re.compile(r"\$?([A-Za-z]+)$")
_ROW = re.compile(r"\$?([0-9]+)$")


@frozen(kw_only=True)
class Range:
    """A rectangle of cells on a sheet, both ends included; without a sheet it is on the gold workbook's first."""

    sheet: str
    left: int
    top: int
    right: int
    bottom: int

    def on(self, sheet: str) -> Range:
        """The same cells; on this sheet where none is named."""
        return (
            self
            if self.sheet
            else Range(sheet=sheet, left=self.left, top=self.top, right=self.right, bottom=self.bottom)
        )

    def holds(self, row: int, column: int) -> bool:
        """Whether a cell is one of them."""
        return self.top <= row <= self.bottom and self.left <= column <= self.right

    @property
    def size(self) -> int:
        """How many cells they are."""
        return (self.right - self.left + 1) * (self.bottom - self.top + 1)


def read_ranges(position: str, *, sheet: str, scoring: Scoring) -> tuple[Range, ...]:
    """
    The ranges of an answer position, each on the sheet that it names, else on `sheet`; raises ValueError.

    Whole columns and rows can be graded in the extended scoring only. There, lower-case ranges mean what they say; the
    original takes a1:b2 for AG1:AH2.
    """
    parts = [part.strip() for part in _split(position, ",")]
    ranges = tuple(_range(part, sheet=sheet, scoring=scoring) for part in parts if part)
    if not ranges:
        raise ValueError("`answer_position` is empty: nothing would be graded")
    return ranges


def column_name(column: int) -> str:
    """A, B, …, Z, AA, …"""
    name = ""
    while column:
        column, letter = divmod(column - 1, 26)
        name = ascii_uppercase[letter] + name
    return name


def _range(text: str, *, sheet: str, scoring: Scoring) -> Range:
    named, mark, cells = _cut(text, "!")
    if not mark:
        named, cells = "", text
    named = _unquoted(named) or sheet.strip()
    first, colon, last = _unquoted(cells).replace(" ", "").partition(":")
    corners = [_corner(first, text, scoring, several=bool(colon))]
    corners.append(_corner(last, text, scoring, several=True) if colon else corners[0])
    columns = sorted(column for corner in corners for column in corner[0])
    rows = sorted(row for corner in corners for row in corner[1])
    if columns[0] < 1 or rows[0] < 1 or columns[-1] > MOST_COLUMNS or rows[-1] > MOST_ROWS:
        raise ValueError(f"`answer_position` names cells that no sheet has: {text!r}")
    return Range(sheet=named, left=columns[0], top=rows[0], right=columns[-1], bottom=rows[-1])


def _corner(cell: str, text: str, scoring: Scoring, *, several: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The columns and rows that one side of a range reaches to."""
    letters = _as_read(cell, scoring, several=several)
    if found := _CELL.match(letters):
        return (_column(found[1]),), (int(found[2]),)
    if scoring == "extended" and several:
        if found := _COLUMN.match(letters):
            return (_column(found[1]),), (1, MOST_ROWS)
        if found := _ROW.match(letters):
            return (1, MOST_COLUMNS), (int(found[1]),)
    whole = several and (_COLUMN.match(letters) or _ROW.match(letters))
    raise ValueError(
        f"`answer_position` has whole columns or rows, which only `scoring: extended` grades: {text!r}"
        if whole
        else f"`answer_position` cannot be read: {text!r}"
    )


def _as_read(cell: str, scoring: Scoring, *, several: bool) -> str:
    """The corner with the letters that count: in ranges the original takes lower-case ones as they are."""
    return cell if scoring == "skillopt" and several else cell.upper()


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


def _unquoted(text: str) -> str:
    bare = text.strip()
    if len(bare) > 1 and bare[0] == bare[-1] == "'":
        return bare[1:-1].replace("''", "'").strip()
    return bare.strip("'\"")


def _split(text: str, mark: str) -> list[str]:
    """The parts between marks that are outside single quotes; with unbalanced quotes, between all marks."""
    if text.count("'") % 2:
        return text.split(mark)
    parts, quoted = [""], False
    for letter in text:
        quoted ^= letter == "'"
        if letter == mark and not quoted:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _cut(text: str, mark: str) -> tuple[str, str, str]:
    head, *tail = _split(text, mark)
    return (head, mark, mark.join(tail)) if tail else (text, "", "")
