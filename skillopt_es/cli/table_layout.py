"""Tables as lines of cells: aligned, and folded into a width where there is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skillopt_es.presenting.escaping import shown_inline

GAP = 2
_NARROWEST = 12

Row = Sequence[str]


def laid_out(
    headers: Row, rows: Sequence[Row], *, right: Sequence[int] = (), width: int | None = None
) -> list[list[Row]]:
    """
    The lines of each row, the headers first, as cells of one width a column; columns in `right` are right-aligned.

    Where it is wider than `width`, headers are folded, then texts, the longest first, and then what is right-aligned,
    all between words. Only where that is not enough is a word broken, in a text; a number never is.
    """
    shown = [[shown_inline(cell) for cell in row] for row in (headers, *rows)]
    widths = _widths(shown, right, width)
    return [_lines(row, widths, right) for row in shown]


def table_width(headers: Row, rows: Sequence[Row]) -> int:
    """How wide a table is where nothing is folded."""
    return _whole(_widths([[shown_inline(cell) for cell in row] for row in (headers, *rows)], (), None))


def folded_width(headers: Row, rows: Sequence[Row], *, right: Sequence[int] = ()) -> int:
    """How narrow a table can be where only headers and texts are folded, and no word is broken."""
    shown = [[shown_inline(cell) for cell in row] for row in (headers, *rows)]
    widths = _headers_folded(shown)
    return _whole([widths[index] if index in right else least for index, least in enumerate(_least(shown, widths))])


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
    widths, words = _headers_folded(rows), _words(rows)
    texts = [index for index in range(len(widths)) if index not in right]
    steps: list[tuple[Sequence[int], Sequence[int]]]
    if _whole(words) <= width:
        steps = [(texts, _least(rows, widths)), (right, words), (texts, words)]
    else:  # a word has to break, and that is one of a text
        steps = [(texts, [min(_NARROWEST, wide) for wide in widths]), (right, words)]
    for columns, narrowest in steps:
        _shrink(widths, {index: narrowest[index] for index in columns}, width)
    return widths


def _headers_folded(rows: Sequence[Row]) -> list[int]:
    """The widths where only headers are folded."""
    heads = [max(columns_of(word) for word in ("", *header.split())) for header in rows[0]]
    values = [max((columns_of(row[index]) for row in rows[1:]), default=0) for index in range(len(heads))]
    return [max(pair) for pair in zip(heads, values, strict=True)]


def _least(rows: Sequence[Row], widths: Sequence[int]) -> list[int]:
    """How narrow each column may be as a text that can still be read."""
    return [max(word, min(_NARROWEST, wide)) for word, wide in zip(_words(rows), widths, strict=True)]


def _words(rows: Sequence[Row]) -> list[int]:
    """How wide the longest word of each column is."""
    return [
        max(columns_of(word) for cell in column for word in ("", *cell.split())) for column in zip(*rows, strict=True)
    ]


def _shrink(widths: list[int], least: Mapping[int, int], width: int) -> None:
    """Takes from the widest of these columns until all fit, or each is as narrow as it may be."""
    while _whole(widths) > width:
        open_ = [index for index, narrowest in least.items() if widths[index] > narrowest]
        if not open_:
            return
        widths[max(open_, key=lambda index: widths[index])] -= 1


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
