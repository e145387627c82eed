"""Makes what the tests share importable as `support.…`, and trains the demo once for all who only read its run."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Callable, Generator
from functools import cache
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

MEMORY = Path("/dev/shm")
ROOM = 4 << 30  # of memory; the tests write about a fourth of it


def _has_room(folder: Path) -> bool:
    """Whether a folder in memory takes what the tests write, and lets programs in it run."""
    if not os.access(folder, os.W_OK):
        return False
    there = os.statvfs(folder)
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    [free] = (int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    return min(there.f_bavail * there.f_frsize, free) > ROOM and not there.f_flag & getattr(os, "ST_NOEXEC", 0)


# Every event waits for the disk: in a long row of small runs that is half of the time, and no test cuts the power.
if "PYTEST_DEBUG_TEMPROOT" not in os.environ and _has_room(MEMORY):
    os.environ["PYTEST_DEBUG_TEMPROOT"] = str(MEMORY)

# Whoever starts the suite may have it ignore these (nohup, a background job); what the tests start would inherit that.
for _number, _usual in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGTERM, signal.SIG_DFL),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _usual)


def pytest_xdist_auto_num_workers() -> int | None:
    """One more than there are processors: many a test waits, for a limit to pass or a process to end."""
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ or not hasattr(os, "sched_getaffinity"):
        return None  # somebody else decides
    return len(os.sched_getaffinity(0)) + 1


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays to the end: nobody looks for garbage in it, in no test and in no fork."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def demo_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a complete run of the bundled demo, under `…/runs/demo`; read it, never write to it."""
    from support.scripted import ticking

    from skillopt_es.config import load_config
    from skillopt_es.sessions.session import start
    from skillopt_es.sessions.wiring import Session

    folder = tmp_path_factory.mktemp("demo") / "runs" / "demo"
    asyncio.run(start(load_config(None), folder, Session(now=ticking(), clock=lambda: 0.0)))
    return folder


@pytest.fixture(scope="session")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a scripted run of some kind (`support.audited.KINDS`), trained when it is first asked for."""
    from support.audited import trained

    return cache(lambda kind: trained(kind, tmp_path_factory.mktemp("audited") / kind.replace(" ", "-")))
