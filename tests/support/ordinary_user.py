"""
Runs a command as a user without rights, for tests that root runs: `python ordinary_user.py COMMAND …`.

Where Python or the project lie in a folder that is closed to others, the folder is opened in a name space of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection
from pathlib import Path

from skillopt_es.adapters.sandboxes import kernel

NOBODY = 65534
PROJECT = Path(__file__).resolve().parents[2]


def open_up(places: Collection[Path]) -> None:
    """Makes folders readable to everybody who may read them themselves, whatever is above them."""
    outer = [place for place in places if not any(place != other and place.is_relative_to(other) for other in places)]
    held = {place: (os.open(place, os.O_PATH), closed) for place in outer if (closed := _closed_above(place))}
    for top in {closed for _, closed in held.values()}:
        kernel.mount("tmpfs", str(top), "tmpfs", 0, "mode=755")
    for place, (itself, _) in held.items():
        place.mkdir(parents=True)
        kernel.mount(f"/proc/self/fd/{itself}", str(place), None, kernel.BIND | kernel.RECURSIVE)
        os.close(itself)


def _closed_above(place: Path) -> Path | None:
    """The first folder on the way that is closed to others."""
    return next((above for above in reversed(place.parents) if not above.stat().st_mode & 0o001), None)


def main() -> None:
    """Becomes the command."""
    kernel.unshare(kernel.NEW_NS)
    kernel.mount("none", "/", None, kernel.RECURSIVE | kernel.PRIVATE)
    open_up({Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve(), PROJECT})
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    os.chdir("/")
    os.execv(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
