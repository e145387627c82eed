"""
Seconds of the processor a test file, with its children: `python -m pytest -n auto -p tests.bench.suite_time`.

Not seconds of a clock: other work on the machine changes them little. docs/benchmarks.md says what they buy.
"""

from __future__ import annotations

import os
import resource
import time
from collections import Counter, defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest

FILES = 30
TICKS = os.sysconf("SC_CLK_TCK")
TEST, COLLECTING = "seconds of the processor", "seconds of the processor until the first test"


def _of_living_children() -> float:
    """What is not in `getrusage` yet: of children that run on, such as the one that commands are forked from."""
    me = os.getpid()
    seconds = 0.0
    for child in Path(f"/proc/{me}/task/{me}/children").read_text("ascii").split():
        try:
            words = Path(f"/proc/{child}/stat").read_text("utf-8").rpartition(")")[2].split()
        except FileNotFoundError:  # it has just ended, and nobody has asked how
            continue
        seconds += sum(map(int, words[11:15])) / TICKS  # its own and its children's, in both modes
    return seconds


def _used() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime + _of_living_children()


class SuiteTime:
    """Counts in the process that runs a test, adds up in the one that prints."""

    def __init__(self) -> None:
        self.until_now = 0.0
        self.collecting = 0.0
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.tests: Counter[str] = Counter()

    def pytest_collection_finish(self) -> None:
        """What came before is nobody's test."""
        self.until_now = self.collecting = _used()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Each report takes along what was used since the last one."""
        report = yield
        now = _used()
        report.user_properties += [(TEST, now - self.until_now), (COLLECTING, self.collecting)]
        self.until_now, self.collecting = now, 0.0
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Setup, call and teardown of a test."""
        file = report.nodeid.partition("::")[0]
        given = dict(report.user_properties)
        self.seconds[file] += float(str(given[TEST]))
        self.seconds["(imports and collection)"] += float(str(given[COLLECTING]))
        self.tests[file] += report.when == "setup"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The table."""
        terminalreporter.section("seconds of the processor")
        order = sorted(self.seconds.items(), key=lambda each: -each[1])
        for file, seconds in order[:FILES]:
            terminalreporter.write_line(f"{seconds:7.2f}  {self.tests[file]:4d} tests  {file}")
        terminalreporter.write_line(f"{sum(self.seconds.values()):7.2f}  {self.tests.total():4d} tests  in all")


def pytest_configure(config: pytest.Config) -> None:
    """Takes part in this run."""
    config.pluginmanager.register(SuiteTime())
