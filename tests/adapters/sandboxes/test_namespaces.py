"""Code behind walls: what it may do, and each way out that is closed."""

from __future__ import annotations

import asyncio
import http.server
import os
import sys
import textwrap
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from support.params import parametrized
from support.ready import PATIENCE

from skillopt_es.adapters.sandboxes.launch import Execution, Launch, Limits, Sandbox, SandboxError
from skillopt_es.adapters.sandboxes.namespaces import Namespaces
from skillopt_es.adapters.sandboxes.opening import open_sandbox, problem_with_confinement
from skillopt_es.adapters.sandboxes.unconfined import Unconfined
from skillopt_es.errors import ConfigError

CONFINED = not asyncio.run(problem_with_confinement())
needs_walls = pytest.mark.skipif(not CONFINED, reason="this machine has no user namespaces")
BOTH = [pytest.param(Namespaces, marks=needs_walls, id="confined"), pytest.param(Unconfined, id="unconfined")]


def run(
    code: str,
    *,
    sandbox: type[Namespaces] | type[Unconfined] = Namespaces,
    files: Mapping[str, bytes] | None = None,
    collect: Sequence[str] = (),
    **limits: float,
) -> Execution:
    """What comes of a Python program in a sandbox."""
    here: Sandbox = sandbox()
    launch = Launch(
        command=[here.python, "main.py"],
        files={"main.py": textwrap.dedent(code).encode(), **(files or {})},
        collect=collect,
        limits=Limits(**limits),  # type: ignore[arg-type]
    )
    return asyncio.run(here.run(launch))


# What both do


@pytest.mark.parametrize("sandbox", BOTH)
def test_a_job_reads_its_files_and_gives_files_back(sandbox: type[Namespaces] | type[Unconfined]) -> None:
    """Also from folders; what was not made is not there."""
    code = """
    from pathlib import Path
    Path("made").mkdir()
    Path("made/out.bin").write_bytes(Path("in/data.bin").read_bytes()[::-1])
    print("done")
    """
    ended = run(
        code, sandbox=sandbox, files={"in/data.bin": b"\x00\xff\x10"}, collect=["made/out.bin", "main.py", "nothing"]
    )
    assert ended.well
    assert ended.stdout == "done\n"
    assert ended.files["made/out.bin"] == b"\x10\xff\x00"
    assert set(ended.files) == {"made/out.bin", "main.py"}


@pytest.mark.parametrize("sandbox", BOTH)
def test_standard_input_reaches_the_job(sandbox: type[Namespaces] | type[Unconfined]) -> None:
    """All of it."""
    here: Sandbox = sandbox()
    launch = Launch(
        command=[here.python, "-I", "-c", "import sys; print(len(sys.stdin.buffer.read()))"], stdin=b"x" * 1_000_000
    )
    assert asyncio.run(here.run(launch)).stdout == "1000000\n"


@pytest.mark.parametrize("sandbox", BOTH)
def test_an_error_in_the_code_is_the_codes_own(sandbox: type[Namespaces] | type[Unconfined]) -> None:
    """Its exit code and what it said."""
    ended = run("raise SystemExit('no such sheet')", sandbox=sandbox)
    assert (ended.ended_by, ended.code, ended.stderr) == ("exit", 1, "no such sheet")


@pytest.mark.parametrize("sandbox", BOTH)
def test_a_child_that_goes_on_does_not_make_a_program_late(sandbox: type[Namespaces] | type[Unconfined]) -> None:
    """It ended by itself, whoever still holds its output open."""
    code = """
    import subprocess, sys
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(900)"])
    print("done")
    """
    start = time.monotonic()
    ended = run(code, sandbox=sandbox, wall_seconds=PATIENCE)
    assert (ended.ended_by, ended.code, ended.stdout) == ("exit", 0, "done\n")
    assert time.monotonic() - start < PATIENCE


@pytest.mark.parametrize("sandbox", BOTH)
def test_two_runs_of_a_program_say_the_same(sandbox: type[Namespaces] | type[Unconfined]) -> None:
    """The order of a set of texts depends on a seed that is fixed."""
    code = "print(sorted(set('abcdef'), key=hash))"
    assert run(code, sandbox=sandbox).stdout == run(code, sandbox=sandbox).stdout


@pytest.mark.parametrize("sandbox", BOTH)
def test_sleeping_ends_at_the_deadline(sandbox: type[Namespaces] | type[Unconfined]) -> None:
    """And so do children in sessions of their own, where there are walls."""
    start = time.monotonic()
    ended = run("import time; print('so far', flush=True); time.sleep(900)", sandbox=sandbox, wall_seconds=2.0)
    assert (ended.ended_by, ended.well, ended.stdout) == ("timeout", False, "so far\n")
    assert time.monotonic() - start < PATIENCE


@pytest.mark.slow
@parametrized("sandbox", BOTH, by_default=1)
def test_burning_time_ends_at_the_limit(sandbox: type[Namespaces] | type[Unconfined]) -> None:
    """CPU seconds, not wall."""
    assert run("while True: pass", sandbox=sandbox, cpu_seconds=1, wall_seconds=50).ended_by == "cpu"


@pytest.mark.parametrize("sandbox", BOTH)
def test_taking_all_memory_fails_in_the_code(sandbox: type[Namespaces] | type[Unconfined]) -> None:
    """A MemoryError of its own."""
    ended = run("x = bytearray(1 << 40)", sandbox=sandbox)
    assert not ended.well
    assert "MemoryError" in ended.stderr


@pytest.mark.parametrize("sandbox", BOTH)
def test_a_file_cannot_grow_without_end(sandbox: type[Namespaces] | type[Unconfined]) -> None:
    """The largest file is a limit too, and one that is too large is not given back."""
    code = "f = open('big', 'wb')\nwhile True: f.write(b'x' * 65536)"
    ended = run(code, sandbox=sandbox, collect=["big"], file_bytes=1_000_000)
    assert not ended.well
    assert "File too large" in ended.stderr or ended.ended_by == "signal"
    assert len(ended.files.get("big", b"")) <= 1_000_000


@pytest.mark.parametrize("sandbox", BOTH)
def test_huge_output_is_cut_in_the_middle(sandbox: type[Namespaces] | type[Unconfined]) -> None:
    """The head and the tail are kept."""
    ended = run("print('head'); print('x' * 20_000_000); print('tail')", sandbox=sandbox, output_bytes=1000)
    assert ended.stdout.startswith("head\n")
    assert ended.stdout.endswith("tail\n")
    assert "bytes left out" in ended.stdout
    assert len(ended.stdout) < 1100


@pytest.mark.parametrize("sandbox", BOTH)
@pytest.mark.parametrize("name", ["../escape", "/etc/passwd", "a/../../b", "", ".", "a\0b"])
def test_files_outside_the_folder_are_refused(name: str, sandbox: type[Namespaces] | type[Unconfined]) -> None:
    """As input and as output."""
    here: Sandbox = sandbox()
    for launch in (Launch(command=["true"], files={name: b""}), Launch(command=["true"], collect=[name])):
        with pytest.raises(SandboxError, match="not the name of a file"):
            asyncio.run(here.run(launch))


@pytest.mark.parametrize("sandbox", BOTH)
def test_a_link_is_not_followed_out(sandbox: type[Namespaces] | type[Unconfined], tmp_path: Path) -> None:
    """A file asked for that is a link, or lies behind one, is not given back."""
    secret = tmp_path / "gold.txt"
    secret.write_text("gold")
    code = f"""
    import os
    os.symlink({str(secret)!r}, "one")
    os.symlink({str(tmp_path)!r}, "folder")
    os.symlink("/proc/self/environ", "two")
    """
    ended = run(code, sandbox=sandbox, collect=["one", "folder/gold.txt", "two"])
    assert ended.well
    assert ended.files == {}


@pytest.mark.parametrize("sandbox", BOTH)
def test_the_environment_is_not_inherited(
    sandbox: type[Namespaces] | type[Unconfined], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No key of ours."""
    monkeypatch.setenv("SECRET_KEY", "sk-canary")
    ended = run("import os; print(sorted(os.environ.items()))", sandbox=sandbox)
    assert "canary" not in ended.stdout
    assert "PATH" in ended.stdout


@pytest.mark.parametrize("sandbox", BOTH)
def test_a_program_that_is_not_there(sandbox: type[Namespaces] | type[Unconfined]) -> None:
    """Is an end like any other, with a word why."""
    here: Sandbox = sandbox()
    ended = asyncio.run(here.run(Launch(command=["/no/such/program"])))
    assert not ended.well
    assert "No such file" in ended.stderr


# What only walls do


@needs_walls
def test_nothing_of_this_machine_is_in_sight(tmp_path: Path) -> None:
    """Not the gold file beside the input, not the home, not the project, whatever the path."""
    gold = tmp_path / "gold.xlsx"
    gold.write_text("42")
    code = f"""
    import os
    for path in ({str(gold)!r}, {str(Path(__file__))!r}, "/root/.bashrc", "/etc/passwd", "/etc/shadow", "/home",
                 "../" * 12 + {str(gold)!r}, "/proc/1/root" + {str(gold)!r}, "/sandbox/../" + {str(gold)!r}):
        try:
            print(path, "OPEN", os.listdir(path) if os.path.isdir(path) else open(path).read())
        except OSError as error:
            pass
    """
    ended = run(code)
    assert (ended.stdout, ended.stderr) == ("", "")


@needs_walls
def test_other_processes_cannot_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process but its own, and the environment of the one above it is closed."""
    monkeypatch.setenv("SECRET_KEY", "sk-canary")
    code = """
    import glob, os
    print(len([p for p in os.listdir("/proc") if p.isdigit()]))
    for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
        try:
            assert b"canary" not in open(path, "rb").read()
        except PermissionError:
            print("closed", path)
    try:
        os.kill(1, 9)
    except OSError as error:
        print(error.strerror)
    """
    ended = run(code)
    assert ended.well, ended.stderr
    assert ended.stdout.startswith("2\n")
    assert "closed /proc/1/environ" in ended.stdout


@needs_walls
def test_there_is_no_network() -> None:
    """Not even this machine's own."""
    seen = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.path)
            self.send_response(200)
            self.end_headers()

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        code = f"""
        import socket
        for address in (("127.0.0.1", {server.server_port}), ("1.1.1.1", 53)):
            try:
                socket.create_connection(address, timeout=2)
                print("connected", address)
            except OSError as error:
                print("refused")
        """
        ended = run(code)
        server.shutdown()
    assert ended.stdout == "refused\nrefused\n"
    assert seen == []


@needs_walls
def test_the_system_can_be_read_but_not_written() -> None:
    """Programs and libraries, also not by mounting anew."""
    code = """
    import ctypes, os, sys
    for path in ("/usr/x", "/bin/x", os.path.join(sys.prefix, "x"), os.__file__, "/dev/sda", "/etc/x"):
        try:
            open(path, "w")
            print("wrote", path)
        except OSError:
            pass
    libc = ctypes.CDLL(None, use_errno=True)
    print(libc.mount(b"none", b"/usr", None, 4096 | 32, None), libc.unshare(0x20000), libc.umount2(b"/usr", 2))
    """
    assert run(code).stdout == "-1 -1 -1\n"


@needs_walls
def test_rights_do_not_come_back() -> None:
    """Nobody's user, and programs that give rights give none."""
    code = """
    import os
    status = open("/proc/self/status").read()
    print(os.getuid() != 0, "CapEff:\\t0000000000000000" in status, "NoNewPrivs:\\t1" in status)
    """
    assert run(code).stdout == "True True True\n"


@needs_walls
def test_filling_the_disk_fills_only_its_own() -> None:
    """Many files that are each small enough."""
    code = """
    import os
    written = 0
    try:
        for number in range(10_000):
            with open(f"f{number}", "wb") as file:
                file.write(b"x" * 1_000_000)
            written += 1
    except OSError as error:
        print(error.strerror, written)
    """
    ended = run(code, disk_bytes=20 * (1 << 20))
    assert ended.stdout.startswith("No space left on device")


@needs_walls
def test_a_fork_bomb_is_ended() -> None:
    """Long before the machine feels it."""
    code = """
    import os, time
    while True:
        try:
            os.fork()
        except OSError:
            time.sleep(0.01)
    """
    start = time.monotonic()
    ended = run(code, wall_seconds=2.0, processes=20)
    assert not ended.well
    assert time.monotonic() - start < PATIENCE


@needs_walls
def test_children_in_the_background_end_with_the_job(tmp_path: Path) -> None:
    """Also in a session of their own, with the output closed or open."""
    code = """
    import subprocess, sys
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(900)"], start_new_session=True)
    print("gone")
    """
    start = time.monotonic()
    ended = run(code)
    assert (ended.well, ended.stdout) == (True, "gone\n")
    assert time.monotonic() - start < PATIENCE
    mine = os.getpid()
    assert not [pid for pid in _pids() if "time.sleep(900)" in _command(pid) and pid != mine]


@pytest.mark.slow
@needs_walls
def test_many_jobs_side_by_side_keep_to_themselves() -> None:
    """Each has its own folder and its own output."""
    here = Namespaces(at_once=4)

    async def all_of_them() -> list[Execution]:
        launches = [
            Launch(
                command=[here.python, "-I", "-S", "-c", "import os; print(sorted(os.listdir('.')))"],
                files={f"{n}": b""},
            )
            for n in range(12)
        ]
        return await asyncio.gather(*map(here.run, launches))

    assert [ended.stdout for ended in asyncio.run(all_of_them())] == [f"['{n}']\n" for n in range(12)]


@needs_walls
def test_cancelling_ends_the_job() -> None:
    """Nothing goes on behind the walls."""
    here = Namespaces()
    marker = f"import time; time.sleep(601.{os.getpid()})"

    async def cancelled() -> None:
        task = asyncio.create_task(here.run(Launch(command=[here.python, "-c", marker])))
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    deadline = time.monotonic() + PATIENCE
    while [pid for pid in _pids() if marker in _command(pid)] and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not [pid for pid in _pids() if marker in _command(pid)]


# Opening


def test_without_walls_nothing_runs_unless_the_config_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The refusal names the setting and what it means."""
    monkeypatch.setattr(sys, "platform", "plan9")
    with pytest.raises(ConfigError, match="cannot be confined here") as refusal:
        asyncio.run(open_sandbox("confined"))
    assert "env.sandbox: unconfined" in (refusal.value.hint or "")
    assert asyncio.run(open_sandbox("unconfined")).confines is False


@needs_walls
def test_a_confined_sandbox_opens_here() -> None:
    """It has been tried."""
    assert asyncio.run(open_sandbox("confined")).confines is True


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").glob("[0-9]*")]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
