"""What a killed process left in flight is read strictly: what cannot be read is told, and never taken for nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.event_runs import fill

from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import LostCall
from skillopt_es.sessions.accounts import FILE, lost_calls

BEGUN = json.dumps({"events": 1, "calls": 1}).encode() + b"\n"
CALL = {"slot": "e1/s1/train/a", "role": "target", "input": 9, "output": 5, "again": False}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("in-flight") / "run"
    fill(folder, 1)
    return folder


def line(**changes: object) -> bytes:
    return json.dumps({**CALL, **changes}).encode() + b"\n"


def lost(run: Path, content: bytes) -> tuple[LostCall, ...]:
    (run / FILE).write_bytes(content)
    with EventLog.open(run) as log:
        return lost_calls(run, log, Journal(log.reader))


def test_calls_are_counted_with_their_tries(run: Path) -> None:
    """A last line that was cut is of a try that was only about to start."""
    assert lost(run, b"") == lost(run, BEGUN[:9]) == lost(run, BEGUN) == ()
    [call] = lost(run, BEGUN + line() + line(again=True) + line(slot="x")[:-9])
    assert call == LostCall(slot="e1/s1/train/a", role="target", input_tokens=9, output_tokens=5, tries=2)


@pytest.mark.parametrize(
    ("content", "number"),
    [
        (BEGUN + b'{"x": 1}\n', 2),
        (b'{"events": 1}\n', 1),
        (BEGUN + line(role="boss"), 2),
        (b"\xff\xfe\n", 1),
        (BEGUN[9:] + line(), 1),
        (line(), 1),
        (b"[]\n", 1),
        (b'{"events": true, "calls": 1}\n', 1),
        (b'{"events": -1, "calls": 1}\n', 1),
        (b'{"events": 1' + b"0" * 400 + b', "calls": 1}\n', 1),
        (BEGUN + line(input=-5), 2),
        (BEGUN + line(output=1.5), 2),
        (BEGUN + line(slot="\ud800"), 2),
        (BEGUN + line(again=1), 2),
        (BEGUN + b"[" * 100_000 + b"\n", 2),
        (BEGUN + line() + b"\n" + line(), 3),
    ],
)
def test_a_file_that_is_not_what_was_written_is_refused(run: Path, content: bytes, number: int) -> None:
    """In a sentence with the place and what to do: a budget must not forget what was paid for."""
    with pytest.raises(LogDamaged, match=rf"^line {number} of .*in-flight\.jsonl was changed") as refused:
        lost(run, content)
    assert "remove it and continue" in refused.value.hint
