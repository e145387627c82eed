"""
Runs a command as a user without rights, for tests that root runs: `python ordinary_user.py COMMAND …`.

Where Python or the project lie in a folder that is closed to others, the folder is opened in a name space of its own.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from skillopt_es.adapters.sandboxes import kernel

NOBODY = 65534
PROJECT = Path(__file__).resolve().parents[2]


def open_up(place: Path) -> None:
    """Makes a folder readable to everybody who may read it itself, whatever is above it."""
    closed = [above for above in reversed(place.parents) if not above.stat().st_mode & 0o001]
    if closed:
        itself = os.open(place, os.O_PATH)
        kernel.mount("tmpfs", str(closed[0]), "tmpfs", 0, "mode=755")
        place.mkdir(parents=True)
        kernel.mount(f"/proc/self/fd/{itself}", str(place), None, kernel.BIND | kernel.RECURSIVE)
        os.close(itself)


def main() -> None:
    """Becomes the command."""
    kernel.unshare(kernel.NEW_NS)
    kernel.mount("none", "/", None, kernel.RECURSIVE | kernel.PRIVATE)
    for place in (Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve(), PROJECT):
        open_up(place)
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    os.chdir("/")
    os.execv(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
