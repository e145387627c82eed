"""
The program that hides files and folders from a command and all that it starts; Linux only, standard library only.

Started with a JSON list of paths and the command. In user and mount spaces of its own it lays an empty folder over each
folder and nothing over each file, and becomes the command, which keeps its user, its network and everything else. What
lies above cannot be taken away from below: the command gets spaces below those in which it was laid there. Nor can it
look through processes of other spaces, such as the one that started it.
"""

from __future__ import annotations

import json
import os
import stat
import sys

from skillopt_es.adapters.sandboxes import kernel
from skillopt_es.adapters.sandboxes.kernel import BIND, NO_DEV, NO_SUID, PRIVATE, READ_ONLY, RECURSIVE
from skillopt_es.adapters.sandboxes.start import NOT_HIDDEN, WHY_NOT_HIDDEN


def main() -> None:
    """Hides the paths and becomes the command; without one it only tries."""
    paths, command = json.loads(sys.argv[1]), sys.argv[2:]
    try:
        enter_spaces()
        kernel.mount("none", "/", None, RECURSIVE | PRIVATE)
        for path in [*paths, *disks()]:
            cover(path)
        enter_spaces()
    except OSError as error:
        os.write(2, f"{WHY_NOT_HIDDEN}{error.filename or ''}: {error.strerror}\n".encode())
        os._exit(NOT_HIDDEN)
    if command:
        os.execv(command[0], command)


def enter_spaces() -> None:
    """New user and mount spaces, in which user and group are who they were."""
    was = os.geteuid(), os.getegid()
    kernel.unshare(kernel.NEW_USER | kernel.NEW_NS)
    kernel.name_user(*was, was=was)


def disks() -> list[str]:
    """The disks as they lie there, which root may read whatever hides their files."""
    if os.geteuid() != 0:
        return []
    with os.scandir("/dev") as devices:
        return [each.path for each in devices if stat.S_ISBLK(each.stat(follow_symlinks=False).st_mode)]


def cover(path: str) -> None:
    """Lays nothing over a path; one that is gone needs nothing."""
    if os.path.isdir(path):
        kernel.mount("tmpfs", path, "tmpfs", NO_SUID | NO_DEV | READ_ONLY, "size=4k,mode=755")
    elif os.path.exists(path):
        kernel.mount("/dev/null", path, None, BIND)
