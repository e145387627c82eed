"""Nothing is gone on with, and nothing summed up, that `verify` would reject."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest
from attrs import evolve
from support.crashes import KillAt, in_child
from support.event_runs import forge
from support.scripted import NOON, ScriptedEnvironment, ScriptedModel, ScriptedWorld, config, target_reply
from support.tamper import cut_off

from skillopt_es.events.errors import LogDamaged, WrongExpectedSeq
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.verify import verify
from skillopt_es.events.writer import RunWriter
from skillopt_es.ports import ChatReply, ChatRequest
from skillopt_es.runs.overview import spent
from skillopt_es.runs.reading import Reading
from skillopt_es.sessions.session import read_state, resume, start

SMALL = ["train.num_epochs=1", "train.batch_size=3"]
EXCHANGED = "update calls set response = (select digest from blobs order by rowid limit 1) where n in (2, 3)"


def world() -> ScriptedWorld:
    return ScriptedWorld(environment=ScriptedEnvironment(train=3, val=6, test=0))


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was killed when four answers were recorded, and nobody had used them yet."""
    folder = tmp_path_factory.mktemp("killed")

    def work() -> None:
        asyncio.run(start(config(folder, SMALL), folder / "run", world().session(observers=(KillAt(call=4),))))

    assert in_child(work) == signal.SIGKILL
    return folder / "run"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run, undisturbed."""
    folder = tmp_path_factory.mktemp("finished")
    asyncio.run(start(config(folder, SMALL), folder / "run", world().session()))
    return folder / "run"


@pytest.fixture
def run(killed: Path, tmp_path: Path) -> Path:
    with EventLog.open(killed) as log:
        head = log.head().seq
    return cut_off(killed, tmp_path / "run", head)


def test_exchanged_answers_are_not_used(run: Path) -> None:
    """Two calls that no event names yet have other answers now: the run does not go on with them."""
    forge(run, EXCHANGED)
    assert not verify(run).ok
    with pytest.raises(LogDamaged, match=r"call [23] was changed"):
        asyncio.run(resume(run, world().session()))
    with pytest.raises(LogDamaged, match="call 2 was changed"):
        spent(run)
    with EventLog.open(run) as log, pytest.raises(LogDamaged, match="call 2 was changed"):
        list(Journal(log.reader).read())


def test_calls_of_another_chain_are_not_used(run: Path) -> None:
    """Each may have the right hash of its own and still not follow the one before it."""
    forge(run, "update calls set prev_hash = zeroblob(32) where n = 3")
    with pytest.raises(LogDamaged, match=r"call 3 .* does not follow call 2"):
        RunWriter.open(run, now=lambda: NOON)
    with Reading.of(run) as reading:
        assert str(reading.problem) == "call 3 does not follow call 2"


def test_events_that_do_not_follow_are_not_read(finished: Path, tmp_path: Path) -> None:
    """Also by those who read some types of them only."""
    run = cut_off(finished, tmp_path / "run", 9)
    forge(run, "update events set prev_hash = zeroblob(32) where seq = 2")
    with Reading.of(run) as reading:
        assert reading.until == 1
        assert str(reading.problem) == "event 2 does not follow its predecessor"


def test_a_history_that_cannot_be_is_no_bug(finished: Path, tmp_path: Path) -> None:
    """A log whose hashes are right and whose events make no sense is damaged, and says at which event."""
    with EventLog.open(finished) as log:
        started, scored = (next(log.read(types=(name,))).event for name in ("RunStarted", "RolloutCompleted"))
    with RunWriter.create(tmp_path / "odd", run_id="odd", name="odd", now=lambda: NOON) as writer:
        asyncio.run(writer.append([started, scored, scored], expected=0))
    with pytest.raises(LogDamaged, match="the log before event 3 cannot lead to it"):
        read_state(tmp_path / "odd")


def test_a_writer_goes_on_from_what_it_has_read(run: Path) -> None:
    """Whoever appended since then is not written over: neither on the disk nor in the reader's mind."""
    with RunWriter.open(run, now=lambda: NOON) as writer:
        read = list(writer.log.read())
        asyncio.run(writer.append([read[0].event], expected=len(read)))
        with pytest.raises(WrongExpectedSeq):
            asyncio.run(writer.append([read[0].event], expected=read[-1].seq))


def test_a_run_is_on_disk_before_its_first_call(tmp_path: Path) -> None:
    """So that whatever was paid for can be gone on with, however early the process dies."""
    seen: list[int] = []

    def reply(request: ChatRequest) -> str | ChatReply:
        with EventLog.open(tmp_path / "run") as log:
            seen.append(log.head().seq)
        return target_reply(request)

    asked = evolve(world(), target=ScriptedModel("scripted target", reply))
    asyncio.run(start(config(tmp_path, SMALL), tmp_path / "run", asked.session()))
    assert min(seen) >= 1
