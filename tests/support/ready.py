"""
The installed command in a process of its own that starts at once: it is forked from one that has imported everything.

A real process: it has its own number, folder, environment, streams and end, and every signal reaches it. What only a
start from nothing shows (the script, an environment that speaks to Python, limits set before) is left to Popen.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import importlib
import json
import os
import pkgutil
import select
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
from tempfile import TemporaryDirectory
from typing import NoReturn

from attrs import define

COMMAND = Path(sys.executable).with_name("skillopt-es")
LANGUAGE = "C.UTF-8"
PATIENCE = 300.0  # for what never comes; a loaded machine is slow
MOST_BYTES = 1 << 20
STREAMS = 3
WARNINGS = "PYTHONWARNINGS"
LATER = ("ctypes", "encodings.utf_16_le", "rich.live", "rich.table", "structlog")
ROOMS = ("audit", "deploy", "gate", "interchange", "presenting", "report", "runs", "sessions", "sweeps")


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
    for room in ("cli", *ROOMS):
        package = importlib.import_module(f"skillopt_es.{room}")
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    for room in ("models", "environments", "algorithms", "executors"):
        for entry in entry_points(group=f"skillopt_es.{room}"):
            importlib.import_module(entry.module)
    for name in LATER:
        importlib.import_module(name)
    work_once()


def work_once() -> None:
    """Trains and reads a small run, so that what is made when it is first used is there already in each command."""
    import skillopt_es
    from skillopt_es.runs.overview import read_and_kept

    small = {"train.num_epochs": 1, "env.limit": 2, "optimizer.use_slow_update": False}
    with TemporaryDirectory() as folder:
        run = asyncio.run(skillopt_es.atrain(settings=small, name="small", runs=folder))
        read_and_kept(run.folder)
    assert threading.active_count() == 1, "a fork would have no other thread"


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
    """Forks a command whenever one is asked for, and tells how each ended, until nobody can ask any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tests; the door's end is ours
    sys.path.insert(0, str(COMMAND.parent))  # as the script has it
    import_all()
    gc.freeze()
    clients = dict[int, socket.socket]()
    woken, wakes = socket.socketpair()
    with woken, wakes:
        wakes.setblocking(False)
        signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # whatever is ignored wakes nobody
        while True:
            ready, _, _ = select.select([door, woken], [], [])
            if woken in ready:
                woken.recv(MOST_BYTES)
                tell_of_the_ended(clients)
            if door in ready:
                asked, files, _, _ = socket.recv_fds(door, MOST_BYTES, STREAMS + 1)
                if not asked:
                    return
                bear(asked, files, clients, (door, woken, wakes))


def bear(asked: bytes, files: Sequence[int], clients: dict[int, socket.socket], ours: Sequence[socket.socket]) -> None:
    """Forks a command and tells its number."""
    client, *streams = files
    process = os.fork()
    if process == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for each in (*ours, *clients.values()):
            each.close()
        os.close(client)
        become(streams=streams, **json.loads(asked))
    for stream in streams:
        os.close(stream)
    clients[process] = socket.socket(fileno=client)
    clients[process].send(json.dumps(process).encode())


def tell_of_the_ended(clients: dict[int, socket.socket]) -> None:
    """Says to whoever asked for a command that has ended how it did."""
    with suppress(ChildProcessError):  # there is none left
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            process, status = ended
            with clients.pop(process) as told, suppress(OSError):  # nobody may be left who wants to know
                told.send(json.dumps(os.waitstatus_to_exitcode(status)).encode())


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as _door:
        serve(_door)
