"""One mutant's tests in a process of their own."""

from __future__ import annotations

import ast
import math
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

import aiohttp  # noqa: F401 - what every test imports is imported once, before the forks
import cattrs  # noqa: F401
import click  # noqa: F401
import httpx  # noqa: F401
import hypothesis
import pytest
import sqlite_utils  # noqa: F401
import structlog  # noqa: F401
import yaml  # noqa: F401
from attrs import define
from hypothesis import Phase

PASSED = 0
LONGEST_SECONDS = 600.0  # what waits for ever; an endless loop is noticed by the time of the processor
WHOLE_SECONDS = 60.0  # of the processor
MOST_MEMORY = 4 << 30
# plain: pytest's rewriting of assertions would load our modules by a loader of its own
OPTIONS = ("-x", "-q", "--assert=plain", "-p", "no:cacheprovider", "-n", "0")


@define
class Running:
    """A process on its way, in a group of its own."""

    process: int
    deadline: float
    folder: str
    failed: bool = False

    def ended(self) -> bool:
        """Whether it has come to an end, or to that of its time; nothing of it is left then."""
        process, status = os.waitpid(self.process, os.WNOHANG)
        if not process and time.monotonic() < self.deadline:
            return False
        with suppress(ProcessLookupError):
            os.killpg(self.process, signal.SIGKILL)
        if not process:
            os.waitpid(self.process, 0)
        self.failed = not process or os.waitstatus_to_exitcode(status) != PASSED
        shutil.rmtree(self.folder, ignore_errors=True)
        return True


def start(do: Callable[[Path], int], *, limited: bool = True) -> Running:
    """Forks; the child does this, with a folder for its files, silently, and ends with its exit code."""
    folder = tempfile.mkdtemp(prefix="mutant-")
    process = os.fork()
    if process:
        return Running(process, time.monotonic() + LONGEST_SECONDS if limited else math.inf, folder)
    code = 70
    try:
        os.setpgid(0, 0)
        if limited:
            resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        code = do(Path(folder))
    finally:
        os._exit(code)


def allow(seconds: float) -> None:
    """So much more of the processor's time for this process, which ends when it is over."""
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time() + seconds), most))


def test(tests: Sequence[Path], *plugins: object, folder: Path) -> int:
    """Runs pytest here and now, with the same examples every time."""
    quick = (Phase.explicit, Phase.generate)  # a failing example is enough, it need not be short
    hypothesis.settings.register_profile("mutate", derandomize=True, database=None, deadline=None, phases=quick)
    hypothesis.settings.load_profile("mutate")
    return int(pytest.main([*OPTIONS, f"--basetemp={folder / 'tests'}", *map(str, tests)], plugins=list(plugins)))


def test_whole(file: Path, tree: ast.Module, tests: Sequence[Path], took: Mapping[str, float], folder: Path) -> int:
    """Imports the module from `tree` and runs the tests, the quickest first, until one fails."""
    loaded = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, name: str) -> CodeType | None:
        same = Path(self.get_filename(name)).resolve() == file
        return compile(tree, file, "exec", dont_inherit=True) if same else loaded(self, name)

    allow(WHOLE_SECONDS)
    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
    return test(tests, _Quickest(took), folder=folder)


class _Quickest:
    """Puts those tests first that took the least."""

    def __init__(self, took: Mapping[str, float]) -> None:
        self.took = took

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: self.took.get(item.nodeid, sys.float_info.max))
