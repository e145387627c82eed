"""A program of the user's: how it ended, what it said, and that nothing of it stays."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from support.ready import PATIENCE

from skillopt_es.adapters.processes import Ended, Heard, NotStartedError, Program, run_program


def ran(folder: Path, code: str, **more: Any) -> Ended:
    """How a Python program ended."""
    given: dict[str, Any] = {"environment": {}, "stdin": b"", "seconds": PATIENCE, "most_output": 100, **more}
    return asyncio.run(run_program(Program(argv=[sys.executable, "-SEc", code], folder=folder, **given)))


def test_its_code_output_and_errors_are_told(tmp_path: Path) -> None:
    """And it reads what it is given."""
    code = "import sys; print(sys.stdin.read() * 2); print('so', file=sys.stderr); sys.exit(4)"
    ended = ran(tmp_path, code, stdin=b"ab")
    assert (ended.how, ended.code, ended.output, ended.errors) == ("exited", 4, b"abab\n", "so")


def test_one_that_does_not_end_is_late(tmp_path: Path) -> None:
    """Also where it does not want to be ended."""
    stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(900)"
    ended = ran(tmp_path, stubborn, seconds=0.2, grace=0.1)
    assert (ended.how, ended.code) == ("late", -9)


def test_one_that_prints_without_end_is_flooding_or_cut(tmp_path: Path) -> None:
    """As its caller wants it."""
    assert ran(tmp_path, "while True: print('x' * 1000)").how == "flooded"
    ended = ran(tmp_path, "print('a' * 1000 + 'z' * 1000)", cut=True)
    assert ended.how == "exited"
    assert b"bytes left out" in ended.output


def test_a_hopeless_line_ends_it(tmp_path: Path) -> None:
    """Nobody waits for what is known to come to nothing."""
    ended = ran(
        tmp_path, "import time; print('lost', flush=True); time.sleep(900)", hopeless=lambda line: b"lost" in line
    )
    assert ended.how == "given_up"


def test_what_is_no_program_is_not_started(tmp_path: Path) -> None:
    """The error names it."""
    program = Program(argv=["./gone"], folder=tmp_path, environment={}, stdin=b"", seconds=1, most_output=1)
    with pytest.raises(NotStartedError, match="gone cannot be started"):
        asyncio.run(run_program(program))


def test_a_long_stream_keeps_its_head_and_tail() -> None:
    """With a mark between them that says how much is missing."""
    heard = Heard(head=3, tail=3)
    for chunk in (b"ab", b"cdef", b"ghij"):
        heard.add(chunk)
    assert heard.whole == b"abc\n[\xe2\x80\xa6 4 bytes left out \xe2\x80\xa6]\nhij"
    tail = Heard(head=0, tail=2)
    tail.add(b"abc")
    assert tail.whole == b"bc"
