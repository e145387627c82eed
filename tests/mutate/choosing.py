"""
The mutants of what functions do: put in place where everything is imported, and shown only to tests that get there.

The tests are collected once. A first process runs them and notes which lines of the module each one reaches; then each
mutant gets a process in which its function has the changed code.
"""

from __future__ import annotations

import ast
import functools
import gc
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest
from attrs import Factory, asdict, define, frozen
from mutate.mutants import Mutant
from mutate.running import Running, allow, start, test

LEAST_SECONDS = 2.0  # of the processor: an endless loop is noticed by it
PATIENCE = 3  # times what a test took without a change, which was with a trace


@frozen
class Reached:
    """Of each test, by its id: the lines of the module that it runs, and the seconds it takes."""

    lines: Mapping[str, Sequence[int]]
    took: Mapping[str, float]


@define
class Findings:
    """What a module's tests have shown: whether they pass at all, and the mutants that they let live, by number."""

    passed: bool = False
    lived: list[int] = Factory(list)
    unreached: list[int] = Factory(list)
    whole: list[int] = Factory(list)
    """Those whose code does not fit the function: their module is to be imported anew."""
    took: dict[str, float] = Factory(dict)


def findings(file: Path, mutants: Mapping[int, Mutant], tests: Sequence[Path], jobs: int) -> Findings:
    """Runs all of this in a process of its own, so that nothing of ours is imported in this one."""
    into, out = os.pipe()
    plugin = _Plugin(file, mutants, jobs, out)
    running = start(lambda folder: test(tests, plugin, folder=folder), limited=False)
    os.close(out)
    told = b""
    while chunk := os.read(into, 65536):
        told += chunk
    os.close(into)
    while not running.ended():
        time.sleep(0.01)
    return Findings(**json.loads(told)) if told else Findings()


class _Plugin:
    """Takes the running of the tests from pytest, once it has collected them."""

    def __init__(self, file: Path, mutants: Mapping[int, Mutant], jobs: int, out: int) -> None:
        self.file, self.mutants, self.jobs, self.out = file, mutants, jobs, out

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        found = Findings()
        reached = _measured(session, self.file)
        if reached is not None:
            found.passed, found.took = True, dict(reached.took)
            self._try(session, reached, found)
        with os.fdopen(self.out, "wb") as pipe:
            pipe.write(json.dumps(asdict(found)).encode())
        return True

    def _try(self, session: pytest.Session, reached: Reached, found: Findings) -> None:
        originals = _functions(self.file)
        gc.freeze()
        items = sorted(session.items, key=lambda item: reached.took[item.nodeid])
        waiting: Iterator[tuple[int, Mutant]] = iter(self.mutants.items())
        running: list[tuple[int, Running]] = []
        left = True
        while left or running:
            while left and len(running) < self.jobs:
                number, mutant = next(waiting, (None, None))
                if number is None or mutant is None:
                    left = False
                    break
                swaps = _swaps(originals, mutant.tree(), self.file)
                chosen = [item for item in items if not set(mutant.statement).isdisjoint(reached.lines[item.nodeid])]
                if swaps is None:
                    found.whole.append(number)
                elif not chosen:
                    found.unreached.append(number)
                else:
                    running.append((number, start(functools.partial(_tried, session, chosen, reached.took, swaps))))
            for pair in [pair for pair in running if pair[1].ended()]:
                running.remove(pair)
                if not pair[1].failed:
                    found.lived.append(pair[0])
            time.sleep(0.002)


def _tried(
    session: pytest.Session,
    items: Sequence[pytest.Item],
    took: Mapping[str, float],
    swaps: Sequence[tuple[FunctionType, CodeType]],
    folder: Path,
) -> int:
    for function, code in swaps:
        function.__code__ = code
    return _run(session, items, folder, before=lambda item: allow(LEAST_SECONDS + PATIENCE * took[item.nodeid]))


def _nothing(item: pytest.Item) -> None: ...


def _run(
    session: pytest.Session,
    items: Sequence[pytest.Item],
    folder: Path,
    *,
    before: Callable[[pytest.Item], None] = _nothing,
    after: Callable[[pytest.Item], None] = _nothing,
) -> int:
    """Runs the tests in this order until one fails: the exit code."""
    session.config._tmp_path_factory._basetemp = folder  # type: ignore[attr-defined]
    for item, following in zip(items, [*items[1:], None], strict=True):
        before(item)
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return 1
        after(item)
    return 0


def _functions(file: Path) -> dict[tuple[str, int], list[FunctionType]]:
    """All functions of a module that exist, by name and line."""
    found: dict[tuple[str, int], list[FunctionType]] = {}
    for thing in gc.get_objects():
        if isinstance(thing, FunctionType) and thing.__code__.co_filename == str(file):
            found.setdefault(_place(thing.__code__), []).append(thing)
    return found


def _place(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _swaps(
    functions: Mapping[tuple[str, int], Sequence[FunctionType]], tree: ast.Module, file: Path
) -> list[tuple[FunctionType, CodeType]] | None:
    """Which functions get which code; None where that cannot be."""
    swaps = []
    for code in _codes(compile(tree, file, "exec", dont_inherit=True)):
        for function in functions.get(_place(code), ()):
            if function.__code__.co_freevars != code.co_freevars:
                return None
            if function.__code__ != code:
                swaps.append((function, code))
    return swaps or None


def _measured(session: pytest.Session, file: Path) -> Reached | None:
    """What the tests reach without any change; None if one fails."""
    into, out = os.pipe()

    def measure(folder: Path) -> int:
        return _measure(session, file, out, folder)

    running = start(measure, limited=False)
    os.close(out)
    told = b""
    while chunk := os.read(into, 65536):
        told += chunk
    os.close(into)
    while not running.ended():
        time.sleep(0.01)
    if running.failed:
        return None
    said: dict[str, Any] = json.loads(told)
    for name in said["imported"]:
        import_module(name)  # once, not in every process
    return Reached(said["lines"], said["took"])


def _measure(session: pytest.Session, file: Path, out: int, folder: Path) -> int:
    name = str(file)
    here: set[int] = set()
    lines: dict[str, list[int]] = {}
    took: dict[str, float] = {}
    began = time.process_time()

    def line(frame: FrameType, event: str, _: object) -> Any:
        if event == "line":
            here.add(frame.f_lineno)
        return line

    def call(frame: FrameType, event: str, argument: object) -> Any:
        return line if frame.f_code.co_filename == name else None

    def note(item: pytest.Item) -> None:
        nonlocal began
        lines[item.nodeid], took[item.nodeid] = sorted(here), time.process_time() - began
        here.clear()
        began = time.process_time()

    before = set(sys.modules)
    threading.settrace(call)
    sys.settrace(call)
    code = _run(session, session.items, folder, after=note)
    sys.settrace(None)
    ours = ("skillopt_es", "events", "projections", "adapters", "support")
    imported = [module for module in set(sys.modules) - before if module.partition(".")[0] in ours]
    with os.fdopen(out, "wb") as pipe:
        pipe.write(json.dumps({"lines": lines, "took": took, "imported": sorted(imported)}).encode())
    return code
