"""How the process of a long run is set up, and how many files it may have open."""

from __future__ import annotations

import errno
import gc
import sqlite3
import sys
from contextlib import suppress

from skillopt_es.events.lock import require_locks

SWITCH_SECONDS = 0.0005
GARBAGE_THRESHOLD = 20_000
MOST_OPEN_FILES = 8192
_FEW_OPEN_FILES = 1024
_FILES_BESIDE = 64


def prepare_process() -> None:
    """
    Refuses a system on which no run can be written.

    Lets the log's writer thread in quickly while the event loop is busy with replies, and looks for garbage less often.

    Python's default of 5 ms makes each commit wait longer than the disk takes; a collection for every 700 new objects
    costs a few percent and finds next to nothing (`tests/bench/bench_trainer.py`). As many files may be open as the
    system lets us have.
    """
    require_locks()
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.set_threshold(GARBAGE_THRESHOLD, 20, 20)
    with suppress(ImportError):  # Windows has neither the module nor the limit
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = MOST_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_OPEN_FILES)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            with suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def too_few_files(workers: int) -> str:
    """What to tell a user whose shell allows fewer open files than so many workers need; empty where it does not."""
    with suppress(ImportError):
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        needed = 2 * workers + _FILES_BESIDE
        if soft != resource.RLIM_INFINITY and soft < needed:
            return (
                f"this shell allows {soft} open files, and {workers} workers need more: fewer are at work at once "
                f"(`ulimit -n {needed}` allows them)"
            )
    return ""


def few_files(error: BaseException) -> str:
    """The sentence for an error that comes from too many open files, whoever raised it; empty for any other."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.errno in {errno.EMFILE, errno.ENFILE}:
            return f"too many open files: {_allowed()}"
        if isinstance(seen, sqlite3.OperationalError) and "unable to open database file" in str(seen) and _are_few():
            return f"the log cannot be opened, most likely for too many open files: {_allowed()}"
        seen = seen.__cause__ or seen.__context__
    return ""


def _allowed() -> str:
    import resource

    return f"this shell allows {resource.getrlimit(resource.RLIMIT_NOFILE)[0]} at once"


def _are_few() -> bool:
    with suppress(ImportError):
        import resource

        return 0 <= resource.getrlimit(resource.RLIMIT_NOFILE)[0] < _FEW_OPEN_FILES
    return False
