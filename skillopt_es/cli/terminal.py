"""
The one printer of the command: what it writes to stdout and stderr, in colour where a terminal has it.

While a command runs, both streams are a `SafeStream`: whatever is written to them, by whomever, is made safe to look
at. Colours get through by `say` alone, which knows what is ours; what is a file's content, by `write_exactly`.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TextIO

import click
from attrs import frozen

from skillopt_es.presenting.escaping import shown, shown_inline
from skillopt_es.presenting.palette import Tone

_STYLES: Mapping[Tone, Mapping[str, object]] = {
    "good": {"fg": "green"},
    "bad": {"fg": "red"},
    "unsure": {"fg": "yellow"},
    "strong": {"bold": True},
    "faint": {"dim": True},
    "place": {"fg": "cyan"},
}
_DIFF: Mapping[str, Tone] = {"+": "good", "-": "bad", "@": "place"}


@frozen
class Toned:
    """A piece of a line in a tone."""

    text: str
    tone: Tone


NOTHING = Toned("", "plain")


class SafeStream(io.TextIOBase):
    """Passes on what is written to it, made safe to look at; `raw` is the stream behind it."""

    def __init__(self, raw: TextIO) -> None:
        self.raw = raw

    def write(self, text: str, /) -> int:
        """Writes a text; there is no `buffer` beside it, so that nothing gets around this."""
        if not isinstance(text, str):
            raise TypeError(f"write() takes text, not {type(text).__name__}")
        self.raw.write(shown(text))
        return len(text)

    def writable(self) -> bool:
        """It is."""
        return True

    def flush(self) -> None:
        """Flushes the stream behind it."""
        self.raw.flush()

    def isatty(self) -> bool:
        """Whether people look at it."""
        return self.raw.isatty()

    def fileno(self) -> int:
        """That of the stream behind it."""
        return self.raw.fileno()

    def close(self) -> None:
        """Nothing: the stream behind it is not ours."""

    @property
    def encoding(self) -> str:  # type: ignore[override]  # the base has it as a variable
        """That of the stream behind it."""
        return self.raw.encoding


@contextmanager
def safe_streams() -> Iterator[None]:
    """Makes stdout and stderr safe to look at while a command runs."""
    before = sys.stdout, sys.stderr
    for stream in before:
        if isinstance(stream, io.TextIOWrapper):  # a terminal without UTF-8 gets what it can show
            stream.reconfigure(errors="backslashreplace")
    sys.stdout, sys.stderr = SafeStream(before[0]), SafeStream(before[1])
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def raw(stream: TextIO) -> TextIO:
    """The stream behind a safe one, for what makes its own texts safe."""
    return stream.raw if isinstance(stream, SafeStream) else stream


def write_exactly(content: Iterable[bytes]) -> None:
    """Writes what would be a file's content to stdout, byte for byte."""
    stream = raw(sys.stdout)
    stream.flush()
    stream.buffer.writelines(content)
    stream.buffer.flush()


def is_dumb() -> bool:
    """Whether the terminal can do nothing but print."""
    return os.environ.get("TERM", "") in ("dumb", "unknown")


def has_colour(stream: TextIO) -> bool:
    """Whether to write colours there: on a terminal, but NO_COLOR forbids and FORCE_COLOR wants them anywhere."""
    if os.environ.get("NO_COLOR"):
        return False
    forced = os.environ.get("FORCE_COLOR", "")
    if forced:
        return forced != "0"
    return stream.isatty() and not is_dumb()


def width(stream: TextIO | None = None) -> int | None:
    """How many columns a stream has, stdout by default; None where it is no terminal, and no line is too long."""
    stream = sys.stdout if stream is None else stream
    if not stream.isatty():
        return None
    known = os.terminal_size((80, 24))
    with suppress(OSError, ValueError):  # where stdout goes elsewhere, stderr may still be a terminal
        known = os.get_terminal_size(stream.fileno())
    return shutil.get_terminal_size(known).columns


def say(*parts: str | Toned, err: bool = False) -> None:
    """A line of parts, each made safe, those with a tone in colour."""
    stream = sys.stderr if err else sys.stdout
    coloured = has_colour(stream)
    line = "".join(shown(part) if isinstance(part, str) else in_tone(part, coloured=coloured) for part in parts)
    raw(stream).write(f"{line}\n")
    stream.flush()


def say_for_now(text: str, *, last: bool) -> None:
    """A line on stderr that whatever is said next covers, unless it is the last of its kind."""
    raw(sys.stderr).write(shown(text) + ("\n" if last else "\r"))
    sys.stderr.flush()


def in_tone(part: Toned, *, coloured: bool) -> str:
    """A piece made safe, with the codes of its tone around it where there are colours."""
    styles = _STYLES.get(part.tone)
    if not coloured or styles is None or not part.text:
        return shown(part.text)
    return click.style(shown(part.text), **styles)  # type: ignore[arg-type]  # each is one of its own


def field(label: str, value: str, tone: Tone = "plain") -> None:
    """A line of a page's head: what it is, and its value."""
    print_hanging(value, lead=Toned(f"{label:<12}", "faint"), hang=12, tone=tone)


def print_page(lines: Iterable[str]) -> None:
    """Lines of an outline, each on one line whatever it quotes; those that are not indented are headings."""
    for line in lines:
        indent = len(line) - len(line.lstrip(" "))
        print_hanging(line, hang=indent + 4, tone="plain" if indent else "strong")


def print_hanging(text: str, *, hang: int, lead: Toned = NOTHING, tone: Tone = "plain") -> None:
    """A line on stdout; where a terminal is too narrow for it, it goes on between words, `hang` columns in."""
    first, *others = _folded(lead.text + shown_inline(text), hang, width())
    say(lead, Toned(first[len(lead.text) :], tone))
    for more in others:
        say(Toned(more, tone))


def _folded(line: str, hang: int, columns: int | None) -> list[str]:
    """A line as the lines of so many columns; words, such as paths, stay whole, so that they can be copied."""
    if columns is None or not len(line) > columns > 2 * hang:
        return [line]
    return textwrap.wrap(
        line, columns, subsequent_indent=" " * hang, expand_tabs=False, replace_whitespace=False,
        break_long_words=False, break_on_hyphens=False,
    ) or [""]  # fmt: skip


def print_diff(lines: Iterable[str]) -> None:
    """The lines of a unified diff."""
    for line in lines:
        sign = "" if line.startswith(("+++", "---")) else line[:1]
        say(Toned(line, _DIFF.get(sign, "plain")))


def print_next(steps: Sequence[tuple[str, str]]) -> None:
    """What to type next, each with what it is good for."""
    longest, columns = max(len(words) for words, _ in steps), width()
    whole = 12 + len("skillopt-es ") + longest + max(len(f"   ({why})") for _, why in steps)
    longest = 0 if columns is not None and whole > columns else longest
    for label, (words, why) in zip(("next", *[""] * len(steps)), steps, strict=False):
        room = " " * (longest - len(words)) if why else ""
        note = (Toned(f"{room}   ({why})", "faint"),) if why else ()
        say(Toned(f"{label:<12}", "faint"), Toned(f"skillopt-es {words}", "place"), *note)


def print_error(message: str, hint: str = "") -> None:
    """What went wrong, on stderr, and below it what to do about it."""
    _print_aside(f" {message}", Toned("error:", "bad"))
    print_hint(hint)


def print_warning(message: str) -> None:
    """What may be wrong, on stderr."""
    _print_aside(f" {message}", Toned("warning:", "unsure"))


def print_note(note: str) -> None:
    """What is good to know, on stderr."""
    _print_aside(f"note: {note}")


def print_hint(hint: str) -> None:
    """What to do next, below what went wrong; nothing for nothing."""
    if hint:
        _print_aside(f"  {hint}")


def _print_aside(text: str, lead: Toned = NOTHING) -> None:
    """A text on stderr; all its further lines are indented, so that none of them can look like a line of ours."""
    columns = width(sys.stderr)
    first, *others = shown(lead.text + text).split("\n")
    start, *more = _folded(first, 2, columns)
    say(lead, start[len(lead.text) :], err=True)
    for line in [*more, *(part for other in others for part in _folded(f"  {other}", 2, columns))]:
        say(line, err=True)
