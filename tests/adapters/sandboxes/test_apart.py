"""Programs that are kept apart: they end as they end, leave nothing behind, and work as they would alone."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from support.agents import all_gone
from support.environments import CONFINED
from support.ready import PATIENCE

from skillopt_es.adapters.processes import Ended, NotStartedError, Program
from skillopt_es.adapters.sandboxes import apart
from skillopt_es.adapters.sandboxes.apart import Distance, run_apart
from skillopt_es.adapters.sandboxes.covers import Covers, Kind
from skillopt_es.adapters.sandboxes.hide import told_of
from skillopt_es.adapters.sandboxes.start import NOT_STARTED, SEEN, WHY_NOT_STARTED
from skillopt_es.errors import BackendError

pytestmark = pytest.mark.skipif(not CONFINED, reason="this machine has no user namespaces")
DISTANCES = ("apart", "closed", "held", "let")
# Each has the lock of the file on which the test waits, says so in a pipe, and sleeps for longer than any test.
STAYS = f"{sys.executable} -SEc \"import time; open('begun', 'w').write('x'); time.sleep(900)\""
LEAVES = (
    f"{STAYS} &",
    f"setsid {STAYS} &",
    f"setsid setsid -f {STAYS} &",
    "(setsid ./daemon.sh &);",
)
LEFT = "exec 9> held; flock -s 9; " + "".join(f"{each} cat begun > /dev/null; " for each in LEAVES)


def program(folder: Path, code: str, **more: Any) -> Program:
    """A shell script."""
    given: dict[str, Any] = {"environment": {"PATH": os.environ["PATH"]}, "stdin": b"", "seconds": PATIENCE, **more}
    return Program(argv=["/bin/sh", "-c", code], folder=folder, most_output=10_000, **given)


def ran(folder: Path, code: str, *, hidden: tuple[str, ...] = (), **more: Any) -> Ended:
    """How it ended."""
    return asyncio.run(run_apart(program(folder, code, **more), hidden=Covers(hidden)))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with the program's daemon, and with pipes that are read when something has begun."""
    (tmp_path / "daemon.sh").write_text(f"#!/bin/sh\n{STAYS} <&- >&- 2>&- &\n")
    (tmp_path / "daemon.sh").chmod(0o755)
    for pipe in ("begun", "waits"):
        os.mkfifo(tmp_path / pipe)
    return tmp_path


@pytest.fixture(params=DISTANCES)
def how_far(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """This far apart, as if the machine allowed no more."""
    monkeypatch.setattr(apart, "_found", [Distance(request.param)])
    return str(request.param)


def test_a_program_ends_as_it_ends(tmp_path: Path, how_far: str) -> None:
    """Its code or its signal, its output and its errors; it reads what it is given, in its folder and environment."""
    ended = ran(tmp_path, "cat; echo so >&2; pwd; env; exit 4", stdin=b"ab\n")
    assert (ended.how, ended.code, ended.errors) == ("exited", 4, "so")
    out = ended.output.decode().splitlines()
    assert out[:2] == ["ab", str(tmp_path)]
    assert sorted(line.split("=")[0] for line in out[2:] if not line.startswith("_=")) == ["PATH", "PWD"]
    assert ran(tmp_path, "kill -SEGV $$").code == -signal.SIGSEGV
    assert ran(tmp_path, "kill -KILL $$").code == -signal.SIGKILL
    with pytest.raises(NotStartedError, match="gone cannot be started: No such file"):
        asyncio.run(run_apart(Program(argv=["./gone"], folder=tmp_path, environment={}, stdin=b"", seconds=PATIENCE,
                                      most_output=1), hidden=Covers()))  # fmt: skip


def test_a_late_program_may_end_well(tmp_path: Path, how_far: str) -> None:
    """Its group gets the SIGTERM, as it would without us."""
    code = "trap 'echo well; exit 3' TERM; echo begun; while :; do sleep 0.01; done"
    ended = ran(tmp_path, code, seconds=2, grace=PATIENCE)
    assert (ended.how, ended.code, ended.output) == ("late", 3, b"begun\nwell\n")


@pytest.mark.parametrize("ending", ["well", "late", "stopped"])
def test_nothing_outlives_a_program(place: Path, how_far: str, ending: str) -> None:
    """A child, a session, one in one and a daemon, however the program ends: once that is known, they are gone."""
    code = LEFT + ("exit 0" if ending == "well" else "echo x > waits; sleep 900")

    async def stopped() -> None:
        running = asyncio.ensure_future(run_apart(program(place, code), hidden=Covers()))
        await asyncio.to_thread((place / "waits").read_bytes)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    if ending == "stopped":
        asyncio.run(stopped())
        assert all_gone(place / "held")
        return
    reader = os.open(place / "waits", os.O_RDWR)  # then nobody waits for a reader
    ended = ran(place, code, **({"seconds": 3} if ending == "late" else {}))
    os.close(reader)
    assert ended.how == ("late" if ending == "late" else "exited"), ended
    with (place / "held").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


TRAINER = """
import asyncio, sys
from pathlib import Path
from skillopt_es.adapters.processes import Program
from skillopt_es.adapters.sandboxes import apart
from skillopt_es.adapters.sandboxes.covers import Covers, Kind
apart._found.append(apart.Distance(sys.argv[1]))
program = Program(argv=["/bin/sh", "-c", sys.argv[2]], folder=Path.cwd(), environment={"PATH": sys.argv[3]}, stdin=b"",
                  seconds=900, most_output=1)
asyncio.run(apart.run_apart(program, hidden=Covers()))
"""


def test_nothing_outlives_a_trainer_that_is_killed(place: Path, how_far: str) -> None:
    """With SIGKILL, which it cannot take notice of."""
    code = LEFT + "echo x > waits; sleep 900"
    trainer = subprocess.Popen([sys.executable, "-c", TRAINER, how_far, code, os.environ["PATH"]], cwd=place)
    assert (place / "waits").read_text() == "x\n"
    trainer.kill()
    trainer.wait(PATIENCE)
    assert all_gone(place / "held")


def test_a_program_works_as_it_would_alone(tmp_path: Path) -> None:
    """It writes its files, has the network and terminals of its own, and a number that names files as ever."""
    (tmp_path / ".env").write_text("KEY=x")
    (tmp_path / "mine").write_text("a")
    code = f"""
    echo b > mine; : > "new.$$"; cat .env; cd ..; cat {tmp_path}/.env; cat /proc/self/net/dev | grep -c lo:
    {sys.executable} -SEc 'import pty; pty.openpty()'; ls /dev/fd/ > /dev/null && echo well
    """
    for _ in range(2):
        ended = ran(tmp_path, code, hidden=(str(tmp_path / ".env"), str(tmp_path / "is not there")))
        assert (ended.code, ended.output.decode().split(), ended.errors) == (0, ["1", "well"], "")
    assert (tmp_path / "mine").read_text() == "b\n"
    assert len(list(tmp_path.glob("new.*"))) == 2
    assert (tmp_path / ".env").read_text() == "KEY=x"


def test_a_program_may_make_spaces_of_its_own(tmp_path: Path) -> None:
    """As the sandboxes of coding agents do: users, mounts, and processes with their own /proc."""
    ended = ran(tmp_path, "unshare -Urpf --mount-proc sh -c 'mount -t tmpfs x /mnt; echo $$; ls -d /proc/1'")
    assert (ended.output.decode().split(), ended.errors) == (["1", "/proc/1"], "")


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed here")
def test_node_runs(tmp_path: Path) -> None:
    """With its own children."""
    code = 'node -e \'console.log(require("child_process").execSync("echo $((1 + 1))").toString())\''
    assert ran(tmp_path, code).output.split() == [b"2"]


def test_this_python_and_this_package_cannot_be_changed(tmp_path: Path) -> None:
    """Other processes run from them; where the program's own folder lies in them, they stay as they are."""
    place = Path(apart.__file__).parent / "changed.py"
    try:
        ended = ran(tmp_path, f"touch {place}")
        assert "Read-only file system" in ended.errors
    finally:
        place.unlink(missing_ok=True)
    assert str(Path(apart.__file__).parents[2]) not in apart._fixed(Path(apart.__file__).parent)


TALK = """
import socket, sys
for path in sys.argv[1:]:
    try:
        socket.socket(socket.AF_UNIX).connect(path)
        print("reached", path)
    except OSError:
        pass
"""


def test_sockets_of_services_are_out_of_reach_but_for_those_that_are_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What acts for a user could read a key for the program; the trainer's own variables say where it listens."""
    own = {"TMUX": "t", "SSH_AUTH_SOCK": "agent", "DOCKER_HOST": "docker"}
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    paths = {name: str(tmp_path / file) for name, file in own.items()} | {"XDG_RUNTIME_DIR": str(runtime / "bus")}
    values = {**paths, "TMUX": f"{paths['TMUX']},1,0", "DOCKER_HOST": f"unix://{paths['DOCKER_HOST']}"}
    for name, value in {**values, "XDG_RUNTIME_DIR": str(runtime)}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "talk.py").write_text(TALK)
    talk = f"{sys.executable} -SE {tmp_path / 'talk.py'} {' '.join(paths.values())}"
    (tmp_path / "work").mkdir()
    with contextlib.ExitStack() as stack:
        for path in paths.values():
            listening = stack.enter_context(socket.socket(socket.AF_UNIX))
            listening.bind(path)
            listening.listen()
        assert ran(tmp_path / "work", talk).output == b""
        for name, path in paths.items():
            given = {"PATH": os.environ["PATH"], name: {**values, "XDG_RUNTIME_DIR": str(runtime)}[name]}
            assert ran(tmp_path / "work", talk, environment=given).output.decode().split() == ["reached", path]


class Late(Covers):
    """What it has marked is replaced before it is covered, this often."""

    def __init__(self, path: Path, times: int) -> None:
        super().__init__([str(path)])
        self.path, self.times = path, times

    def marked(self, kind: Kind, more: Iterable[str] = ()) -> list[str]:
        found = super().marked(kind, more)
        if kind == "private" and self.times:
            self.times -= 1
            self.path.with_name("new").write_text("gold")
            self.path.with_name("new").rename(self.path)
        return found


def test_what_is_replaced_before_it_is_covered_is_covered_all_the_same(tmp_path: Path) -> None:
    """Marked again, or the program is not started."""
    env = tmp_path / ".env"
    env.write_text("gold")
    cat = program(tmp_path, "cat .env; echo well")
    assert asyncio.run(run_apart(cat, hidden=Late(env, 1))).output == b"well\n"
    with pytest.raises(NotStartedError, match="it has to be hidden, and is another one than a moment ago"):
        asyncio.run(run_apart(cat, hidden=Late(env, 900)))


def test_a_program_is_not_started_where_its_own_folder_is_hidden(tmp_path: Path) -> None:
    """It would be in the folder below the cover."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_text("x")
    with pytest.raises(NotStartedError, match=str(tmp_path)):
        ran(tmp_path / "a", "cat b", hidden=(str(tmp_path),))


def test_what_stays_within_reach_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where less than name spaces can be had, and where the config wants none."""
    found = {"apart": "unshare: Operation not permitted", "closed": "no"}
    monkeypatch.setattr(apart, "_problem", lambda how_far: found.get(how_far, ""))
    assert apart._tried() == Distance("held", "can read the .env files with keys", found["apart"])
    monkeypatch.setattr(apart, "_found", [])
    assert asyncio.run(apart.distance()).said.endswith(".env files with keys (unshare: Operation not permitted)")
    assert "model.agent_isolated is false" in asyncio.run(apart.distance(isolated=False)).said


def trials(monkeypatch: pytest.MonkeyPatch, *outcomes: object) -> None:
    """What comes of each trial, one after another; after them they are real."""
    real, coming = subprocess.run, list(outcomes)

    def run(*words: Any, **how: Any) -> Any:
        outcome = coming.pop(0) if coming else None
        if isinstance(outcome, Exception):
            raise outcome
        return outcome or real(*words, **how)

    monkeypatch.setattr(apart.subprocess, "run", run)
    monkeypatch.setattr(apart, "_BETWEEN", 0.0)
    monkeypatch.setattr(apart, "_found", [])


def said_by(code: int, errors: str = "", output: str = "") -> subprocess.CompletedProcess[str]:
    """A trial that ended so."""
    return subprocess.CompletedProcess([], code, output, errors)


SHORT = told_of(OSError(errno.EAGAIN, os.strerror(errno.EAGAIN), "unshare"))
FAILURES = (
    subprocess.TimeoutExpired([], 60),
    OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)),
    said_by(-signal.SIGKILL),
    said_by(1, "Traceback …\nMemoryError"),
    said_by(NOT_STARTED, f"{WHY_NOT_STARTED}{SHORT}\n"),
)


@pytest.mark.parametrize("failure", FAILURES, ids=["late", "no process", "killed", "raised", "short of something"])
def test_a_trial_that_failed_says_nothing_of_what_is_possible(failure: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is repeated; where all fail, that is an error, and the next attempt tries it again."""
    trials(monkeypatch)
    possible = asyncio.run(apart.distance())
    trials(monkeypatch, failure, failure)
    assert asyncio.run(apart.distance()) == possible
    trials(monkeypatch, failure, failure, failure)
    with pytest.raises(BackendError, match="could not be tried 3 times: a trial") as caught:
        asyncio.run(apart.distance())
    assert "model.agent_isolated" in caught.value.hint
    assert asyncio.run(apart.distance()) == possible


def test_what_is_not_possible_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's refusal, and keys that can be read, are answers."""
    why = told_of(OSError(errno.EPERM, os.strerror(errno.EPERM), "unshare"))
    trials(
        monkeypatch, said_by(NOT_STARTED, f"{WHY_NOT_STARTED}{why}\n"), said_by(SEEN, output="it can read"), said_by(0)
    )
    assert asyncio.run(apart.distance()) == Distance("held", "can read the .env files with keys", why)
