"""Running a program of somebody else's: its own process group, a given environment, a deadline and capped output."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

from attrs import define, field, frozen

from skillopt_es.adapters.background import in_background

_MOST_ERRORS = 4_096
_CHUNK = 65_536
_POLL_SECONDS = 0.02

End = Literal["exited", "late", "flooded", "stopped"]


class NotStartedError(Exception):
    """The program cannot be started: it is not there, or not a program."""


@frozen(kw_only=True)
class Program:
    """What to run; at its deadline the group has `grace` seconds after a SIGTERM, then it is killed."""

    argv: Sequence[str]
    folder: Path
    environment: Mapping[str, str] = field(repr=False)
    stdin: bytes = field(repr=False)
    seconds: float
    most_output: int
    grace: float = 0.0


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
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise NotStartedError(f"{program.argv[0]} cannot be started: {why}") from error
    talk = _Talk(process, program, time.monotonic() + program.seconds, stop)
    with _ended(process):
        how = talk.until_end()
        talk.last_words()
    return Ended(
        how=how,
        code=process.returncode,
        output=bytes(talk.output),
        errors=talk.errors.decode(errors="replace").strip(),
    )


@contextlib.contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Leaves neither the process nor its children nor pipes behind."""
    try:
        yield
    finally:
        _signal_group(process, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            with contextlib.suppress(OSError):
                if pipe:
                    pipe.close()


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
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
    output: bytearray = field(factory=bytearray)
    errors: bytearray = field(factory=bytearray)

    def __attrs_post_init__(self) -> None:
        self.unsent = self.program.stdin

    def until_end(self) -> End:
        """Returns when the process has exited (a child of it may still hold the pipes open) or must not go on."""
        with selectors.DefaultSelector() as pipes:
            self._register(pipes)
            while True:
                busy = self._turn(pipes)
                if len(self.output) > self.program.most_output:
                    return "flooded"
                if self.stop.is_set():
                    return "stopped"
                if not busy and self.process.poll() is not None:
                    return "exited"
                if time.monotonic() > self.deadline:
                    self._say_goodbye(pipes)
                    return "late"

    def last_words(self) -> None:
        """Reads what is left in the pipes, without waiting."""
        most = self.program.most_output
        for pipe, said in ((self.process.stdout, self.output), (self.process.stderr, self.errors)):
            with contextlib.suppress(BlockingIOError, ValueError):
                while pipe and len(said) <= most and (chunk := os.read(pipe.fileno(), _CHUNK)):
                    said += chunk

    def _say_goodbye(self, pipes: selectors.BaseSelector) -> None:
        """A SIGTERM to the group and some time to end well; what it says meanwhile is still heard."""
        if not self.program.grace:
            return
        _signal_group(self.process, signal.SIGTERM)
        until = time.monotonic() + self.program.grace
        while self.process.poll() is None and time.monotonic() < until and not self.stop.is_set():
            self._turn(pipes)
            if len(self.output) > self.program.most_output:
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
            os.set_blocking(pipe.fileno(), False)
            writes = pipe is self.process.stdin
            pipes.register(pipe, selectors.EVENT_WRITE if writes else selectors.EVENT_READ)

    def _step(self, key: selectors.SelectorKey) -> bool:
        """One read or write; False when this pipe is done."""
        if key.fileobj is self.process.stdin:
            return self._write(key.fd)
        chunk = os.read(key.fd, _CHUNK)
        if key.fileobj is self.process.stdout:
            self.output += chunk
        else:
            self.errors += chunk
            del self.errors[:-_MOST_ERRORS]
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
