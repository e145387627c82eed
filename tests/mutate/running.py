"""One mutant's tests in a process of their own."""

from __future__ import annotations

import ast
import os
import signal
import time
from collections.abc import Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

import aiohttp  # noqa: F401 - what every test imports is imported once, before the forks
import cattrs  # noqa: F401
import click  # noqa: F401
import httpx  # noqa: F401
import hypothesis  # noqa: F401
import pytest
import sqlite_utils  # noqa: F401
import structlog  # noqa: F401
import yaml  # noqa: F401
from attrs import define

LONGEST_SECONDS = 60.0  # an endless loop is noticed by its time
PASSED = 0


@define
class Running:
    """The tests of one mutant on their way."""

    process: int
    deadline: float
    killed: bool = False

    def ended(self) -> bool:
        """Whether they have come to an end, or to that of their time."""
        process, status = os.waitpid(self.process, os.WNOHANG)
        if not process and time.monotonic() > self.deadline:
            os.killpg(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)
            self.killed = True
            return True
        if process:
            self.killed = os.waitstatus_to_exitcode(status) != PASSED
        return bool(process)


def start(file: Path, tree: ast.Module, tests: Sequence[Path]) -> Running:
    """Forks; the child imports the module from `tree` and runs the tests until one fails."""
    process = os.fork()
    if process:
        return Running(process, time.monotonic() + LONGEST_SECONDS)
    code = 70
    try:
        os.setpgid(0, 0)
        code = _test(file, tree, tests)
    finally:
        os._exit(code)


def _test(file: Path, tree: ast.Module, tests: Sequence[Path]) -> int:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    loaded = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, name: str) -> CodeType | None:
        same = Path(self.get_filename(name)).resolve() == file
        return compile(tree, file, "exec", dont_inherit=True) if same else loaded(self, name)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
    # plain: pytest's rewriting of assertions would load our modules by a loader of its own
    return int(pytest.main(["-x", "-q", "--assert=plain", "-p", "no:cacheprovider", *map(str, tests)]))
