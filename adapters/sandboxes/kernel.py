"""What the programs of a sandbox ask of the Linux kernel; standard library only."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

NEW_USER, NEW_NS, NEW_PID, NEW_NET, NEW_IPC, NEW_UTS = 0x10000000, 0x20000, 0x20000000, 0x40000000, 0x8000000, 0x4000000
READ_ONLY, NO_SUID, NO_DEV, NO_EXEC, REMOUNT, BIND, RECURSIVE, PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
DETACH = 2
DIE_WITH_PARENT, DUMPABLE, FILTER, NO_NEW_PRIVILEGES = 1, 4, 22, 38
_BY_PROGRAM = 2
_JOIN_SESSION_KEYRING = 1
_KEYCTL = {"x86_64": 250, "aarch64": 219}

libc = ctypes.CDLL(None, use_errno=True)


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def unshare(spaces: int) -> None:
    """unshare(2)."""
    checked(libc.unshare(spaces), "unshare")


def name_user(user: int, group: int, *, was: tuple[int, int]) -> None:
    """Says which user and group somebody who entered a user space is there; `was` is who that was outside."""
    # In this order: without privilege the kernel takes a gid_map only after the `deny`.
    texts = {"setgroups": "deny", "uid_map": f"{user} {was[0]} 1", "gid_map": f"{group} {was[1]} 1"}
    for name, text in texts.items():
        Path(f"/proc/self/{name}").write_text(text)


def prctl(option: int, value: int) -> None:
    """prctl(2) with one argument."""
    checked(libc.prctl(option, value, 0, 0, 0), "prctl")


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
