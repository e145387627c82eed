"""
The program that keeps a command apart from the other processes of this machine; Linux only, standard library only.

Its arguments: how far apart, the process that starts it, three lists of paths (each with its length before it) and the
command. The command keeps its user, its network and its files, but for the paths: it sees nothing of the hidden ones,
has empty folders of its own in place of the private ones, and cannot change the fixed ones. Before a hidden or private
path stand its device and inode: something else at that path is not what has to be hidden, and nothing is started.

    apart    user, mount and process spaces of its own: there are no other processes, and all that it started ends with
             the first process in there
    closed   a user space alone: it sees other processes, but the kernel lets it look into none
    held     no space: as root it loses the rights by which it could look into processes that have them
    let      nothing of that

However far apart, nothing that the command has started outlives it, this program, or the process that started that.
What lies above paths cannot be taken away from below: the command gets spaces below those in which it was laid there.
"""

from __future__ import annotations

import errno
import os
import resource
import select
import signal
import stat
import sys
from contextlib import suppress

from skillopt_es.adapters.sandboxes import kernel
from skillopt_es.adapters.sandboxes.kernel import BIND, NO_DEV, NO_EXEC, NO_SUID, PRIVATE, READ_ONLY, RECURSIVE, REMOUNT
from skillopt_es.adapters.sandboxes.start import END, FOR_NOW, NOT_STARTED, WHY_NOT_STARTED

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes as long to import as all the rest
    from typing import NoReturn

# What is asked of this program comes as signals that wait until they are taken: nothing is lost in between.
_TAKEN = {signal.SIGCHLD, signal.SIGTERM, END}
_ROOT = 0  # its number on every Unix
_PASSING = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EINTR, errno.ESTALE)
_SYSTEM_RIGHTS = (
    # those that reach into other processes, into the kernel and its devices, or give a program other rights
    *(kernel.SETPCAP, kernel.SETFCAP, kernel.SYS_PTRACE, kernel.SYS_ADMIN, kernel.SYS_MODULE, kernel.SYS_RAWIO),
    *(kernel.DAC_READ_SEARCH, kernel.SYS_BOOT, kernel.MKNOD, kernel.SYSLOG, kernel.AUDIT_WRITE, kernel.AUDIT_CONTROL),
    *(kernel.MAC_ADMIN, kernel.MAC_OVERRIDE, kernel.PERFMON, kernel.BPF, kernel.CHECKPOINT_RESTORE),
)


def main() -> None:
    """Runs the command, and ends as it ends."""
    signal.pthread_sigmask(signal.SIG_BLOCK, _TAKEN)
    how_far, parent, *words = sys.argv[1:]
    hidden, private, fixed = taken(words), taken(words), taken(words)
    environment = given_environment()
    try:
        root = os.geteuid() == _ROOT
        if how_far == "apart":
            outer = os.geteuid(), os.getegid()
            # Some file systems want a root in their space; the command is in the next one, where it is who it was.
            enter_user_space(*maps(root, inside=(_ROOT, _ROOT)))
            kernel.unshare(kernel.NEW_NS | kernel.NEW_PID)
            hold_on_to(int(parent))
            end_as(run_apart(hidden, private, fixed, root=root, outer=outer, command=words, environment=environment))
        if how_far == "closed":
            enter_user_space(*maps(root, inside=(os.geteuid(), os.getegid())))
        hold_on_to(int(parent))
        kernel.prctl(kernel.CHILD_SUBREAPER, 1)
        command = begin(words, environment, few_rights=root and how_far == "held")
    except OSError as error:
        refuse(told_of(error))
    status = hold(command)
    end_the_rest()
    end_as(status)


def taken(words: list[str]) -> list[str]:
    """The next list of the arguments, which has its length before it."""
    length = int(words.pop(0))
    found, words[:length] = words[:length], []
    return found


def given_environment() -> dict[bytes, bytes]:
    """The variables as they were given: Python adds one of its own where no language is set."""
    with open("/proc/self/environ", "rb") as file:
        pairs = [each.partition(b"=") for each in file.read().split(b"\0")]
    return {name: value for name, equals, value in pairs if equals}


def told_of(error: OSError) -> str:
    """What went wrong, without what it says twice."""
    again = FOR_NOW if error.errno in _PASSING else ""
    return f"{again}{error.filename or 'its name spaces'}: {error.strerror}"


def refuse(why: str) -> NoReturn:
    """Ends without the command."""
    os.write(2, f"{WHY_NOT_STARTED}{why}\n".encode())
    os._exit(NOT_STARTED)


def hold_on_to(parent: int) -> None:
    """When the process that started this one dies, however it does, this is asked to end."""
    kernel.prctl(kernel.DIE_WITH_PARENT, END)
    if os.getppid() != parent:
        os._exit(1)


# --- name spaces -----------------------------------------------------------------------------------------------------


def maps(root: bool, *, inside: tuple[int, int]) -> tuple[list[str], list[str]]:
    """Who is who in a user space: for root everybody, where that can be had; else the user alone."""
    users, groups = (f"{one} {own} 1" for one, own in zip(inside, (os.geteuid(), os.getegid()), strict=True))
    if not root:
        return [users], [groups]
    return [everybody("uid_map"), users], [everybody("gid_map"), groups]


def everybody(name: str) -> str:
    """All users or groups that there are here, as themselves."""
    with open(f"/proc/self/{name}", encoding="ascii") as file:
        extents = [line.split() for line in file]
    return "\n".join(f"{first} {first} {count}" for first, _, count in extents)


def enter_user_space(users: list[str], groups: list[str]) -> None:
    """A new user space; who is who there is written by a process that stays outside, which may write more."""
    reading, writing = os.pipe()
    helper = os.fork()
    if not helper:
        os.close(writing)
        os._exit(0 if os.read(reading, 1) and named(users, groups) else 1)
    os.close(reading)
    try:
        kernel.unshare(kernel.NEW_USER)
        os.write(writing, b".")
    finally:
        os.close(writing)
        _, status = os.waitpid(helper, 0)
    if status:
        raise OSError(0, "the users of a new user space cannot be named", "user spaces")


def named(users: list[str], groups: list[str]) -> bool:
    """Says who is who in the space of this process's parent: the first of the maps that the kernel takes."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        parent = next(line.split()[1] for line in file if line.startswith("PPid:"))
    for user, group in zip(users, groups, strict=True):
        with suppress(OSError):
            kernel.name_users(user, group, process=parent, alone=user == users[-1])
            return True
    return False


def lay_out(hidden: list[str], private: list[str], fixed: list[str], *, bare: list[str]) -> None:
    """The files as the command sees them; the `bare` ones are hidden, too, and known by their paths alone."""
    here = os.getcwd()
    kernel.mount("none", "/", None, RECURSIVE | PRIVATE)
    for path in fixed:
        fix(path)
    pin([*(path_of(mark) for mark in (*hidden, *private)), *bare])
    # All are opened before one is covered: one may lie in another.
    covered = [*map(opened, hidden), *(os.open(path, os.O_PATH) for path in bare)]
    emptied = [opened(mark) for mark in private]
    for descriptor in covered:
        cover(descriptor)
    for descriptor in emptied:
        if is_folder(descriptor):
            kernel.mount("tmpfs", f"/proc/self/fd/{descriptor}", "tmpfs", NO_SUID | NO_DEV, "mode=700")
    for descriptor in (*covered, *emptied):
        os.close(descriptor)
    # The folder that this process came in is the one below all that, where nothing is covered.
    os.chdir(here)
    with suppress(OSError):  # no terminals here, or none of its own
        kernel.mount("devpts", "/dev/pts", "devpts", NO_SUID | NO_EXEC, "newinstance,ptmxmode=0666,mode=620")
    with suppress(PermissionError):  # refused inside some containers: it sees other processes, but into none
        kernel.mount("proc", "/proc", "proc", NO_SUID | NO_DEV | NO_EXEC)


def path_of(mark: str) -> str:
    """The path after what says what is there."""
    return mark.partition(":")[2]


def opened(mark: str) -> int:
    """What is at a path, to be covered wherever it is moved; raises OSError if it is not what was expected there."""
    path = path_of(mark)
    with suppress(FileNotFoundError, NotADirectoryError):
        descriptor = os.open(path, os.O_PATH)
        facts = os.fstat(descriptor)
        if mark == f"{facts.st_dev}.{facts.st_ino}:{path}":
            return descriptor
    raise OSError(errno.ESTALE, "it has to be hidden, and is another one than a moment ago", path)


def pin(paths: list[str]) -> None:
    """Makes each folder above the paths a mount: it can be neither renamed nor removed, with what is hidden in it."""
    above: set[str] = set()
    for path in map(os.path.realpath, paths):
        while (path := os.path.dirname(path)) != "/":
            above.add(path)
    for folder in sorted(above):  # from the outside to the inside: an outer one would lie over an inner one
        if not os.path.ismount(folder):
            kernel.mount(folder, folder, None, BIND | RECURSIVE)


def disks() -> list[str]:
    """The disks as they lie there, which root may read whatever hides their files."""
    found: list[str] = []
    for folder, folders, names in os.walk("/dev"):
        folders[:] = [name for name in folders if not os.path.ismount(os.path.join(folder, name))]  # shared memory, say
        found += filter(is_a_disk, (os.path.join(folder, name) for name in names))
    return found


def is_a_disk(path: str) -> bool:
    """Whether it is one, or asks one in its own language (/dev/sg0, /dev/bsg/0:0:0:0)."""
    mode = os.lstat(path).st_mode
    return stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and path.startswith(("/dev/sg", "/dev/bsg/")))


def cover(descriptor: int) -> None:
    """Lays nothing over a file or folder."""
    path = f"/proc/self/fd/{descriptor}"
    if is_folder(descriptor):
        kernel.mount("tmpfs", path, "tmpfs", NO_SUID | NO_DEV | READ_ONLY, "size=4k,mode=755")
    else:
        kernel.mount("/dev/null", path, None, BIND)


def is_folder(descriptor: int) -> bool:
    """Whether it is one."""
    return stat.S_ISDIR(os.fstat(descriptor).st_mode)


def fix(path: str) -> None:
    """Makes a folder or file read-only; flags that the machine set are kept, as they cannot be dropped."""
    if os.path.exists(path):
        kernel.mount(path, path, None, BIND | RECURSIVE)
        kept = os.statvfs(path).f_flag & (NO_SUID | NO_DEV | NO_EXEC)
        kernel.mount("none", path, None, BIND | REMOUNT | READ_ONLY | kept)


# --- processes -------------------------------------------------------------------------------------------------------


def run_apart(
    hidden: list[str],
    private: list[str],
    fixed: list[str],
    *,
    root: bool,
    outer: tuple[int, int],
    command: list[str],
    environment: dict[bytes, bytes],
) -> int:
    """The command's wait status; the first process of its space, and with it all others, are gone then."""
    reading, writing = os.pipe()
    number = os.getpid()
    first = os.fork()
    if not first:
        os.close(reading)
        # Killed with this one; and if this one is gone already, nobody reads the pipe.
        kernel.prctl(kernel.DIE_WITH_PARENT, signal.SIGKILL)
        poll = select.poll()
        poll.register(writing, 0)
        if poll.poll(0):
            os._exit(1)
        try:
            lay_out(hidden, private, fixed, bare=disks() if root else [])
            count_from(number)
            status = hold(begin(command, environment, space=maps(root, inside=outer)))
            os.write(writing, f"{status}".encode())
        except OSError as error:
            os.write(writing, told_of(error).encode())
        os._exit(0)
    os.close(writing)
    while not os.waitpid(first, os.WNOHANG)[0]:
        if signal.sigwait({signal.SIGCHLD, END}) == END:
            os.kill(first, signal.SIGKILL)
    with open(reading, encoding="utf-8") as report:
        said = report.read()
    if not said:
        return int(signal.SIGKILL)
    if not said.isdecimal():
        refuse(said)
    return int(said)


def count_from(number: int) -> None:
    """The processes here get other numbers than those of other spaces, by which many programs name their files."""
    with suppress(OSError), open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as file:  # not in each kernel
        file.write(f"{number}")


def begin(
    command: list[str],
    environment: dict[bytes, bytes],
    *,
    space: tuple[list[str], list[str]] | None = None,
    few_rights: bool = False,
) -> int:
    """Starts the command, in user and mount spaces of its own or with fewer rights; raises OSError if it cannot."""
    reading, writing = os.pipe()  # closed by the start of the command
    started = os.fork()
    if not started:
        try:
            if space is not None:
                enter_user_space(*space)
                kernel.unshare(kernel.NEW_NS)
            if few_rights:
                for right in _SYSTEM_RIGHTS:
                    kernel.drop_right(right)
            kernel.prctl(kernel.DIE_WITH_PARENT, signal.SIGKILL)
            os.setsid()
            for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _TAKEN)
        except OSError as error:
            os.write(writing, told_of(error).encode())
            os._exit(1)
        try:
            os.execvpe(command[0], command, environment)
        except OSError as error:
            os.write(writing, f"{command[0]} cannot be started: {error.strerror}".encode())
        os._exit(1)
    os.close(writing)
    with open(reading, encoding="utf-8") as trouble:
        why = trouble.read()
    if why:
        os.waitpid(started, 0)
        what, _, how = why.rpartition(": ")
        raise OSError(0, how, what)
    return started


def hold(command: int) -> int:
    """The command's wait status; meanwhile what is left to this process is waited for, and what is asked is done."""
    while True:
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended == command:
            return status
        if not ended:
            asked = signal.sigwait(_TAKEN)
            with suppress(ProcessLookupError):
                if asked == signal.SIGTERM:
                    os.killpg(command, signal.SIGTERM)
                elif asked == END and os.getpid() != 1:  # process 1 is asked by nobody but the command
                    os.kill(command, signal.SIGKILL)


def end_the_rest() -> None:
    """Ends what the command has left: all that it started comes to this process when its parent has ended."""
    while True:
        held = sum(map(kill, children()))
        if not held:
            return
        os.waitpid(-1, 0)


def children() -> list[int]:
    """The processes that this one has."""
    return [int(name) for name in os.listdir("/proc") if name.isdecimal() and parent_of(name) == os.getpid()]


def parent_of(process: str) -> int:
    """Which process started it, or has it now."""
    with suppress(OSError), open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
        return int(file.read().rpartition(")")[2].split()[1])
    return 0


def kill(process: int) -> bool:
    """Whether it could be."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(process, signal.SIGKILL)
        return True
    return False


def end_as(status: int) -> NoReturn:
    """Ends as the command ended: with its exit code, or by its signal."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with suppress(OSError):  # SIGKILL has no other meaning
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status))
