"""Results of single items, read by their fields: the same that whole events say, also where a row is unusual."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from support.make_golden import GOLDEN
from support.scripted import NOON

from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.events.codec import BIG
from skillopt_es.events.errors import LogDamaged
from skillopt_es.events.log import EventLog
from skillopt_es.events.results import Result, results
from skillopt_es.events.schema import LOG_FILE
from skillopt_es.events.values import Failed, Measured, NotRun, Outcome
from skillopt_es.events.writer import RunWriter

QUOTES = '"item":"other","purpose":"test"'


def told(log: EventLog) -> list[Result]:
    """What the whole events say."""
    rows = ((recorded.seq, recorded.event) for recorded in log.read())
    return [
        Result(seq, event.item, event.place, event.purpose, event.skill, event.task_type, event.outcome)
        for seq, event in rows
        if isinstance(event, RolloutCompleted)
    ]


@pytest.mark.parametrize("run", sorted(path.name for path in GOLDEN.iterdir() if path.is_dir()))
def test_the_fields_are_those_of_the_events(run: str, tmp_path: Path) -> None:
    """Of every release."""
    with EventLog.open(shutil.copytree(GOLDEN / run / "run", tmp_path / "run")) as log:
        until = log.head().seq
        assert list(results(log, until)) == told(log)
        assert list(results(log, until // 2)) == [each for each in told(log) if each.seq <= until // 2]
        wanted = [each for each in told(log) if each.purpose == "selection"]
        assert list(results(log, until, ("selection",))) == wanted


def rollout(item: str, outcome: Outcome, *, kind: str = "", detail: str = "", prediction: str = "") -> RolloutCompleted:
    """One, with unusual texts."""
    return RolloutCompleted(
        place="e1/s1/b0", purpose="train", item=item, skill="0" * 64, outcome=outcome, turns=1, task_type=kind,
        detail=detail, prediction=prediction,
    )  # fmt: skip


def written(folder: Path, events: list[RolloutCompleted]) -> Path:
    """A log of these."""
    with RunWriter.create(folder, run_id="r", name="r", now=lambda: NOON) as writer:
        asyncio.run(writer.append(events, expected=0))
    return folder


UNUSUAL = [
    rollout('Übung \\ "1"', Measured(1.0, 1e-7), kind="größer"),
    rollout("failed", Failed("sandbox", QUOTES)),
    rollout("not-run", NotRun("it was over")),
    rollout(QUOTES, Measured(0.0, 0.5), prediction=QUOTES, detail=QUOTES),
    rollout("big", Measured(0.0, 0.0), prediction="x" * BIG),
]


@pytest.mark.parametrize("times", [1, 30])
def test_unusual_texts_and_outcomes_are_read_as_they_are(tmp_path: Path, times: int) -> None:
    """A few among others, and many."""
    folder = written(tmp_path / "run", UNUSUAL * times)
    with EventLog.open(folder) as log:
        assert list(results(log, log.head().seq)) == told(log)
        assert list(results(log, log.head().seq, ("test",))) == []


def test_a_changed_row_is_told_as_ever(tmp_path: Path) -> None:
    """What stands before it is read."""
    folder = written(tmp_path / "run", UNUSUAL)
    raw = (folder / LOG_FILE).read_bytes()
    assert raw.count(b'"not-run"') == 1
    (folder / LOG_FILE).write_bytes(raw.replace(b'"not-run"', b'"not_run"'))
    with EventLog.open(folder) as log:
        found = results(log, log.head().seq)
        assert [next(found).seq, next(found).seq] == [1, 2]
        with pytest.raises(LogDamaged, match="event 3"):
            next(found)
