"""Makes what the tests share importable as `support.…`, and trains the demo once for all who only read its run."""

from __future__ import annotations

import asyncio
import fcntl
import gc
import os
import shutil
import signal
import sys
from collections.abc import Callable, Generator
from functools import cache, partial
from pathlib import Path

import pytest
from hypothesis import settings

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


# A seventh of the examples by default; `--hypothesis-profile=thorough -m "slow or hypothesis"` draws them all, the same
# in every run. `--hypothesis-profile=anew` draws others each time. On a busy machine any example may take long.
settings.register_profile("anew", max_examples=100, deadline=None)
settings.register_profile("thorough", settings.get_profile("anew"), derandomize=True)
settings.register_profile("quick", settings.get_profile("thorough"), max_examples=15)
settings.load_profile("quick")


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


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, object, object]:
    """A file of tests is compiled once: workers that come to it at the same time wait for the first one's bytecode."""
    if sys.dont_write_bytecode or not isinstance(collector, pytest.Module):
        return (yield)
    with collector.path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        return (yield)


Once = Callable[[str, Callable[[Path], object]], Path]


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """
    Fills a folder of some name once for all workers; each gets a copy of its own.

    A copy, because a reader leaves files beside a log while it reads, and somebody else may be copying it just then.
    """
    own = tmp_path_factory.mktemp("once")
    shared = own.parent.parent if "PYTEST_XDIST_WORKER" in os.environ else own.parent

    @cache
    def filled(name: str, fill: Callable[[Path], object]) -> Path:
        first = shared / name  # where a run says that its data lies
        with (shared / f"{name}.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # whoever comes while it is being filled waits
            if not os.fstat(lock.fileno()).st_size:
                shutil.rmtree(first, ignore_errors=True)  # somebody failed half-way
                fill(first)
                lock.write("filled")
        shutil.copytree(first, own / name)
        return own / name

    return filled


@pytest.fixture(scope="session")
def nodes() -> Generator[object]:
    """A Ray cluster for all who need one (`support.ray_cluster.Nodes`): two nodes of two seats, which take jobs."""
    from support.project import KEY, KEY_NAME
    from support.ray_cluster import cluster

    with pytest.MonkeyPatch.context() as shell:  # of whoever starts it: with a key in it, and a variable for agents
        shell.setenv(KEY_NAME, KEY)
        shell.setenv("SEEN", "here")
        with cluster(2, jobs=True) as found:
            yield found


def _train_demo(folder: Path) -> None:
    from support.scripted import ticking

    from skillopt_es.config import load_config
    from skillopt_es.sessions.session import start
    from skillopt_es.sessions.wiring import Session

    asyncio.run(start(load_config(None), folder / "runs" / "demo", Session(now=ticking(), clock=lambda: 0.0)))


@pytest.fixture(scope="session")
def demo_run(once: Once) -> Path:
    """The folder of a complete run of the bundled demo, under `…/runs/demo`; read it, never write to it."""
    return once("demo", _train_demo) / "runs" / "demo"


@pytest.fixture(scope="session")
def audited(once: Once) -> Callable[[str], Path]:
    """The folder of a scripted run of some kind (`support.audited.KINDS`), trained when it is first asked for."""
    from support.audited import trained

    @cache
    def run(kind: str) -> Path:
        return once(kind.replace(" ", "-"), partial(trained, kind)) / "run"

    return run


def _train_skills(folder: Path) -> None:
    from support.command import command

    folder.mkdir()
    done = command("run", "--demo", "skills", "--run", "demo", cwd=folder)
    assert done.code == 0, done.err
    assert "blame demo amounts/SKILL.md" in done.out


@pytest.fixture(scope="session")
def skills_demo(once: Once) -> Path:
    """A folder in which the demo of a folder of skills was trained, as `runs/demo`; write beside it, not into it."""
    return once("skills", _train_skills)
