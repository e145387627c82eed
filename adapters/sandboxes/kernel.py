"""What the programs of a sandbox ask of the Linux kernel; standard library only."""

from __future__ import annotations

import ctypes
import errno
import os

# CLONE_… of clone(2) and unshare(2), from linux/sched.h.
NEW_CGROUP = 0x2000000
# The same, from linux/sched.h.
NEW_USER, NEW_NS, NEW_PID, NEW_NET, NEW_IPC, NEW_UTS = 0x10000000, 0x20000, 0x20000000, 0x40000000, 0x8000000, 0x4000000
# MS_… of mount(2), from linux/mount.h.
READ_ONLY, NO_SUID, NO_DEV, NO_EXEC, REMOUNT, BIND, RECURSIVE, PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
DETACH = 2  # MNT_DETACH of umount2(2)
# PR_… of prctl(2), from linux/prctl.h.
DIE_WITH_PARENT, DUMPABLE, FILTER, DROP_RIGHT, CHILD_SUBREAPER, NO_NEW_PRIVILEGES = 1, 4, 22, 24, 36, 38
# Rights that root has (capabilities), by their numbers.
DAC_READ_SEARCH, SETPCAP, SYS_MODULE, SYS_RAWIO, SYS_PTRACE, SYS_ADMIN, SYS_BOOT = 2, 8, 16, 17, 19, 21, 22
# From linux/capability.h, as those above and below.
MKNOD, AUDIT_WRITE, AUDIT_CONTROL, SETFCAP, MAC_OVERRIDE, MAC_ADMIN, SYSLOG = 27, 29, 30, 31, 32, 33, 34
PERFMON, BPF, CHECKPOINT_RESTORE = 38, 39, 40  # the same header
_BY_PROGRAM = 2  # SECCOMP_MODE_FILTER of linux/seccomp.h
_JOIN_SESSION_KEYRING = 1  # KEYCTL_JOIN_SESSION_KEYRING of linux/keyctl.h
_KEYCTL = {"x86_64": 250, "aarch64": 219}  # the kernel's tables of system calls; libc has no function for it

libc = ctypes.CDLL(None, use_errno=True)


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def unshare(spaces: int) -> None:
    """unshare(2)."""
    checked(libc.unshare(spaces), "unshare")


def name_user(user: int, group: int, *, was: tuple[int, int]) -> None:
    """Says which user and group somebody who entered a user space is there; `was` is who that was outside."""
    name_users(f"{user} {was[0]} 1", f"{group} {was[1]} 1", process="self", alone=True)


def name_users(users: str, groups: str, *, process: str, alone: bool) -> None:
    """Says who is who in the user space of a process: maps as the kernel reads them, of one user `alone` or of many."""
    # In this order: without privilege the kernel takes a gid_map only after the `deny`.
    texts = {"setgroups": "deny" if alone else "", "uid_map": users, "gid_map": groups}
    for name, text in texts.items():
        if text:
            with open(f"/proc/{process}/{name}", "w", encoding="ascii") as file:
                file.write(text)


def drop_right(right: int) -> None:
    """Takes a right of root's from what this process starts; one that this kernel does not know, nothing has."""
    if libc.prctl(DROP_RIGHT, right, 0, 0, 0) and ctypes.get_errno() != errno.EINVAL:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "fewer rights")


def prctl(option: int, value: int) -> None:
    """prctl(2) with one argument."""
    checked(libc.prctl(option, value, 0, 0, 0), "prctl")


def close_memory() -> None:
    """Closes this process's memory and environment to other processes of the same user; not to root."""
    prctl(DUMPABLE, 0)


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    """mount(2)."""
    result = libc.mount(
        source.encode(), target.encode(), kind.encode() if kind else None, ctypes.c_ulong(flags), options.encode()
    )
    checked(result, f"mount {target}")


def leave_keyring() -> None:
    """Enters a new session keyring: the one of the user's session is out of reach from here on."""
    number = _KEYCTL.get(os.uname().machine)
    if number is None or libc.syscall(number, _JOIN_SESSION_KEYRING, None) >= 0:
        return
    error = ctypes.get_errno()
    if error not in (errno.ENOSYS, errno.EPERM, errno.EACCES):  # there: a kernel without keys, or with a filter on them
        raise OSError(error, os.strerror(error), "a new session keyring")


def set_filter(instructions: bytes) -> None:
    """Gives this process, and all that it starts, only the system calls that the filter leaves; for ever."""
    # An instruction has eight bytes.
    program = _Filter(len(instructions) // 8, instructions)
    checked(libc.prctl(FILTER, _BY_PROGRAM, ctypes.byref(program), 0, 0), "the filter of system calls")


def checked(result: int, what: str) -> None:
    """Raises OSError for a system call that failed."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
