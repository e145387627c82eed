"""
The installed command in a process of its own that starts at once: it is forked from one that has imported everything.

A real process: it has its own number, folder, environment, streams and end, and every signal reaches it. What only a
start from nothing shows (the script, an environment that speaks to Python, limits set before) is left to Popen.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NoReturn

from attrs import define

COMMAND = Path(sys.executable).with_name("skillopt-es")
LANGUAGE = "C.UTF-8"
PATIENCE = 300.0  # for what never comes; a loaded machine is slow
MOST_BYTES = 1 << 20
STREAMS = 3
WARNINGS = "PYTHONWARNINGS"
LATER = ("ctypes", "rich.live", "rich.table", "structlog", "skillopt_es.runs.run_log", "skillopt_es.sessions.wiring")


@define
class Ready:
    """A command that runs; of Popen, what a caller needs."""

    pid: int
    _keeper: socket.socket
    returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code (negative: the signal that ended it), or None while it runs."""
        if self.returncode is None:
            self._keeper.setblocking(False)
            with suppress(BlockingIOError):
                self._end()
        return self.returncode

    def wait(self, timeout: float = PATIENCE) -> int:
        """Its exit code, waited for."""
        if self.returncode is None:
            self._keeper.settimeout(timeout)
            try:
                self._end()
            except TimeoutError as slow:
                raise TimeoutError(f"no end after {timeout:.0f} s") from slow
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Sends a signal, unless it is known to have ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _end(self) -> None:
        self.returncode = json.loads(self._keeper.recv(MOST_BYTES))
        self._keeper.close()


def is_plain(environ: Mapping[str, str]) -> bool:
    """Whether nothing in an environment speaks to Python itself when it starts."""
    spoken = {name for name in environ if name.startswith(("PYTHON", "LC_"))} - {WARNINGS}
    return hasattr(os, "fork") and not spoken and environ.get("LANG", LANGUAGE).endswith("UTF-8")


INHERITED = (signal.SIGTERM, signal.SIGHUP)
"""What a child ignores as its parent does."""


def start(words: Sequence[object], cwd: Path, environ: Mapping[str, str], streams: Sequence[int]) -> Ready:
    """Starts `skillopt-es` with these three open files; the environment has to be plain."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ignored = [number for number in INHERITED if signal.getsignal(number) is signal.SIG_IGN]  # nohup
    asked = json.dumps({"words": list(map(str, words)), "cwd": str(cwd), "environ": dict(environ), "ignored": ignored})
    with theirs:
        socket.send_fds(_nursery(environ.get(WARNINGS, "")), [asked.encode()], [theirs.fileno(), *streams])
    ours.settimeout(PATIENCE)
    return Ready(json.loads(ours.recv(MOST_BYTES)), ours)


@cache
def _nursery(warnings: str) -> socket.socket:
    """The door of a process that has imported all under these filters; it ends when this one does."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", __file__, str(theirs.fileno())],
            env={"PATH": os.environ["PATH"], "LANG": LANGUAGE, WARNINGS: warnings},
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )

    def leave() -> None:
        ours.close()
        process.wait()

    atexit.register(leave)
    return ours


def import_all() -> None:
    """What any command will need, once instead of in each."""
    import skillopt_es.cli
    import skillopt_es.config

    for module in pkgutil.iter_modules(skillopt_es.cli.__path__, "skillopt_es.cli."):
        importlib.import_module(module.name)
    for room in ("models", "environments"):
        for entry in entry_points(group=f"skillopt_es.{room}"):
            importlib.import_module(entry.module)
    for name in LATER:
        importlib.import_module(name)
    skillopt_es.config.load_config(None)  # the defaults are parsed once in a process


def become(
    words: Sequence[str], cwd: str, environ: Mapping[str, str], streams: Sequence[int], ignored: Collection[int]
) -> NoReturn:
    """Makes this process, which has just been forked, the command, as if a shell had started it."""
    from skillopt_es.cli.main import main

    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environ)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in INHERITED:
        signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.argv = [str(COMMAND), *words]
    try:
        main()
    except SystemExit as end:
        leave(end)
        raise


def leave(end: SystemExit) -> None:
    """
    Ends this process as Python does, but for taking all modules apart: in a fork that copies every page of them.

    Returns when somebody has to hear that the last words could not be written; Python then says so.
    """
    threading._shutdown()
    atexit._run_exitfuncs()
    gc.collect()  # what was left open complains now
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(end.code or 0))


def serve(door: socket.socket) -> None:
    """Forks a keeper for each command that is asked for, until nobody can ask any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests; the door's end is ours
    sys.path.insert(0, str(COMMAND.parent))  # as the script has it
    import_all()
    gc.freeze()
    while True:
        asked, files, _, _ = socket.recv_fds(door, MOST_BYTES, STREAMS + 1)
        with suppress(ChildProcessError):  # keepers that have ended
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not asked:
            return
        if os.fork() == 0:
            door.close()
            keep(json.loads(asked), *files)
        for file in files:
            os.close(file)


def keep(asked: Mapping[str, Any], client: int, *streams: int) -> NoReturn:
    """Forks the command, tells its number and, when it has ended, how."""
    process = os.fork()
    if process == 0:
        os.close(client)
        become(asked["words"], asked["cwd"], asked["environ"], streams, asked["ignored"])
    for stream in streams:
        os.close(stream)
    with socket.socket(fileno=client) as told:
        told.send(json.dumps(process).encode())
        _, status = os.waitpid(process, 0)
        with suppress(OSError):  # nobody may be left who wants to know
            told.send(json.dumps(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as _door:
        serve(_door)
