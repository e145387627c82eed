"""Tables as lines of cells: aligned, and folded into a width where there is one."""

from __future__ import annotations

from collections.abc import Sequence

from skillopt_es.presenting.escaping import shown_inline

GAP = 2
_NARROWEST = 12

Row = Sequence[str]


def laid_out(
    headers: Row, rows: Sequence[Row], *, right: Sequence[int] = (), width: int | None = None
) -> list[list[Row]]:
    """
    The lines of each row, the headers first, as cells of one width a column; columns in `right` are right-aligned.

    Where it is wider than `width`, headers take two lines and texts are folded, the longest first. Numbers never are.
    """
    shown = [[shown_inline(cell) for cell in row] for row in (headers, *rows)]
    widths = _widths(shown, right, width)
    return [_lines(row, widths, right) for row in shown]


def columns_of(text: str) -> int:
    """How many columns a text takes on a terminal."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _widths(rows: Sequence[Row], right: Sequence[int], width: int | None) -> list[int]:
    natural = [max(map(columns_of, column)) for column in zip(*rows, strict=True)]
    if width is None or _whole(natural) <= width:
        return natural
    words = [max((columns_of(word) for word in header.split()), default=0) for header in rows[0]]
    values = [max((columns_of(row[index]) for row in rows[1:]), default=0) for index in range(len(natural))]
    widths = [max(pair) for pair in zip(words, values, strict=True)]
    texts = [index for index in range(len(widths)) if index not in right]
    while _whole(widths) > width and texts:
        widest = max(texts, key=lambda index: widths[index])
        if widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
    return widths


def _whole(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _lines(row: Row, widths: Sequence[int], right: Sequence[int]) -> list[Row]:
    cells = [_folded(cell, width) for cell, width in zip(row, widths, strict=True)]
    return [
        [
            _padded(lines[at] if at < len(lines) else "", width, right=index in right)
            for index, (lines, width) in enumerate(zip(cells, widths, strict=True))
        ]
        for at in range(max(map(len, cells)))
    ]


def _folded(cell: str, width: int) -> list[str]:
    if columns_of(cell) <= width:
        return [cell]
    from rich.console import Console
    from rich.text import Text

    return [line.plain.rstrip() for line in Text(cell).wrap(Console(width=width), width)]


def _padded(cell: str, width: int, *, right: bool) -> str:
    room = " " * (width - columns_of(cell))
    return room + cell if right else cell + room
