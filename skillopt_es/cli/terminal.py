"""
The one printer of the command: what it writes to stdout and stderr, in colour where a terminal has it.

While a command runs, both streams are a `SafeStream`: whatever is written to them, by whomever, is made safe to look
at. Colours get through by `say` alone, which knows what is ours; what is a file's content, by `write_exactly`.

Results are said on stdout. Whatever is told on stderr is logged (`tell`); `Stderr` shows it to people as sentences, to
programs as JSON.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Literal, TextIO, cast

import click
from attrs import define, frozen

from skillopt_es.logs import as_json, listening, logger
from skillopt_es.presenting.escaping import shown, shown_inline, shown_json
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
Part = str | Toned


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
        """Always true."""
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


def say(*parts: Part) -> None:
    """A line of parts on stdout, each made safe, those with a tone in colour."""
    _write_line(sys.stdout, parts)


def _write_line(stream: TextIO, parts: Sequence[Part]) -> None:
    raw(stream).write(f"{line_of(parts, coloured=has_colour(stream))}\n")
    stream.flush()


def line_of(parts: Sequence[Part], *, coloured: bool) -> str:
    """Parts as one line, each made safe, those with a tone in colour where there are colours."""
    return "".join(shown(part) if isinstance(part, str) else in_tone(part, coloured=coloured) for part in parts)


def _to_stderr(parts: Sequence[Part]) -> None:
    """Writes what people are told; a line that is too long goes on between words, two columns in."""
    lead, *others = parts if parts and isinstance(parts[0], Toned) else (NOTHING, *parts)
    texts = [each for each in others if isinstance(each, str)]
    columns = width(sys.stderr)
    if columns is not None and isinstance(lead, Toned) and len(texts) == len(others):  # no tones in the middle
        lines = shown(lead.text + "".join(texts)).split("\n")
        folded = "\n".join(part for line in lines for part in _folded(line, 2, columns))
        parts = (lead, folded[len(lead.text) :])
    _write_line(sys.stderr, parts)


@define
class Stderr:
    """Listens to what is logged and writes it to stderr: what is meant for people as they read it, or all as JSON."""

    json: bool = False
    quiet: bool = False  # only warnings and errors
    show: Callable[[Sequence[Part]], None] = _to_stderr

    def __call__(self, line: Mapping[str, object]) -> None:
        """One line; a terminal that has gone away does not stop the work."""
        if self.quiet and line["level"] == "info":
            return
        with suppress(OSError):
            if self.json:
                raw(sys.stderr).write(f"{shown_json(as_json(line))}\n")
                sys.stderr.flush()
            elif "_said" in line:
                self.show(cast("Sequence[Part]", line["_said"]))

    def switch_to_json(self) -> None:
        """From now on lines are JSON, also what others write to stderr."""
        self.json = True
        sys.stderr = cast("TextIO", _LoggedStream(raw(sys.stderr), self))


class _LoggedStream(SafeStream):
    """Stderr of a program that reads JSON: each line that is none of ours becomes one."""

    def __init__(self, raw: TextIO, listener: Stderr) -> None:
        super().__init__(raw)
        self._listener = listener
        self._begun = ""

    def write(self, text: str, /) -> int:
        """Logs the lines that are whole."""
        *lines, self._begun = (self._begun + text).split("\n")
        with listening(self._listener, alone=True):  # a thread of somebody else has no listener
            for line in filter(str.strip, lines):
                logger().info("output", message=line)
        return len(text)

    def isatty(self) -> bool:
        """Nobody watches: no colours, no line that is drawn again."""
        return False


_stderr: ContextVar[Stderr] = ContextVar("stderr")


@contextmanager
def telling_on_stderr() -> Iterator[Stderr]:
    """Shows on stderr what is logged inside; what is yielded can be switched to JSON."""
    listener = Stderr()
    token = _stderr.set(listener)
    try:
        with listening(listener):
            yield listener
    finally:
        if isinstance(sys.stderr, _LoggedStream):
            sys.stderr.write("\n")  # whatever line was begun is over
        _stderr.reset(token)


@contextmanager
def shown_by(show: Callable[[Sequence[Part]], None] | None = None, *, quiet: bool) -> Iterator[None]:
    """Inside, stderr is quiet, or its lines for people are shown by somebody else."""
    listener = _stderr.get()
    before = listener.show, listener.quiet
    listener.show, listener.quiet = show or listener.show, quiet
    try:
        yield
    finally:
        listener.show, listener.quiet = before


def tell(
    event: str, *parts: Part, level: Literal["info", "warning", "error"] = "info", hint: str = "", **fields: object
) -> None:
    """
    Logs something that people should know: they read the parts, and below them what to do; programs read `event`.

    The message of programs is what people read, unless it is given.
    """
    message = "".join(part if isinstance(part, str) else part.text for part in parts)
    below = (f"\n  {_hung(hint)}",) if hint else ()
    more = {"hint": hint, **fields} if hint else fields
    getattr(logger(), level)(event, **{"message": message, **more, "_said": (*parts, *below)})


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
    """A line as lines of so many columns; words, such as paths, stay whole, so that they can be copied."""
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
    tell("error", Toned("error:", "bad"), f" {_hung(message)}", level="error", message=message, hint=hint)


def print_warning(message: str) -> None:
    """What may be wrong, on stderr."""
    tell("warning", Toned("warning:", "unsure"), f" {_hung(message)}", level="warning", message=message)


def print_note(note: str) -> None:
    """What is good to know, on stderr."""
    tell("note", f"note: {note}", message=note)


def _hung(text: str) -> str:
    """A text whose further lines are indented: none of them can look like a line of ours."""
    return text.replace("\n", "\n  ")
