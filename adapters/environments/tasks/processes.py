"""Running a grader's command: its own process group, little environment, a deadline and capped output."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from attrs import define, field

from skillopt_es.adapters.environments.tasks.background import in_background
from skillopt_es.adapters.environments.tasks.verdicts import GraderError

_MAX_OUTPUT = 65_536
_MAX_ERRORS = 4_096
_CHUNK = 65_536
_POLL_SECONDS = 0.02
_ENVIRONMENT = ("PATH", "HOME", "LANG")


async def run_command(argv: Sequence[str], *, folder: Path, stdin: bytes, seconds: float) -> str:
    """What the command prints, trimmed; raises GraderError unless it ends well, in time and with modest output."""
    work = partial(_run, tuple(argv), folder, stdin, seconds)
    # The command ends itself at its deadline; the few seconds more are for a machine that is very busy.
    try:
        return await in_background(work, seconds=seconds + 10, wait_after_stop=2)
    except TimeoutError:
        raise GraderError(f"the command took longer than {seconds:g} seconds") from None


def _run(argv: Sequence[str], folder: Path, stdin: bytes, seconds: float, stop: threading.Event) -> str:
    try:
        process = subprocess.Popen(  # noqa: S603 - the user's own command, without a shell
            argv,
            cwd=folder,
            env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise GraderError(f"{argv[0]} cannot be started: {getattr(error, 'strerror', None) or error}") from error
    talk = _Talk(process, stdin, time.monotonic() + seconds, seconds, stop)
    with _ended(process):
        talk.until_exit()
        talk.last_words()
    return talk.result()


@contextlib.contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Leaves neither the process nor its children nor pipes behind."""
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            with contextlib.suppress(OSError):
                if pipe:
                    pipe.close()


@define
class _Talk:
    """Feeds a process and collects what it says, until it exits or the deadline."""

    process: subprocess.Popen[bytes]
    unsent: bytes
    deadline: float
    seconds: float
    stop: threading.Event
    output: bytearray = field(factory=bytearray)
    errors: bytearray = field(factory=bytearray)

    def until_exit(self) -> None:
        """Returns when the process has exited; a child of it may still hold the pipes open."""
        with selectors.DefaultSelector() as pipes:
            self._register(pipes)
            while True:
                ready = pipes.select(_POLL_SECONDS) if pipes.get_map() else self._rest()
                for key, _ in ready:
                    if not self._step(key):
                        pipes.unregister(key.fileobj).fileobj.close()  # type: ignore[union-attr]
                if not ready and self.process.poll() is not None:
                    return
                self._check_time()

    def last_words(self) -> None:
        """Reads what is left in the pipes, without waiting."""
        for pipe, said in ((self.process.stdout, self.output), (self.process.stderr, self.errors)):
            with contextlib.suppress(BlockingIOError, ValueError):
                while pipe and (chunk := os.read(pipe.fileno(), _CHUNK)) and len(said) <= _MAX_OUTPUT:
                    said += chunk

    def result(self) -> str:
        """The output as text; raises GraderError when the process did not end well."""
        code = self.process.returncode
        if len(self.output) > _MAX_OUTPUT:
            raise GraderError(f"the command printed more than {_MAX_OUTPUT} bytes")
        if code:
            how = f"exit code {code}" if code > 0 else f"signal {-code}"
            lines = self.errors.decode(errors="replace").strip().splitlines()
            raise GraderError(f"the command ended with {how}" + (f": {lines[-1][:500]}" if lines else ""))
        return self.output.decode(errors="replace").strip()

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
            if len(self.output) > _MAX_OUTPUT:
                raise GraderError(f"the command printed more than {_MAX_OUTPUT} bytes")
        else:
            self.errors += chunk
            del self.errors[:-_MAX_ERRORS]
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

    def _check_time(self) -> None:
        if self.stop.is_set():
            raise GraderError("stopped")
        if time.monotonic() > self.deadline:
            raise GraderError(f"the command took longer than {self.seconds:g} seconds")
