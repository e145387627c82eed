"""
A control group for one launch, on machines that let the user make one beside their own: a limit that the kernel keeps.

The watch of process 1 (`watch.py`) keeps the limit everywhere, but looks only now and then. A group stops what takes
more in between. Where there can be none, the watch is there all the same.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")
_SHARE = 1.25  # the kernel also counts pages of programs, and its own: what is over the limit itself is the watch's


@contextlib.contextmanager
def memory_group(most_bytes: int) -> Iterator[str]:
    """The folder of a new group for these bytes, removed when the launch is over; empty where there can be none."""
    try:
        above = place_for_groups(_ROOT, _MEMBERSHIP.read_text(encoding="ascii"))
        made = None if above is None else limited(above, most_bytes)
    except OSError:
        made = None
    try:
        yield "" if made is None else str(made)
    finally:
        if made is not None:
            with contextlib.suppress(OSError):  # somebody is still dying: an empty group costs nothing
                made.rmdir()


def place_for_groups(root: Path, membership: str) -> Path | None:
    """The group in which this user may make others that limit memory: its own, or the one above it."""
    own = next((line.removeprefix("0::/") for line in membership.splitlines() if line.startswith("0::/")), None)
    if own is None:
        return None
    here = root / own
    return next(filter(_takes_groups, (here, here.parent) if own else (here,)), None)


def _takes_groups(group: Path) -> bool:
    control = group / "cgroup.subtree_control"
    if not control.is_file() or "memory" not in control.read_text(encoding="ascii").split():
        return False
    return all(os.access(path, os.W_OK) for path in (group, group / "cgroup.procs"))


def limited(above: Path, most_bytes: int) -> Path:
    """A new group with this limit; raises OSError where one of its files is not there."""
    made = Path(tempfile.mkdtemp(prefix="skillopt-es-", dir=above))
    try:
        for name, value in (("memory.max", int(most_bytes * _SHARE)), ("memory.oom.group", 1)):
            with (made / name).open("r+", encoding="ascii") as file:
                file.write(str(value))
    except OSError:
        made.rmdir()
        raise
    return made
