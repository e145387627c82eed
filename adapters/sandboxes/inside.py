"""
The program that builds the walls and runs a job behind them; Linux only, standard library only.

Started as `python -I inside.py REPORT_FD` with one JSON object on its standard input. It enters new mount, process,
network, IPC and host name spaces (and a user space of its own where it is not root), and forks. The fork is process 1
there: it makes a root directory in memory with the system's programs and libraries to read, starts the command without
any privilege, waits, ends whatever is left, and reports as JSON. When it ends, the kernel ends everything behind it.
"""

from __future__ import annotations

import base64
import ctypes
import json
import os
import resource
import signal
import stat
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

NEW_USER, NEW_NS, NEW_PID, NEW_NET, NEW_IPC, NEW_UTS = 0x10000000, 0x20000, 0x20000000, 0x40000000, 0x8000000, 0x4000000
READ_ONLY, NO_SUID, NO_DEV, NO_EXEC, REMOUNT, BIND, RECURSIVE, PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
DETACH = 2
DIE_WITH_PARENT, DUMPABLE, NO_NEW_PRIVILEGES = 1, 4, 38
NOBODY = 65534
WORK = "/sandbox"  # a name that no machine has at its root, so that nothing to read can lie inside
POLL_SECONDS = 0.005

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
SETTINGS = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/alternatives")
DEVICES = ("null", "zero", "full", "random", "urandom")

libc = ctypes.CDLL(None, use_errno=True)


def main(report_to: int) -> None:
    """Runs the job that stands on the standard input."""
    job = json.load(sys.stdin.buffer)
    os.set_inheritable(report_to, False)
    enter_spaces()
    first = os.fork()
    if first:
        _, status = os.waitpid(first, 0)
        sys.exit(os.waitstatus_to_exitcode(status) and 1)
    checked(libc.prctl(DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0), "prctl")
    try:
        build_root(job["readable"], job["disk_bytes"])
        put_files(job["files"], job["programs"])
        report = run(job)
    except OSError as error:
        report = {"refused": f"{error.filename or 'the sandbox'}: {error.strerror}"}
    with open(report_to, "wb") as out:
        out.write(json.dumps(report).encode())
    os._exit(0)


def enter_spaces() -> None:
    """Leaves this machine's name spaces; what may be seen of it is decided by `build_root`."""
    spaces = NEW_NS | NEW_PID | NEW_NET | NEW_IPC | NEW_UTS
    if os.geteuid() == 0 and libc.unshare(spaces) == 0:
        return
    user, group = os.geteuid(), os.getegid()
    checked(libc.unshare(spaces | NEW_USER), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"1000 {user} 1"), ("gid_map", f"1000 {group} 1")):
        Path(f"/proc/self/{name}").write_text(text)


def build_root(readable: list[str], disk_bytes: int) -> None:
    """A root directory in memory: the system to read, an empty work folder, and nothing else."""
    mount("none", "/", None, RECURSIVE | PRIVATE)
    mount("tmpfs", "/tmp", "tmpfs", NO_SUID | NO_DEV, f"size={disk_bytes},nr_inodes=65536,mode=755")
    os.mkdir("/tmp/old")
    checked(libc.pivot_root(b"/tmp", b"/tmp/old"), "pivot_root")
    os.chdir("/")
    for path in [*SYSTEM, *SETTINGS, *readable]:
        show(path)
    os.mkdir("/dev")
    for name in DEVICES:
        Path(f"/dev/{name}").touch()
        mount(f"/old/dev/{name}", f"/dev/{name}", None, BIND)
    os.mkdir("/proc")
    with suppress(PermissionError):  # inside some containers a new /proc is refused; then there is none
        mount("proc", "/proc", "proc", NO_SUID | NO_DEV | NO_EXEC)
    for folder in (WORK, "/tmp"):
        os.makedirs(folder, exist_ok=True)
        os.chmod(folder, 0o1777)
    checked(libc.umount2(b"/old", DETACH), "umount2")
    os.rmdir("/old")


def show(path: str) -> None:
    """Makes a file or folder of the machine readable at the same place; a link stays a link."""
    old = f"/old{path}"
    if os.path.islink(old):
        if not os.path.lexists(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            os.symlink(os.readlink(old), path)
        return
    if not os.path.exists(old) or os.path.exists(path):
        return
    if os.path.isdir(old):
        os.makedirs(path)
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(path).touch()
    mount(old, path, None, BIND | RECURSIVE)
    # Flags that the machine set may be kept but not dropped in a user space of one's own.
    kept = os.statvfs(path).f_flag & (NO_SUID | NO_DEV | NO_EXEC)
    mount("none", path, None, BIND | REMOUNT | READ_ONLY | NO_SUID | kept)


def put_files(files: dict[str, str], programs: list[str]) -> None:
    """Writes the job's files into the work folder."""
    for name, content in files.items():
        path = os.path.join(WORK, name)
        folder = os.path.dirname(path)
        os.makedirs(folder, exist_ok=True)
        os.chmod(folder, 0o1777)
        Path(path).write_bytes(base64.b64decode(content))
        os.chmod(path, 0o777 if name in programs else 0o666)


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Starts the command, waits for its end or its deadline, and says how it ended."""
    checked(libc.prctl(DUMPABLE, 0, 0, 0, 0), "prctl")
    deadline = time.monotonic() + job["wall_seconds"]
    command = os.fork()
    if not command:
        become(job)
    status = wait(command, deadline, job["processes"])
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    if status is None:
        os.waitpid(command, 0)
        return {"ended_by": "timeout", "code": -signal.SIGKILL, "files": collected(job)}
    code = os.waitstatus_to_exitcode(status)
    ended_by = "exit" if code >= 0 else "cpu" if code == -signal.SIGXCPU else "signal"
    return {"ended_by": ended_by, "code": code, "files": collected(job)}


def become(job: dict[str, Any]) -> NoReturn:
    """Turns this process into the command, with limits and without privileges."""
    try:
        stdin = os.memfd_create("stdin")
        os.write(stdin, base64.b64decode(job["stdin"]))
        os.lseek(stdin, 0, os.SEEK_SET)
        os.dup2(stdin, 0)
        os.closerange(3, 256)
        os.setsid()
        os.chdir(WORK)
        for limit, value in (
            (resource.RLIMIT_CPU, job["cpu_seconds"]),
            (resource.RLIMIT_AS, job["memory_bytes"]),
            (resource.RLIMIT_FSIZE, job["file_bytes"]),
            (resource.RLIMIT_NPROC, job["processes"]),
            (resource.RLIMIT_NOFILE, 256),
            (resource.RLIMIT_CORE, 0),
        ):
            hard = value + 1 if limit == resource.RLIMIT_CPU else value
            resource.setrlimit(limit, (value, hard))
        if os.geteuid() == 0:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        checked(libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0), "prctl")
        os.execve(job["command"][0], job["command"], job["environment"])
    except OSError as error:
        os.write(2, f"{job['command'][0]} cannot be started: {error.strerror}\n".encode())
        os._exit(127)


def wait(command: int, deadline: float, processes: int) -> int | None:
    """The command's wait status, or None at the deadline or when it breeds more processes than it may."""
    pause = POLL_SECONDS / 10
    while time.monotonic() < deadline:
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended == command:
            return status
        if ended == 0:
            if sum(name.isdigit() for name in os.listdir("/proc")) > processes + 2:
                return None
            time.sleep(pause)
            pause = min(2 * pause, POLL_SECONDS)
    return None


def collected(job: dict[str, Any]) -> dict[str, str]:
    """The asked-for files that are plain files of the work folder and not too large."""
    found = {}
    for name in job["collect"]:
        path = os.path.join(WORK, name)
        with suppress(OSError):
            if os.path.realpath(path) != os.path.normpath(path):
                continue
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with open(descriptor, "rb") as file:
                facts = os.fstat(descriptor)
                if stat.S_ISREG(facts.st_mode) and facts.st_size <= job["file_bytes"]:
                    found[name] = base64.b64encode(file.read(job["file_bytes"])).decode()
    return found


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    """mount(2)."""
    result = libc.mount(
        source.encode(), target.encode(), kind.encode() if kind else None, ctypes.c_ulong(flags), options.encode()
    )
    checked(result, f"mount {target}")


def checked(result: int, what: str) -> None:
    """Raises OSError for a system call that failed."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


if __name__ == "__main__":
    main(int(sys.argv[1]))
