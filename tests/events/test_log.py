"""Appending and reading: order, expectation, groups, readers beside the writer."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from threading import Event

import attrs
import pytest
from attrs import evolve
from support.event_runs import (
    SKILL,
    address,
    client,
    copy_live,
    create,
    failed,
    fill,
    finished,
    forge,
    reopen,
    resumed,
    rollout,
    ticking,
    with_writer,
)
from support.ready import PATIENCE

from skillopt_es.events.anchor import read_anchor, write_anchor
from skillopt_es.events.catalog import RolloutCompleted, RunPaused
from skillopt_es.events.errors import InvalidEvent, LogDamaged, LogError, RunExists, RunNotFound, WrongExpectedSeq
from skillopt_es.events.log import EventLog
from skillopt_es.events.requests import RecordedRequest
from skillopt_es.events.store import Store
from skillopt_es.events.values import raw_digest
from skillopt_es.events.verify import verify
from skillopt_es.events.writer import RunWriter


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run"


def seqs(folder: Path, **where: object) -> list[int]:
    with EventLog.open(folder) as log:
        return [recorded.seq for recorded in log.read(**where)]  # type: ignore[arg-type]


def test_what_was_appended_is_read_in_order(folder: Path) -> None:
    """Numbers start at 1 without gaps, and events come back equal."""
    events = [resumed(1), rollout(1), resumed(2)]

    async def work(writer: RunWriter) -> None:
        assert await writer.append(events[:1], expected=0) == 1
        assert await writer.append(events[1:], expected=1) == 3
        assert [recorded.event for recorded in writer.log.read()] == events

    with_writer(folder, work)
    with EventLog.open(folder) as log:
        recorded = list(log.read())
        assert [each.seq for each in recorded] == [1, 2, 3]
        assert [each.event for each in recorded] == events
        assert recorded[-1].hash == log.head().hash
        assert recorded[1].prev_hash == recorded[0].hash
        assert recorded[0].prev_hash == log.run.hash
        assert recorded[0].recorded_at.endswith("Z")


def test_reading_takes_a_range_and_types(folder: Path) -> None:
    """`after` is exclusive, `until` inclusive, and types leave the others out."""
    with_writer(folder, lambda writer: writer.append([resumed(1), rollout(1), resumed(2), rollout(2)], expected=0))
    assert seqs(folder, after=1) == [2, 3, 4]
    assert seqs(folder, after=1, until=3) == [2, 3]
    assert seqs(folder, until=0) == []
    assert seqs(folder, after=9) == []
    assert seqs(folder, types=["RolloutCompleted"]) == [2, 4]
    assert seqs(folder, types=[]) == []
    assert seqs(folder, after=2, types=["RolloutCompleted", "RunPaused"]) == [4]


def test_a_log_longer_than_one_query_is_read_whole(folder: Path) -> None:
    """The chunks of a long log join without a seam."""
    with_writer(folder, lambda writer: writer.append([resumed(number) for number in range(2500)], expected=0))
    assert seqs(folder) == list(range(1, 2501))


def test_a_stale_writer_is_told_and_nothing_is_written(folder: Path) -> None:
    """An append that expects another head fails, with both numbers."""

    async def work(writer: RunWriter) -> None:
        await writer.append([resumed(1), resumed(2)], expected=0)
        with pytest.raises(WrongExpectedSeq, match="another writer") as caught:
            await writer.append([resumed(3)], expected=1)
        assert (caught.value.expected, caught.value.actual) == (1, 2)
        with pytest.raises(WrongExpectedSeq, match="was not written"):
            await writer.append([resumed(3)], expected=7)
        assert await writer.append([resumed(3)], expected=2) == 3

    with_writer(folder, work)
    assert seqs(folder) == [1, 2, 3]


def test_a_wrong_expectation_fails_alone_in_its_group(folder: Path) -> None:
    """Of operations that are committed together, only the stale one and what was built on it fail."""

    async def work(writer: RunWriter) -> None:
        call, texts = finished("slot", "q", "a")
        results = await asyncio.gather(
            writer.append([resumed(1)], expected=0),
            writer.append([resumed(2)], expected=5),
            writer.append([resumed(3)], expected=6),
            writer.record(call, texts),
            writer.append([resumed(4)], expected=1),
            return_exceptions=True,
        )
        assert [type(result).__name__ for result in results] == [
            "int",
            "WrongExpectedSeq",
            "WrongExpectedSeq",
            "CallRow",
            "int",
        ]

    with_writer(folder, work)
    with EventLog.open(folder) as log:
        assert [recorded.event for recorded in log.read()] == [resumed(1), resumed(4)]


def test_an_operation_that_cannot_be_written_leaves_its_neighbours_alone(folder: Path) -> None:
    """A number that SQLite has no room for fails its own call, not the group."""

    async def work(writer: RunWriter) -> None:
        good, texts = finished("good", "q", "a")
        bad = type(good)(slot="bad", role="target", stage="s", model="m", request=RecordedRequest("{}"),
                         outcome="failed", latency_ms=2**70)  # fmt: skip
        results = await asyncio.gather(
            writer.record(good, texts), writer.record(bad), writer.append([resumed(1)], expected=0),
            return_exceptions=True,
        )  # fmt: skip
        assert [type(result).__name__ for result in results] == ["CallRow", "OverflowError", "int"]

    with_writer(folder, work)
    assert verify(folder).ok


def test_waiting_operations_share_a_commit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three hundred operations asked for while one commit runs take a handful more, each of 64 at most."""
    groups: list[int] = []
    asked, commit = Event(), Store.commit

    def counted(self: Store, writes: list[object]) -> object:
        assert asked.wait(PATIENCE)
        groups.append(len(writes))
        return commit(self, writes)  # type: ignore[arg-type]

    monkeypatch.setattr(Store, "commit", counted)

    async def work(writer: RunWriter) -> None:
        asking = [asyncio.ensure_future(writer.append([resumed(n)], expected=n)) for n in range(300)]
        await asyncio.sleep(0)
        asked.set()
        assert await asyncio.gather(*asking) == list(range(1, 301))

    with_writer(folder, work)
    assert sum(groups) == 300
    assert max(groups) == 64
    assert len(groups) <= 7


def test_a_cancelled_wait_does_not_undo_the_write(folder: Path) -> None:
    """Whoever asked may go away; what was asked is recorded, and others are not disturbed."""

    async def work(writer: RunWriter) -> None:
        asking = asyncio.ensure_future(writer.append([resumed(1)], expected=0))
        await asyncio.sleep(0)
        asking.cancel()
        assert await writer.append([resumed(2)], expected=1) == 2
        assert asking.cancelled()

    with_writer(folder, work)
    assert seqs(folder) == [1, 2]


def test_an_event_that_cannot_be_read_back_is_not_written(folder: Path) -> None:
    """A bad event fails in the caller, with its companions, before anything is queued."""

    async def work(writer: RunWriter) -> None:
        with pytest.raises(InvalidEvent):
            await writer.append([resumed(1), RunPaused(reason="tired", message="")], expected=0)  # type: ignore[arg-type]

    with_writer(folder, work)
    assert seqs(folder) == []


def test_big_texts_of_events_and_texts_beside_them_are_blobs(folder: Path) -> None:
    """Texts are stored once, compressed when that pays, and come back by digest."""
    message, small, noise = "x" * 5000, "small", "".join(chr(33 + (n * n * 7 + n // 3) % 90) for n in range(5000))

    async def work(writer: RunWriter) -> None:
        await writer.append([RunPaused(reason="error", message=message)], expected=0, texts=[small, noise, small])
        await writer.append([RunPaused(reason="error", message=message)], expected=1, texts=[small])

    with_writer(folder, work)
    with EventLog.open(folder) as log:
        assert [log.text(address(text)) for text in (message, small, noise)] == [message, small, noise]
        assert {each.event for each in log.read()} == {RunPaused(reason="error", message=message)}
        with pytest.raises(LogDamaged, match="missing"):
            log.text("0" * 64)
    with closing(client(folder)) as connection:
        rows = connection.execute("select size, codec, length(data) from blobs order by size").fetchall()
    assert [row[:2] for row in rows] == [(5, "raw"), (5000, rows[1][1]), (5000, rows[2][1])]
    assert any(codec == "zlib" and length < 100 for _, codec, length in rows)


def test_a_call_is_found_by_its_slot(folder: Path) -> None:
    """Answered calls are found, failed ones only among the attempts; each attempt has its number."""

    async def work(writer: RunWriter) -> None:
        first = await writer.record(failed("slot"))
        call, texts = finished("slot", "q", "a")
        second = await writer.record(call, texts)
        other = await writer.record(*finished("other", "q", "b"))
        assert (first.attempt, second.attempt, other.attempt) == (1, 2, 1)
        assert writer.journal.answers("slot") == [second]
        assert writer.journal.attempts("slot") == [first, second]
        assert writer.journal.answers("nowhere") == []
        assert list(writer.journal.read()) == [first, second, other]
        assert list(writer.journal.read(after=2)) == [other]
        assert len(writer.journal) == 3
        assert second.call == call
        assert writer.log.text(second.call.response or "") == "a"

    with_writer(folder, work)


def test_attempts_of_one_group_are_numbered(folder: Path) -> None:
    """Two calls of one slot in one transaction are attempts 1 and 2, and the next group goes on."""

    async def work(writer: RunWriter) -> None:
        rows = await asyncio.gather(*(writer.record(failed("slot")) for _ in range(5)))
        assert [row.attempt for row in rows] == [1, 2, 3, 4, 5]
        assert (await writer.record(failed("slot"))).attempt == 6

    with_writer(folder, work)


def test_a_calls_digest_does_not_depend_on_timing() -> None:
    """Latency, tries and request id are not part of what came of a call; the answer is."""
    call, _ = finished("slot", "q", "a")
    slow = attrs.evolve(call, latency_ms=99, tries='[{"kind":"timeout"}]', request_id="r")
    assert slow.digest == call.digest
    assert finished("slot", "q", "b")[0].digest != call.digest


def test_lone_surrogates_in_a_failure_are_cleaned(folder: Path) -> None:
    """What a broken server said is recorded as far as UTF-8 can hold it."""

    async def work(writer: RunWriter) -> None:
        row = await writer.record(failed("slot", "\ud800 broke"))
        assert row.call.error_message == "\ufffd broke"
        assert writer.journal.attempts("slot") == [row]

    with_writer(folder, work)


def test_a_frozen_clock_makes_logs_equal(tmp_path: Path) -> None:
    """Two runs of the same work have the same rows, hashes and all."""
    for name in ("a", "b"):
        fill(tmp_path / name, 4)
    rows = []
    for name in ("a", "b"):
        with closing(client(tmp_path / name)) as connection:
            rows.append([connection.execute(f"select * from {table} order by 1").fetchall()
                         for table in ("run", "events", "calls", "blobs")])  # fmt: skip
    assert rows[0] == rows[1]


def test_times_are_utc_with_microseconds(folder: Path) -> None:
    """Whatever zone the clock is in."""
    moment = datetime(2026, 3, 1, 1, 2, 3, tzinfo=timezone(timedelta(hours=5)))
    with RunWriter.create(folder, run_id="r", name="n", now=lambda: moment) as writer:
        asyncio.run(writer.append([resumed(1)], expected=0))
        assert next(writer.log.read()).recorded_at == "2026-02-28T20:02:03.000000Z"
        assert writer.log.run.created_at == "2026-02-28T20:02:03.000000Z"


def test_a_clock_that_fails_fails_the_operation_only(folder: Path) -> None:
    """Whoever waits hears of it, and the writer goes on."""
    moments: Iterator[datetime | None] = iter([datetime.now(UTC), None, datetime.now(UTC)])

    def now() -> datetime:
        moment = next(moments)
        if moment is None:
            raise KeyboardInterrupt
        return moment

    async def work(writer: RunWriter) -> None:
        results = await asyncio.gather(writer.append([resumed(1)], expected=0), return_exceptions=True)
        assert isinstance(results[0], KeyboardInterrupt)
        assert await writer.append([resumed(1)], expected=0) == 1

    with RunWriter.create(folder, run_id="r", name="n", now=now) as writer:
        loop = asyncio.new_event_loop()
        try:
            with pytest.raises(KeyboardInterrupt):
                loop.run_until_complete(writer.append([resumed(1)], expected=0))
            assert loop.run_until_complete(writer.append([resumed(1)], expected=0)) == 1
        finally:
            loop.close()


def test_following_gives_what_is_there_and_what_comes(folder: Path) -> None:
    """A follower sleeps when it has read all, and goes on after the last event it saw."""
    with create(folder) as writer:
        asyncio.run(writer.append([resumed(1), resumed(2)], expected=0))
        with EventLog.open(folder) as log:
            follower = log.follow(
                after=1, sleep=lambda _: asyncio.run(writer.append([resumed(3)], expected=2)) and None
            )
            assert [next(follower).seq, next(follower).seq] == [2, 3]


def test_a_reader_beside_the_writer_sees_what_is_committed(folder: Path) -> None:
    """A second connection reads while the writer works, and does not keep it from closing cleanly."""
    with create(folder) as writer, EventLog.open(folder) as log:
        assert log.head().seq == 0
        half = log.read()
        asyncio.run(writer.append([resumed(1), resumed(2)], expected=0))
        assert next(half).seq == 1
        assert log.head() == writer.log.head()
        asyncio.run(writer.anchor())
        assert next(half).seq == 2


def test_the_anchor_names_both_heads(folder: Path) -> None:
    """It is written at barriers and at the end."""

    async def work(writer: RunWriter) -> None:
        await writer.append([resumed(1)], expected=0)
        row = await writer.record(failed("slot"))
        await writer.anchor()
        anchor = read_anchor(folder)
        assert anchor is not None
        assert (anchor.run_id, anchor.seq, anchor.hash) == ("id-of-run", 1, writer.log.head().hash)
        assert (anchor.calls, anchor.calls_hash) == (1, row.hash)
        await writer.append([resumed(2)], expected=1)

    with_writer(folder, work)
    assert json.loads((folder / "head.json").read_text())["seq"] == 2


def test_closing_leaves_one_clean_file(folder: Path) -> None:
    """No write-ahead log stays behind, closing again does nothing, and a closed writer refuses work."""
    writer = create(folder)
    asyncio.run(writer.append([resumed(1)], expected=0))
    writer.close()
    writer.close()
    assert {path.name for path in folder.iterdir()} == {"log.db", "head.json", "lock"}
    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(writer.append([resumed(2)], expected=1))
    with pytest.raises(RuntimeError, match="closed"):
        asyncio.run(writer.anchor())


def test_closing_finishes_what_is_waiting(folder: Path) -> None:
    """Everything that was asked for before is on disk afterwards, and those who wait are told."""

    async def work() -> None:
        writer = create(folder)
        asked = [asyncio.ensure_future(writer.append([resumed(n)], expected=n)) for n in range(100)]
        await asyncio.sleep(0)
        writer.close()
        assert await asyncio.gather(*asked) == list(range(1, 101))

    asyncio.run(work())
    assert seqs(folder)[-1] == 100


def test_a_run_goes_on_where_it_stopped(folder: Path) -> None:
    """A new writer finds the heads of both chains."""
    fill(folder, 3)
    with reopen(folder) as writer:
        head = writer.log.head()
        asyncio.run(writer.append([resumed(1)], expected=head.seq))
        assert asyncio.run(writer.record(failed("e1/s1/train/item-0"))).attempt == 3
    assert verify(folder).ok


def test_a_new_run_needs_a_folder_without_one(folder: Path) -> None:
    """Creating over a run is refused and changes nothing; half-made files of a crash are no run."""
    folder.mkdir()
    (folder / "log.db.new").write_bytes(b"half")
    (folder / "log.db.new-wal").write_bytes(b"half")
    create(folder).close()
    assert not list(folder.glob("*.new*"))
    before = (folder / "log.db").read_bytes()
    with pytest.raises(RunExists):
        create(folder)
    assert (folder / "log.db").read_bytes() == before
    reopen(folder).close()


def test_a_run_that_is_not_there_is_not_made_by_opening_it(folder: Path) -> None:
    """Opening creates no folder, no lock and no file."""
    for opening in (lambda: reopen(folder), lambda: EventLog.open(folder), lambda: verify(folder)):
        with pytest.raises(RunNotFound):
            opening()
    assert not folder.exists()


def test_going_on_after_a_lost_tail_is_refused(folder: Path) -> None:
    """A resume would hide the loss under the next anchor."""
    fill(folder, 3)
    forge(folder, "delete from events where seq = 4")
    with pytest.raises(LogDamaged, match="1 events are missing after number 3") as refused:
        reopen(folder)
    assert "--accept-loss" in refused.value.hint
    (folder / "head.json").unlink()
    with pytest.raises(LogDamaged, match=r"head\.json is gone"):
        reopen(folder)


def test_a_loss_is_accepted_only_by_going_on(folder: Path) -> None:
    """Opening and closing is not going on: until something is appended, the loss is told again."""
    fill(folder, 3)
    forge(folder, "delete from events where seq = 4")
    for _ in range(2):
        RunWriter.open(folder, now=ticking(), accept_loss=True).close()
        with pytest.raises(LogDamaged, match="1 events are missing"):
            reopen(folder)
    with RunWriter.open(folder, now=ticking(), accept_loss=True) as writer:
        assert writer.lost == "1 events are missing after number 3"
        asyncio.run(writer.append([resumed(1)], expected=3))
        copy = copy_live(folder, folder.with_name("killed"))
    reopen(folder).close()
    reopen(copy).close()


def test_another_history_is_no_loss(folder: Path) -> None:
    """What is there but is not what was written cannot be accepted."""
    fill(folder, 3)
    anchor = read_anchor(folder)
    assert anchor is not None
    write_anchor(folder, evolve(anchor, hash="0" * 64))
    with pytest.raises(LogDamaged, match="not the one that head"):
        RunWriter.open(folder, now=ticking(), accept_loss=True)


def test_reading_stops_at_the_first_changed_event(folder: Path) -> None:
    """Those before it are given, with and without a filter."""
    fill(folder, 4)
    forge(folder, "update events set data = replace(data, 'item-1', 'item-7') where seq = 3")
    with EventLog.open(folder) as log:
        reading = log.read()
        assert [next(reading).seq, next(reading).seq] == [1, 2]
        with pytest.raises(LogDamaged, match="event 3") as caught:
            next(reading)
        assert caught.value.seq == 3
        with pytest.raises(LogDamaged, match="event 3"):
            list(log.read(types=["RolloutCompleted"]))


def test_reading_notices_a_gap(folder: Path) -> None:
    """A removed event is missed at its place."""
    fill(folder, 4)
    forge(folder, "delete from events where seq = 3")
    with EventLog.open(folder) as log, pytest.raises(LogDamaged, match="event 3 is missing"):
        list(log.read())


def test_another_program_that_appends_is_noticed(folder: Path) -> None:
    """A row that came in behind the lock makes the next append stale instead of breaking the chain."""

    async def work(writer: RunWriter) -> None:
        await writer.append([resumed(1)], expected=0)
        with closing(client(folder)) as connection:
            connection.execute(
                "insert into events select 2, type, version, recorded_at, cause, hash, x'78', data from events"
            )
        with pytest.raises(WrongExpectedSeq):
            await writer.append([resumed(2)], expected=1)

    with_writer(folder, work)


def test_connections_are_durable_and_readers_cannot_write(folder: Path) -> None:
    """The pragmas that SQLite forgets are set at each opening."""
    with create(folder) as writer:
        store = writer._store._connection
        assert store.execute("pragma journal_mode").fetchone() == ("wal",)
        assert store.execute("pragma synchronous").fetchone() == (2,)
        with pytest.raises(LogError, match="read-only"):
            writer.log.reader.rows("delete from blobs")
    with closing(sqlite3.connect(folder / "log.db")) as connection:
        assert connection.execute("pragma application_id").fetchone() == (0x534B4F45,)
        assert connection.execute("pragma user_version").fetchone() == (1,)


def test_a_skill_is_stored_once_for_all_calls(folder: Path) -> None:
    """Twenty calls that send the same text share one blob."""
    fill(folder, 20)
    with closing(client(folder)) as connection:
        found = connection.execute(
            "select count(*) from blobs where digest = ?", (raw_digest(address(SKILL)),)
        ).fetchone()
    assert found == (1,)


def test_a_rollout_reads_back_with_its_references(folder: Path) -> None:
    """Events name calls and trajectories that are there."""
    fill(folder, 2)
    with EventLog.open(folder) as log:
        event = list(log.read())[-1].event
        assert isinstance(event, RolloutCompleted)
        assert json.loads(log.text(event.trajectory))["task"] == "item 1"
