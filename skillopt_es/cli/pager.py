"""A pager for what is longer than the screen, where people look at it: `PAGER`, or less as git calls it."""

from __future__ import annotations

import io
import os
import select
import shlex
import shutil
import signal
import subprocess
import sys
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import IO, TextIO, cast

import click

from skillopt_es.cli.printing import columns_of
from skillopt_es.cli.terminal import SafeStream, is_dumb, print_warning, raw

_LESS = "FRX"
"""What less is told where LESS does not say it: leave at once what fits, show our colours, leave the text on screen."""


def with_pager(command: click.Command) -> click.Command:
    """The same command, whose output goes to a pager where it is longer than the screen."""
    printing = cast("Callable[..., object]", command.callback)

    @wraps(printing)
    def paging(*args: object, no_pager: bool, **options: object) -> object:
        pager = None if no_pager or options.get("follow") else _pager()
        if pager is None:
            return printing(*args, **options)
        with _paged(pager):
            return printing(*args, **options)

    command.callback = paging
    command.params.append(click.Option(["--no-pager"], is_flag=True, help="Print to the terminal, however long it is."))
    return command


def _pager() -> list[str] | None:
    """The pager's command; None where there is nobody who pages, or nothing to page with."""
    if not (sys.stdout.isatty() and sys.stdin.isatty()) or is_dumb() or _has_ended(sys.stdin.fileno()):
        return None
    try:
        words = shlex.split(os.environ.get("PAGER", "less"))
    except ValueError as error:
        print_warning(f"PAGER cannot be read ({error}), so this is shown without a pager")
        return None
    return words if words and words != ["cat"] and shutil.which(words[0]) else None


def _has_ended(terminal: int) -> bool:
    """
    Whether an end of input waits at a terminal, so that no key can leave a pager.

    `script` makes a terminal for its command, and puts an end there where its own input is /dev/null.
    """
    with suppress(ImportError, OSError):  # Windows has neither module
        import fcntl
        import termios

        waiting, _, _ = select.select([terminal], [], [], 0)
        typed = array("i", [0])
        fcntl.ioctl(terminal, termios.FIONREAD, typed)
        return bool(waiting) and typed[0] == 0
    return False


class _Paged(io.TextIOBase):
    """Keeps a first screen; once there is more, all of it goes to the pager."""

    def __init__(self, screen: TextIO, pager: list[str]) -> None:
        self._screen = screen
        self._pager = pager
        self._kept: list[str] = []
        self._room = shutil.get_terminal_size((80, 24))
        self._lines = 0
        self._process: subprocess.Popen[str] | None = None

    def write(self, text: str, /) -> int:
        """Takes a text for the one or the other."""
        if self._process is None:
            self._kept.append(text)
            # A line that is wider than the screen takes several rows: rounded up.
            self._lines += sum(max(1, -(-columns_of(line) // self._room.columns)) for line in text.splitlines())
            if self._lines < self._room.lines:
                return len(text)
            # os.environ comes last: the user's own LESS counts.
            self._process = subprocess.Popen(  # noqa: S603 - the user's own pager
                self._pager, stdin=subprocess.PIPE, text=True, encoding="utf-8", env={"LESS": _LESS, **os.environ}
            )
            text = "".join(self._kept)
        self._pipe.write(text)
        return len(text)

    @property
    def _pipe(self) -> IO[str]:
        assert self._process is not None
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def running(self) -> bool:
        """Whether the pager has begun."""
        return self._process is not None

    def flush(self) -> None:
        """Nothing is held back from the pager for long: a pipe has its own pace."""

    def finish(self) -> None:
        """Prints what fitted, or waits until the pager is left."""
        if self._process is None:
            self._screen.write("".join(self._kept))
            self._screen.flush()
            return
        with suppress(BrokenPipeError):  # it was left before the end
            self._pipe.close()
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the pager's now
        try:
            self._process.wait()
        finally:
            signal.signal(signal.SIGINT, before)

    def isatty(self) -> bool:
        """People look at it, on the one or the other."""
        return True

    def fileno(self) -> int:
        """That of the screen."""
        return self._screen.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # the base has it as a variable
        """That of the screen."""
        return self._screen.encoding


class _Held(io.StringIO):
    """Keeps what would be written over the pager's page; before there is one, it goes to the screen."""

    def __init__(self, screen: TextIO, paged: _Paged) -> None:
        super().__init__()
        self._screen = screen
        self._paged = paged

    def write(self, text: str, /) -> int:
        """Now or later."""
        return super().write(text) if self._paged.running else self._screen.write(text)

    def flush(self) -> None:
        """What went to the screen."""
        self._screen.flush()

    def isatty(self) -> bool:
        """Whether people look at it in the end."""
        return self._screen.isatty()


@contextmanager
def _paged(pager: list[str]) -> Iterator[None]:
    out, err = sys.stdout, sys.stderr
    paged = _Paged(raw(out), pager)
    held = _Held(raw(err), paged)
    sys.stdout, sys.stderr = SafeStream(cast("TextIO", paged)), SafeStream(held)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = out, err
        paged.finish()
        raw(err).write(held.getvalue())
