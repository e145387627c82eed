"""How a command prints: its JSON document, tables folded into a terminal, notices, and what is wrong with a log."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click
from attrs import define

from skillopt_es.cli.terminal import Stderr, Toned, print_error, print_note, print_warning, say, width
from skillopt_es.events.errors import LogTooNew
from skillopt_es.events.values import Json
from skillopt_es.presenting.escaping import shown_inline, shown_json
from skillopt_es.presenting.palette import Tone, tone_of

if TYPE_CHECKING:
    from skillopt_es.config import RunConfig
    from skillopt_es.runs.reading import Reading


@define
class Output:
    """Where a command's words go, and what it has put out: the object of its click context, which outlives that."""

    stderr: Stderr
    has_document: bool = False


def print_json(value: Json) -> None:
    """The command's JSON document on stdout."""
    context = click.get_current_context(silent=True)
    output = None if context is None else context.find_object(Output)
    if output is not None:
        output.has_document = True
    plain = (sys.stdout.encoding or "utf-8").lower().replace("-", "") != "utf8"
    click.echo(shown_json(json.dumps(value, indent=2, ensure_ascii=plain, allow_nan=False)))


def print_json_error(message: str, hint: str, code: int) -> None:
    """Why there is no document, in its place."""
    print_json({"error": {"message": message, "hint": hint or None, "exit_code": code}})


def tell_of(config: RunConfig) -> None:
    """What a config says that has no effect, and how the rest was understood, on stderr: once, when it is read."""
    for notice in config.notices:
        print_warning(notice)
    for note in config.notes:
        print_note(note)


def print_table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = (), verdicts: Sequence[int] = ()
) -> None:
    """
    An aligned table on stdout; columns in `right` are right-aligned, those in `verdicts` in the tone of what they say.

    A terminal gets it folded into its width, a pipe one line a row.
    """
    head, *laid = laid_out(headers, rows, right=right, width=width())
    for line in head:
        say(Toned((" " * GAP).join(line).rstrip(), "strong"))
    for row, lines in zip(rows, laid, strict=True):
        tones = {index: tone_of(row[index]) for index in verdicts}
        for line in lines:
            _print_cells(line, tones)


def _print_cells(cells: Sequence[str], tones: Mapping[int, Tone]) -> None:
    last = max((index for index, cell in enumerate(cells) if cell.strip()), default=-1)
    shown = [cell if index < last else cell.rstrip() for index, cell in enumerate(cells[: last + 1])]
    parts = [part for index, cell in enumerate(shown) for part in (" " * GAP, Toned(cell, tones.get(index, "plain")))]
    say(*parts[1:])


def as_found(reading: Reading, *, shown: bool = True) -> int:
    """
    Says what is wrong with the log, if something is, after what could be read was shown; the exit code.

    `shown` is whether what was shown ends where the log stops being whole.
    """
    if reading.problem is None:
        return 0
    ends = f"; what is shown ends before event {reading.until + 1}" if shown and reading.until < reading.end else ""
    # What asks for known types alone reads past the others.
    if isinstance(reading.problem, LogTooNew) and not reading.cut_short:
        ends = "; they are left out here"
    print_error(f"{reading.problem}{ends}", reading.problem.hint)
    return 1


GAP = 2  # columns: one blank also stands within cells
_NARROWEST = 12  # columns a text is folded to: below them most words would stand alone

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
