"""Running a program of somebody else's: its own process group, a given environment, a deadline and capped output."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from attrs import define, field, frozen

from skillopt_es.adapters.background import in_background

_CHUNK = 65_536  # what a pipe of Linux holds (pipe(7)), so one read empties it
# How late a stop or a deadline is seen; many programs looked at more often keep a processor busy.
_POLL_SECONDS = 0.02
_ENDING_SECONDS = 30.0  # a program that ends its children may wait for a disk; then all are killed

End = Literal["exited", "late", "flooded", "stopped", "given_up"]


class NotStartedError(Exception):
    """The program cannot be started: it is not there, or not a program."""


@frozen(kw_only=True)
class Program:
    """
    What to run; at its deadline the group has `grace` seconds after a SIGTERM, then it is killed.

    A program that prints more than `most_output` bytes is ended; with `cut` it goes on, and the middle is left out.
    One of whose lines `hopeless` is true is ended, too. One that ends all that it has started when it gets `ends_at`
    is given the time for that.
    """

    argv: Sequence[str]
    folder: Path
    environment: Mapping[str, str] = field(repr=False)
    stdin: bytes = field(repr=False)
    seconds: float
    most_output: int
    most_errors: int = 4_096
    cut: bool = False
    grace: float = 0.0
    pass_fds: Sequence[int] = ()
    ends_at: signal.Signals | None = None
    hopeless: Callable[[bytes], bool] | None = None


@frozen(kw_only=True)
class Ended:
    """How a program ended: its exit code (negative: a signal), what it printed, and the tail of its errors."""

    how: End
    code: int
    output: bytes = field(repr=False)
    errors: str = field(repr=False)


async def run_program(program: Program) -> Ended:
    """What came of it; neither the process nor its children outlive this call. Raises NotStartedError."""
    # The program ends at its deadline; the few seconds more are for a machine that is very busy.
    wait = program.seconds + program.grace + 10
    return await in_background(partial(_run, program), seconds=wait, wait_after_stop=2)


def _run(program: Program, stop: threading.Event) -> Ended:
    try:
        process = subprocess.Popen(  # noqa: S603 - a program that the user named, without a shell
            program.argv,
            cwd=program.folder,
            env=program.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # A group of its own, so that its children can be ended with it.
            start_new_session=True,
            pass_fds=program.pass_fds,
        )
    except (OSError, ValueError) as error:
        # A ValueError is a NUL in an argument.
        why = getattr(error, "strerror", None) or error
        raise NotStartedError(f"{program.argv[0]} cannot be started: {why}") from error
    talk = _Talk(process, program, time.monotonic() + program.seconds, stop)
    with _ended(process, program.ends_at):
        how = talk.until_end()
        talk.last_words()
    return Ended(
        how=how,
        code=process.returncode,
        output=talk.output.whole,
        errors=talk.errors.whole.decode(errors="replace").strip(),
    )


class Heard:
    """What was heard of a stream: its head and its tail, however long it is; without a head, the tail alone."""

    def __init__(self, *, head: int, tail: int) -> None:
        self._most_head, self._most_tail = head, tail
        self._head, self._tail = bytearray(), bytearray()
        self.heard = 0

    def add(self, chunk: bytes) -> None:
        """Some more of it."""
        self.heard += len(chunk)
        room = max(0, self._most_head - len(self._head))
        self._head += chunk[:room]
        self._tail += chunk[room:]
        del self._tail[: max(0, len(self._tail) - self._most_tail)]

    @property
    def whole(self) -> bytes:
        """What was kept; a mark between head and tail says how much is missing."""
        missing = self.heard - len(self._head) - len(self._tail)
        mark = f"\n[… {missing} bytes left out …]\n".encode() if missing and self._most_head else b""
        return bytes(self._head + mark + self._tail)


@contextlib.contextmanager
def _ended(process: subprocess.Popen[bytes], ends_at: signal.Signals | None) -> Iterator[None]:
    """Leaves neither the process nor its children nor pipes behind."""
    try:
        yield
    finally:
        if ends_at is not None:
            process.send_signal(ends_at)  # nothing where it has ended
            process.send_signal(signal.SIGCONT)  # what it has started may have stopped it
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_ENDING_SECONDS)
        # Also after a good end: it may have left children.
        _signal_group(process, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            with contextlib.suppress(OSError):
                if pipe:
                    pipe.close()


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    # The group is gone; macOS denies permission instead where only zombies are left of it.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


@define
class _Talk:
    """Feeds a process and collects what it says, until it exits or the deadline."""

    process: subprocess.Popen[bytes]
    program: Program
    deadline: float
    stop: threading.Event
    unsent: bytes = field(init=False)
    output: Heard = field(init=False)
    errors: Heard = field(init=False)
    line: bytes = b""
    given_up: bool = False

    def __attrs_post_init__(self) -> None:
        program = self.program
        self.unsent = program.stdin
        most, most_errors = program.most_output, program.most_errors
        if program.cut:
            self.output = Heard(head=most // 2, tail=most // 2)
            self.errors = Heard(head=most_errors // 2, tail=most_errors // 2)
        else:
            self.output = Heard(head=most + _CHUNK, tail=0)
            self.errors = Heard(head=0, tail=most_errors)

    @property
    def _floods(self) -> bool:
        return not self.program.cut and self.output.heard > self.program.most_output

    def until_end(self) -> End:
        """Returns when the process has exited (a child of it may still hold the pipes open) or must not go on."""
        with selectors.DefaultSelector() as pipes:
            self._register(pipes)
            while True:
                busy = self._turn(pipes)
                if self._floods:
                    return "flooded"
                if self.stop.is_set():
                    return "stopped"
                # Only when the pipes are quiet: its last words may still be on their way.
                if not busy and self.process.poll() is not None:
                    return "exited"
                if self.given_up:
                    self._say_goodbye(pipes)
                    return "given_up"
                if time.monotonic() > self.deadline:
                    self._say_goodbye(pipes)
                    return "late"

    def last_words(self) -> None:
        """Reads what is left in the pipes, without waiting."""
        for pipe, said in ((self.process.stdout, self.output), (self.process.stderr, self.errors)):
            # There is nothing to read now, or the pipe is closed already.
            with contextlib.suppress(BlockingIOError, ValueError):
                while pipe and not self._floods and (chunk := os.read(pipe.fileno(), _CHUNK)):
                    said.add(chunk)

    def _say_goodbye(self, pipes: selectors.BaseSelector) -> None:
        """A SIGTERM to the group and some time to end well; what it says meanwhile is still heard."""
        if not self.program.grace:
            return
        _signal_group(self.process, signal.SIGTERM)
        until = time.monotonic() + self.program.grace
        while self.process.poll() is None and time.monotonic() < until and not self.stop.is_set():
            self._turn(pipes)
            if self._floods:
                return

    def _turn(self, pipes: selectors.BaseSelector) -> bool:
        """One round over the pipes that are ready; whether there were any."""
        ready = pipes.select(_POLL_SECONDS) if pipes.get_map() else self._rest()
        for key, _ in ready:
            if not self._step(key):
                pipes.unregister(key.fileobj).fileobj.close()  # type: ignore[union-attr]
        return bool(ready)

    def _register(self, pipes: selectors.BaseSelector) -> None:
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            # A child may hold a pipe open and write nothing: reading must never wait.
            os.set_blocking(pipe.fileno(), False)
            writes = pipe is self.process.stdin
            pipes.register(pipe, selectors.EVENT_WRITE if writes else selectors.EVENT_READ)

    def _step(self, key: selectors.SelectorKey) -> bool:
        """One read or write; False when this pipe is done."""
        if key.fileobj is self.process.stdin:
            return self._write(key.fd)
        chunk = os.read(key.fd, _CHUNK)
        if key.fileobj is not self.process.stdout:
            self.errors.add(chunk)
            return bool(chunk)
        self.output.add(chunk)
        if self.program.hopeless is not None:
            *lines, self.line = (self.line + chunk).split(b"\n")
            self.given_up = self.given_up or any(map(self.program.hopeless, lines))
        return bool(chunk)

    def _write(self, descriptor: int) -> bool:
        try:
            self.unsent = self.unsent[os.write(descriptor, self.unsent) :]
        except BrokenPipeError:  # it does not want to know more
            self.unsent = b""
        return bool(self.unsent)

    def _rest(self) -> list[tuple[selectors.SelectorKey, int]]:
        """Nothing more to read or write: sleep a little, unless the process is gone."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(_POLL_SECONDS)
        return []
