"""
An agent that moves hidden files to where its next attempt may find them, and notes where it found a key.

    python mover.py HOW FOLDER       `plain`: it renames the file with keys, then this folder and those above it
                                     `inside`: the same in name spaces of its own
                                     `apart`: the same where it has taken the tree of mounts away that covers files
                                     `above`: the same with the folders alone

FOLDER is the uppermost that it uses; FOLDER/report gets one line for an attempt: what was moved, where keys were found.
What is not hidden is copied back, so that the next attempt starts as ever.
"""

# ruff: noqa: PTH123
from __future__ import annotations

import ctypes
import json
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

WANTED = b"sk-made-" + b"for-movers-"
HOW, TOP = sys.argv[1], Path(sys.argv[2])
HERE = Path.cwd()
_USER_AND_MOUNTS = 0x10000000 | 0x20000
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Looks, moves, and looks again."""
    sys.stdin.buffer.read()
    # Opened before anything is moved or taken away.
    own = () if HOW == "above" else (HERE / ".env",)
    places = [path for path in (*own, HERE, *HERE.parents) if path != TOP and path.is_relative_to(TOP)]
    folders = [(os.open(path.parent, os.O_RDONLY), path.name) for path in places]
    found = keys()
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        if HOW != "plain":
            enter_spaces()
        if HOW in ("apart", "above"):
            take_away()
        os.write(writing, next((name for parent, name in folders if moved(parent, name)), "nothing").encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with open(reading) as said, open(TOP / "report", "a") as report:
        report.write(json.dumps({"moved": said.read(), "keys": [*found, *keys()]}) + "\n")
    print(json.dumps({"answer": "x"}))


def keys() -> list[str]:
    """Where one can be read."""
    return [str(path) for path in TOP.rglob("*.env*") if path.is_file() and WANTED in path.read_bytes()]


def moved(parent: int, name: str) -> bool:
    """Whether it could be renamed; something else is in its place then."""
    new = f"{name}-elsewhere"
    with suppress(OSError):
        os.link(name, f"{name}-linked", src_dir_fd=parent, dst_dir_fd=parent)
    try:
        os.rename(name, new, src_dir_fd=parent, dst_dir_fd=parent)
    except OSError:
        return False
    os.fchdir(parent)
    if name == ".env":
        Path(name).write_text("KEY=none\n")
    else:
        shutil.copytree(new, name, ignore=shutil.ignore_patterns(".env"))
    return True


def enter_spaces() -> None:
    """User and mount spaces, as anybody may make them."""
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_USER_AND_MOUNTS):
        raise OSError(ctypes.get_errno(), "unshare")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def take_away() -> None:
    """Another root, and the tree of mounts that covers files goes; the folders that were opened stay."""
    libc.mount(b"none", b"/mnt", b"tmpfs", 0, None)
    os.chdir("/mnt")
    Path("old").mkdir()
    libc.syscall(_PIVOT_ROOT[os.uname().machine], b".", b"old")
    libc.umount2(b"/old", 2)


if __name__ == "__main__":
    main()
