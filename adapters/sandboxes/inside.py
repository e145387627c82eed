"""
The program that builds the walls and launches a command behind them; Linux only, standard library only.

It has one JSON object on its standard input and the number of a pipe for its report as its argument. It leaves the
user's keyring, enters new mount, process, network, IPC and host name spaces (a user space, too, where it is not root),
and forks. The fork is process 1 there: it makes a root directory in memory with the system's programs and libraries to
read, starts the command without any privilege and behind a filter of system calls, waits, ends whatever is left, and
reports as lines of JSON: that the command begins, and how it ended. When it ends, the kernel ends everything behind it.
What happens before the first line is the world's fault, what happens after it the command's.

The command may have the user of process 1, which therefore handles no signal, cannot be traced, and is out of reach of
the calls that slow processes down.
"""

from __future__ import annotations

import base64
import fcntl
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

from skillopt_es.adapters.sandboxes import kernel
from skillopt_es.adapters.sandboxes.kernel import BIND, NO_DEV, NO_EXEC, NO_SUID, PRIVATE, READ_ONLY, RECURSIVE, REMOUNT
from skillopt_es.adapters.sandboxes.places import SYSTEM
from skillopt_es.adapters.sandboxes.watch import Watch

NOBODY = 65534  # the kernel's overflowuid: whom a user stands for that a name space does not know
# Users that no machine has, one for each launch: what the kernel counts by user is then counted by launch.
FIRST_USER = 2_000_000_000
WORK = "/sandbox"  # a name that no machine has at its root, so that nothing to read can lie inside
# How late an end or a limit that is passed is seen; a short program is looked at ten times as often.
POLL_SECONDS = 0.005
SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL

SETTINGS = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/alternatives")
# As /dev/zero there is the machine's /dev/full: it reads the same and cannot be mapped as memory that nobody counts.
DEVICES = {"null": "null", "zero": "full", "full": "full", "random": "random", "urandom": "urandom"}
# What says how this machine was started, and which keys there are.
COVERED = ("/proc/cmdline", "/proc/keys", "/proc/key-users")


def main() -> None:
    """Runs the launch that stands on the standard input."""
    report_to = int(sys.argv[1])
    launch = json.load(sys.stdin.buffer)
    # The command must not be able to write the report.
    os.set_inheritable(report_to, False)
    kernel.leave_keyring()
    # Opened while the machine's /sys can still be reached.
    launch.update(user=FIRST_USER + os.getpid(), **open_group(launch["group"]))
    enter_spaces()
    with suppress(OSError):  # where there can be none, the path of this group of processes can be read
        kernel.unshare(kernel.NEW_CGROUP)
    # When the parent is killed from outside, so is this process.
    kernel.prctl(kernel.DIE_WITH_PARENT, signal.SIGKILL)
    first = os.fork()
    if first:
        _, status = os.waitpid(first, 0)
        sys.exit(os.waitstatus_to_exitcode(status) and 1)
    # Then process 1 goes too, and everything behind the walls with it.
    kernel.prctl(kernel.DIE_WITH_PARENT, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # what process 1 does not handle, the kernel does not deliver
    try:
        processes = build_root(launch["readable"], launch["disk_bytes"])
        put_files(launch["files"], launch["programs"])
        command, watch = begin(launch, processes)
    except OSError as error:
        tell(report_to, {"refused": f"{error.filename or 'the sandbox'}: {error.strerror}"})
        # Not sys.exit: a fork must not run the clean-up of the process that it is a copy of.
        os._exit(0)
    tell(report_to, {"started": True})
    tell(report_to, finish(launch, command, watch))
    os._exit(0)


def tell(report_to: int, line: dict[str, Any]) -> None:
    """One line of the report."""
    with open(report_to, "wb", closefd=False) as out:
        out.write(json.dumps(line).encode() + b"\n")


def open_group(folder: str) -> dict[str, int]:
    """The files by which a process joins the launch's control group, and by which its end is known; none without it."""
    if not folder:
        return {}
    return {
        "join": os.open(f"{folder}/cgroup.procs", os.O_WRONLY),
        "events": os.open(f"{folder}/memory.events", os.O_RDONLY),
    }


def enter_spaces() -> None:
    """Leaves this machine's name spaces; what may be seen of it is decided by `build_root`."""
    spaces = kernel.NEW_NS | kernel.NEW_PID | kernel.NEW_NET | kernel.NEW_IPC | kernel.NEW_UTS
    if os.geteuid() == 0:
        with suppress(OSError):  # the root of a container may need a user space, too
            kernel.unshare(spaces)
            return
    was = os.geteuid(), os.getegid()
    kernel.unshare(spaces | kernel.NEW_USER)
    kernel.name_user(1000, 1000, was=was)


def build_root(readable: list[str], disk_bytes: int) -> int:
    """A root directory in memory: the system to read, an empty work folder, and nothing else; returns a /proc."""
    kernel.mount("none", "/", None, RECURSIVE | PRIVATE)
    kernel.mount("tmpfs", "/tmp", "tmpfs", NO_SUID | NO_DEV, f"size={disk_bytes},nr_inodes=65536,mode=755")
    os.mkdir("/tmp/old")
    # Not chroot, from which root finds its way out; and the old root can be taken away below.
    kernel.checked(kernel.libc.pivot_root(b"/tmp", b"/tmp/old"), "pivot_root")
    os.chdir("/")
    for folder in (WORK, "/tmp"):  # mounted first: what is shown may lie below /tmp, too
        os.makedirs(folder)
        os.chmod(folder, 0o1777)
        kernel.mount(folder, folder, None, BIND)
    for path in [*SYSTEM, *SETTINGS, *readable]:
        show(path)
    os.mkdir("/dev")
    for name, device in DEVICES.items():
        Path(f"/dev/{name}").touch()
        kernel.mount(f"/old/dev/{device}", f"/dev/{name}", None, BIND)
    os.mkdir("/proc")
    try:
        kernel.mount("proc", "/proc", "proc", NO_SUID | NO_DEV | NO_EXEC)
    except PermissionError:  # inside some containers a new /proc is refused; then the command has none
        processes = os.open("/old/proc", os.O_RDONLY | os.O_DIRECTORY)
    else:
        processes = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY)
        for path in filter(os.path.exists, COVERED):
            kernel.mount("/dev/null", path, None, BIND)
    kernel.checked(kernel.libc.umount2(b"/old", kernel.DETACH), "umount2")
    os.rmdir("/old")
    kernel.mount("none", "/", None, BIND | REMOUNT | READ_ONLY | NO_SUID | NO_DEV)  # of the disk only these two stay
    return processes


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
    kernel.mount(old, path, None, BIND | RECURSIVE)
    # Flags that the machine set may be kept but not dropped in a user space of one's own.
    kept = os.statvfs(path).f_flag & (NO_SUID | NO_DEV | NO_EXEC)
    kernel.mount("none", path, None, BIND | REMOUNT | READ_ONLY | NO_SUID | kept)


def put_files(files: dict[str, str], programs: list[str]) -> None:
    """Writes the launch's files into the work folder."""
    for name, content in files.items():
        path = os.path.join(WORK, name)
        folder = os.path.dirname(path)
        os.makedirs(folder, exist_ok=True)
        os.chmod(folder, 0o1777)
        Path(path).write_bytes(base64.b64decode(content))
        os.chmod(path, 0o777 if name in programs else 0o666)


def begin(launch: dict[str, Any], processes: int) -> tuple[int, Watch]:
    """Starts the command; raises OSError for what went wrong before it could do anything."""
    # Nobody, of whatever user, can trace it or look into its /proc folder.
    kernel.close_memory()
    watch = Watch(
        processes,
        most_processes=launch["processes"] + 1,
        most_bytes=launch["memory_bytes"],
        socket_bytes=launch["socket_bytes"],
    )
    # A first look: what goes wrong with it is the sandbox's fault, and not yet the command's.
    watch.exceeded()
    if time.monotonic() > launch["begin_until"]:
        raise OSError(0, "this machine is so busy that it took too long", "the sandbox")
    said, says = os.pipe()  # closed by the start of the command
    command = os.fork()
    if not command:
        become(launch, says)
    os.close(says)
    with open(said, "rb") as trouble:
        what = trouble.read().decode()
    if what:
        raise OSError(0, what, "the command's limits")
    return command, watch


def become(launch: dict[str, Any], says: int) -> NoReturn:
    """Turns this process into the command, with limits and without privileges."""
    try:
        if "join" in launch:
            with suppress(OSError):  # then the watch alone keeps the limit
                # 0 stands for the process that writes it.
                os.write(launch["join"], b"0")
        # Nothing that process 1 has opened goes to the command, least of all the report and the group.
        os.closerange(3, says)
        os.closerange(says + 1, 256)
        limit(launch)
        give_up_rights(launch["user"])
        # After NO_NEW_PRIVILEGES, without which only root may set a filter.
        kernel.set_filter(base64.b64decode(launch["filter"]))
    except (OSError, ValueError) as error:  # the second for a limit above the one that this machine sets
        os.write(says, str(error).encode())
        os._exit(127)
    try:
        os.execve(launch["command"][0], launch["command"], launch["environment"])
    except OSError as error:
        os.write(2, f"{launch['command'][0]} cannot be started: {error.strerror}\n".encode())
        os._exit(127)


def limit(launch: dict[str, Any]) -> None:
    """The standard input, the folder and the limits of the command."""
    stdin = os.memfd_create("stdin", os.MFD_ALLOW_SEALING)
    os.write(stdin, base64.b64decode(launch["stdin"]))
    os.lseek(stdin, 0, os.SEEK_SET)
    # Sealed: otherwise the command could grow it into memory that no limit counts.
    fcntl.fcntl(stdin, fcntl.F_ADD_SEALS, SEALS)
    os.dup2(stdin, 0)
    os.setsid()
    os.chdir(WORK)
    for what, value in (
        (resource.RLIMIT_CPU, launch["cpu_seconds"]),
        (resource.RLIMIT_AS, launch["memory_bytes"]),
        (resource.RLIMIT_FSIZE, launch["file_bytes"]),
        (resource.RLIMIT_NPROC, launch["processes"]),
        (resource.RLIMIT_NOFILE, 256),
        (resource.RLIMIT_CORE, 0),
    ):
        # At the soft limit there is a signal of its own, at the hard one a plain kill: only the first tells the cause.
        hard = value + 1 if what == resource.RLIMIT_CPU else value
        resource.setrlimit(what, (value, hard))


def give_up_rights(user: int) -> None:
    """No privilege is left, and none comes back."""
    if os.geteuid() == 0:
        # First of all: without root's rights they could not be given up any more.
        os.setgroups([])
        try:
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
        except OSError:  # a container that has few users
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
    kernel.prctl(kernel.NO_NEW_PRIVILEGES, 1)


def finish(launch: dict[str, Any], command: int, watch: Watch) -> dict[str, Any]:
    """Waits for the command's end, its deadline or a limit, and says how it ended."""
    deadline = time.monotonic() + launch["wall_seconds"]
    ended_by, status = wait(command, deadline, watch)
    with suppress(ProcessLookupError):
        # -1 is everybody but process 1 itself.
        os.kill(-1, signal.SIGKILL)
    with suppress(ChildProcessError):  # until nobody is left to change a file
        while True:
            os.waitpid(-1, 0)
    if not ended_by and ran_out(launch):
        ended_by = "memory"
    if ended_by:
        return {"ended_by": ended_by, "code": -signal.SIGKILL, "files": collected(launch)}
    code = os.waitstatus_to_exitcode(status)
    ended_by = "exit" if code >= 0 else "cpu" if code == -signal.SIGXCPU else "signal"
    return {"ended_by": ended_by, "code": code, "files": collected(launch)}


def ran_out(launch: dict[str, Any]) -> bool:
    """Whether the kernel ended the launch's control group for what it took."""
    if "events" not in launch:
        return False
    counts = dict(line.split() for line in os.pread(launch["events"], 4096, 0).splitlines())
    return int(counts[b"oom_kill"]) > 0


def wait(command: int, deadline: float, watch: Watch) -> tuple[str, int]:
    """The command's wait status, or what ended it: `timeout` (also when it breeds too many processes) or `memory`."""
    pause = POLL_SECONDS / 10
    while time.monotonic() < deadline:
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended == command:
            return "", status
        passed = watch.exceeded()
        if passed:
            return "memory" if passed == "memory" else "timeout", 0
        if ended == 0:
            time.sleep(pause)
            pause = min(2 * pause, POLL_SECONDS)
    return "timeout", 0


def collected(launch: dict[str, Any]) -> dict[str, str]:
    """The asked-for files that are plain files of the work folder and not too large."""
    found = {}
    for name in launch["collect"]:
        path = os.path.join(WORK, name)
        with suppress(OSError):
            # A folder on the way may be a link that the command made.
            if os.path.realpath(path) != os.path.normpath(path):
                continue
            # Without O_NONBLOCK, opening a named pipe would wait for a writer for ever.
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with open(descriptor, "rb") as file:
                facts = os.fstat(descriptor)
                if stat.S_ISREG(facts.st_mode) and facts.st_size <= launch["file_bytes"]:
                    found[name] = base64.b64encode(file.read(launch["file_bytes"])).decode()
    return found
