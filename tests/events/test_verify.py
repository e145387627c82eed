"""Every change to a finished log is reported, and named where it is."""

from __future__ import annotations

import asyncio
import json
import random
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from attrs import evolve
from support.event_runs import (
    SKILL,
    address,
    client,
    copy_live,
    create,
    fill,
    forge,
    reopen,
    resumed,
    rollout,
    ticking,
    unit,
    with_writer,
)

from skillopt_es.events.anchor import Anchor, write_anchor
from skillopt_es.events.create import ForkPoint
from skillopt_es.events.errors import LogError
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.portable import put_down, raw_texts, take_up
from skillopt_es.events.verify import verify
from skillopt_es.events.writer import RunWriter

UNITS = 12
TABLES = (("run", "run_id"), ("blobs", "rowid"), ("forms", "id"), ("calls", "n"), ("events", "seq"))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    fill(folder, UNITS)
    return folder


@pytest.fixture
def folder(filled: Path, tmp_path: Path) -> Path:
    return copy_live(filled, tmp_path / "run")


def test_a_whole_log_is_ok(folder: Path) -> None:
    """The report counts what is there and names the head."""
    report = verify(folder)
    with EventLog.open(folder) as log:
        assert report.head_hash == log.head().hash
    assert (report.ok, report.events, report.calls, report.problems, report.warnings) == (True, 13, 13, (), ())
    assert report.blobs == 1 + 3 * UNITS


def test_a_missing_anchor_is_a_problem(folder: Path, tmp_path: Path) -> None:
    """Every log has one from its beginning; without it nobody can tell whether events are missing at the end."""
    (folder / "head.json").unlink()
    assert [problem.message.split(":")[0] for problem in verify(folder).problems] == ["head.json is gone"]
    with create(tmp_path / "new"):
        assert verify(copy_live(tmp_path / "new", tmp_path / "killed")).ok


def test_an_anchor_that_was_kept_tells_what_was_written_again(folder: Path, tmp_path: Path) -> None:
    """Who recomputes every hash and writes head.json anew is only seen by who kept the old one."""
    kept = tmp_path / "kept.json"
    kept.write_bytes((folder / "head.json").read_bytes())
    with_loop_closed(folder, 13)
    assert verify(folder, kept).ok  # it has grown, and is the same up to there
    with EventLog.open(folder) as log:
        taken = take_up(log)
        texts = raw_texts(log, [row[0].hex() for row in log.reader.rows("select digest from blobs")])
    events = [evolve(event, recorded_at="2026-02-02T00:00:00.000000Z") for event in taken.events]
    put_down(tmp_path / "forged", evolve(taken, events=tuple(events)), texts)
    assert verify(tmp_path / "forged").ok
    told = verify(tmp_path / "forged", kept).problems
    assert [problem.message for problem in told] == ["number 13 of events is not the one that the kept anchor names"]


@pytest.mark.parametrize(
    ("statement", "where", "seq", "words"),
    [
        ("update events set data = replace(data, 'item-3', 'item-4') where seq = 5", "event", 5, "was changed"),
        ("update events set recorded_at = 'x' where seq = 5", "event", 5, "was changed"),
        ("update events set cause = '' where seq = 5", "event", 5, "was changed"),
        ("update events set version = 2 where seq = 5", "event", 5, "was changed"),
        ("update events set type = 'RunPaused' where seq = 5", "event", 5, "was changed"),
        ("update events set hash = zeroblob(32) where seq = 5", "event", 5, "was changed"),
        ("delete from events where seq = 5", "event", 6, "does not follow event 4"),
        ("delete from events where seq = 1", "event", 2, "does not follow event 0"),
        (
            "update events set seq = case seq when 5 then -6 else -5 end where seq in (5, 6)",
            "event",
            -6,
            "does not follow",
        ),
        ("delete from events where seq > 10", "anchor", 10, "3 events are missing after number 10"),
        ("delete from events", "anchor", 0, "13 events are missing after number 0"),
        ("update calls set tries = '[1]' where n = 4", "call", 4, "was changed"),
        ("update calls set latency_ms = latency_ms + 1 where n = 4", "call", 4, "was changed"),
        ("update calls set input_tokens = null where n = 4", "call", 4, "was changed"),
        ("update calls set n = n + 100 where n = 4", "call", 5, "does not follow call 3"),
        ("delete from calls where n = 4", "call", 5, "does not follow call 3"),
        ("delete from calls where n > 11", "event", 12, "not in the journal"),
        (
            "update blobs set data = cast('answer 9' as blob) where data = cast('answer 3' as blob)",
            "blob",
            None,
            "digest",
        ),
        ("update blobs set size = size + 1 where rowid = 3", "blob", None, "does not match its content"),
        ("update blobs set checksum = 0 where rowid = 3", "blob", None, "does not match its content"),
        ("update blobs set codec = 'zlib' where rowid = 3", "blob", None, "decompressed"),
        ("delete from blobs where data = cast('answer 3' as blob)", "call", 5, "answer"),
        ("delete from blobs where data = cast('question 3' as blob)", "call", 5, "request"),
        ("delete from blobs where instr(data, cast('item 3' as blob))", "event", 5, "trajectory"),
        ("delete from blobs where codec = 'zlib'", "call", 2, "request"),
        ("update forms set role = 'optimizer' where id = 2", "call", 2, "was changed"),
        ("update forms set id = 9 where id = 2", "call", 2, "was changed"),
        ("update calls set form = 1 where n = 4", "call", 4, "was changed"),
        ("update calls set texts = zeroblob(64) where n = 4", "call", 4, "was changed"),
        ("delete from forms where id = 1", "call", 1, "was changed"),
        (
            "insert into forms select 3, role, stage, model, request from forms where id = 2",
            "form",
            None,
            "there twice",
        ),
        ("insert into forms select 3, role, 'x', model, request from forms where id = 2", "form", None, "not in use"),
        ("update run set name = 'other'", "run", None, "was changed"),
        ("update run set parent_run = 'other'", "run", None, "was changed"),
        ("delete from run", "run", None, "0 runs"),
        ("drop trigger events_next", "schema", None, "events_next is missing"),
    ],
)
def test_a_change_is_named_where_it_is(folder: Path, statement: str, where: str, seq: int | None, words: str) -> None:
    """Whatever is removed, changed or reordered behind the triggers' back, the first problem says where."""
    if statement.startswith("drop"):
        with closing(client(folder)) as connection:
            connection.execute(statement)
    else:
        forge(folder, statement)
    report = verify(folder)
    assert not report.ok
    first = report.problems[0]
    assert (first.where, first.seq) == (where, seq), report.problems
    assert words in first.message


@pytest.mark.parametrize(
    "statement",
    [
        "update blobs set checksum = 0 where rowid in (3, 5)",
        "update blobs set data = cast('answer 9' as blob) where data = cast('answer 3' as blob)",
        "delete from blobs where data = cast('answer 3' as blob)",
        "update blobs set codec = 'zlib' where rowid = 3",
    ],
)
def test_texts_that_another_processor_checks_are_reported_alike(
    folder: Path, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many texts are checked in a process of their own; the report is the same, in the same order."""
    forge(folder, "update events set hash = zeroblob(32) where seq = 5", statement)
    alone = verify(folder)
    monkeypatch.setattr("skillopt_es.events.verify._WORTH_A_PROCESS", 1)
    assert verify(folder) == alone
    assert not alone.ok


def test_two_swapped_events_are_found(folder: Path) -> None:
    """Their hashes still fit their rows, but not each other."""
    with closing(client(folder)) as connection:
        names = [name for (name,) in connection.execute("select name from sqlite_master where type = 'trigger'")]
    with closing(client(folder)) as connection:
        for name in names:
            connection.execute(f"drop trigger {name}")
        for old, new in ((5, 1000), (6, 5), (1000, 6)):
            connection.execute("update events set seq = ? where seq = ?", (new, old))
    problems = [problem for problem in verify(folder).problems if problem.where == "event"]
    assert problems[0].seq == 5


def test_a_trigger_that_was_weakened_is_found(folder: Path) -> None:
    """A trigger of the right name that does nothing is not the trigger."""
    with closing(client(folder)) as connection:
        connection.execute("drop trigger events_no_update")
        connection.execute("create trigger events_no_update before update on events begin select 1; end")
    assert "events_no_update was changed" in verify(folder).problems[0].message


def test_projections_beside_the_log_do_not_matter(folder: Path) -> None:
    """Tables, views and indexes of others may come and go; they are named."""
    with closing(client(folder)) as connection:
        connection.execute("create table history (seq integer, note text)")
        connection.execute("create view latest as select max(seq) from events")
    report = verify(folder)
    assert report.ok
    assert report.warnings == (
        "log.db also holds what is no part of the log, and nothing vouches for it: table history, view latest",
    )


def test_references_that_lead_nowhere_are_found(tmp_path: Path) -> None:
    """A trajectory nobody stored and a call nobody made are problems, although the chain is whole."""
    row = rollout(1, trajectory=address("nothing"))
    with_writer(tmp_path / "run", lambda writer: writer.append([row], expected=0))
    assert "trajectory" in verify(tmp_path / "run").problems[0].message
    fill(tmp_path / "other", 1)
    with EventLog.open(tmp_path / "other") as log:
        ref = next(Journal(log.reader).read()).ref
    with_writer(tmp_path / "third", lambda writer: writer.append([rollout(1, [ref])], expected=0))
    assert "not in the journal" in verify(tmp_path / "third").problems[0].message


@pytest.mark.parametrize("content", ["", "{", "[]", "7", '{"seq": 1}', "\x00"])
def test_an_anchor_that_cannot_be_read_is_a_problem(folder: Path, content: str) -> None:
    """It was written whole, so it is damage."""
    (folder / "head.json").write_text(content)
    assert [problem.where for problem in verify(folder).problems] == ["anchor"]


@pytest.mark.parametrize("number", [-1, 2**63, 10**3999])
@pytest.mark.parametrize("key", ["seq", "calls"])
def test_a_number_that_no_row_can_have_is_damage(folder: Path, key: str, number: int) -> None:
    """Told in a short sentence."""
    anchor = json.loads((folder / "head.json").read_text())
    (folder / "head.json").write_text(json.dumps({**anchor, key: number}))
    [problem] = verify(folder).problems
    assert problem.message == f"{folder / 'head.json'} is damaged: it is not what was written"


def test_an_anchor_of_another_run_or_history_is_a_problem(folder: Path, filled: Path) -> None:
    """The number is right, the rest is not."""
    anchor = json.loads((filled / "head.json").read_text())
    write_anchor(folder, Anchor(**{**anchor, "run_id": "other"}))
    assert "belongs to run other" in verify(folder).problems[0].message
    write_anchor(folder, Anchor(**{**anchor, "seq": 5}))
    assert "number 5 of events is not" in verify(folder).problems[0].message
    write_anchor(folder, Anchor(**{**anchor, "calls": 20}))
    assert "7 calls are missing after number 13" in verify(folder).problems[0].message


@pytest.mark.parametrize("flips", [30, pytest.param(500, marks=pytest.mark.slow)])
def test_every_harmful_flip_of_a_bit_in_the_database_is_reported(tmp_path: Path, flips: int) -> None:
    """Of random flips, each that changes what can be read is found, and reading raises only our errors."""
    folder = tmp_path / "run"
    fill(folder, 4 * UNITS)  # so that most pages are full, and most flips meet something
    whole, before = (folder / "log.db").read_bytes(), readable(folder)
    harmful = 0
    for dice in seeded(flips):
        place = dice.randrange(len(whole) * 8)
        (folder / "log.db").write_bytes(flipped(whole, place))
        for leftover in folder.glob("log.db-*"):
            leftover.unlink()
        changed = readable(folder) != before
        harmful += changed
        if changed or not read_all(folder):
            assert not verify(folder).ok, f"flip of bit {place} went unnoticed"
        else:
            verify(folder)
    assert harmful > flips / 10, "most flips met nothing that can be read"


@pytest.mark.slow
def test_every_harmful_flip_of_a_bit_in_the_header_is_reported(folder: Path) -> None:
    """All 800 of them: its few bytes say where everything else is."""
    whole, before = (folder / "log.db").read_bytes(), readable(folder)
    for place in range(100 * 8):
        (folder / "log.db").write_bytes(flipped(whole, place))
        for leftover in folder.glob("log.db-*"):
            leftover.unlink()
        if readable(folder) != before or not read_all(folder):
            assert not verify(folder).ok, f"flip of bit {place} went unnoticed"


@pytest.mark.slow
def test_every_harmful_flip_of_a_bit_in_the_write_ahead_log_is_reported(filled: Path, tmp_path: Path) -> None:
    """SQLite drops what follows a flipped bit without a word; the tail knows that it was there."""
    work = copy_live(filled, tmp_path / "work")
    with reopen(work) as writer:
        for number in range(13, 20):
            with_loop(writer, number)
        torn = copy_live(work, tmp_path / "torn")
    assert verify(torn).ok
    database, wal = (torn / "log.db").read_bytes(), (torn / "log.db-wal").read_bytes()
    before, harmful = readable(torn), 0
    for turn, dice in enumerate(seeded(150)):
        for leftover in torn.glob("log.db-*"):
            leftover.unlink()
        (torn / "log.db").write_bytes(database)
        cut = turn % 3 == 0
        place = dice.randrange(len(wal) * 8)
        (torn / "log.db-wal").write_bytes(wal[: place // 8] if cut else flipped(wal, place))
        if readable(torn) != before:
            harmful += 1
            assert not verify(torn).ok, f"{'cut at' if cut else 'flip of'} bit {place} went unnoticed"
    assert harmful > 30, "most changes met nothing that can be read"


def test_every_harmful_change_of_whole_pages_is_reported(folder: Path) -> None:
    """Pages that were zeroed, swapped, garbled or cut off are found like single bits."""
    whole, before = (folder / "log.db").read_bytes(), readable(folder)
    for dice in seeded(100):
        (folder / "log.db").write_bytes(spoiled(whole, dice))
        for leftover in folder.glob("log.db-*"):
            leftover.unlink()
        if readable(folder) != before or not read_all(folder):
            assert not verify(folder).ok


@pytest.mark.slow
def test_a_flip_in_the_anchor_is_reported(folder: Path) -> None:
    """Every bit of it is either checked or makes it unreadable; only what space means nothing may change."""
    whole = (folder / "head.json").read_bytes()
    for place in range(0, (len(whole) - 1) * 8, 7):
        (folder / "head.json").write_bytes(flipped(whole, place))
        changed = parsed(whole) != parsed(flipped(whole, place))
        assert verify(folder).ok is not changed, place


def test_a_fork_verifies_on_its_own(folder: Path, tmp_path: Path) -> None:
    """It holds its prefix with the parent's hashes, the whole journal, and goes on from there."""
    target = tmp_path / "fork"
    fork = ForkPoint(folder, 5)
    with RunWriter.create(target, run_id="id-of-fork", name="fork", now=ticking(), fork=fork) as writer:
        assert writer.log.head().seq == 5
        assert writer.log.run.parent_run == "id-of-run"
        assert writer.log.run.parent_head == writer.log.head().hash
        assert len(writer.journal) == 13
        with EventLog.open(folder) as parent:
            assert list(parent.read(until=5)) == list(writer.log.read())
        with_loop(writer, 5)
    assert verify(target).ok
    forge(target, "delete from events where seq >= 5")
    (target / "head.json").unlink()
    assert "shared with its parent" in verify(target).problems[0].message


@pytest.mark.parametrize("seq", [-1, 14])
def test_a_fork_point_must_be_in_the_parent(folder: Path, tmp_path: Path, seq: int) -> None:
    """Nothing is made otherwise, and the parent may be forked at its very start."""
    fork = ForkPoint(folder, seq)
    with pytest.raises(LogError, match="13 events"):
        RunWriter.create(tmp_path / "fork", run_id="f", name="fork", now=ticking(), fork=fork)
    assert not (tmp_path / "fork" / "log.db").exists()
    RunWriter.create(tmp_path / "fork", run_id="f", name="fork", now=ticking(), fork=ForkPoint(folder, 0)).close()
    assert verify(tmp_path / "fork").ok


def test_the_number_of_problems_is_bounded(folder: Path) -> None:
    """A log that lost everything is reported in a page, not in a book."""
    with_writer(folder, lambda writer: writer.append([resumed(n) for n in range(300)], expected=13))
    forge(folder, "update events set recorded_at = 'x'")
    assert len(verify(folder).problems) == 200


def test_the_canary_fails(folder: Path) -> None:
    """The flip test would notice if verify noticed nothing."""
    data = (folder / "log.db").read_bytes()
    place = data.index(b"item-7") * 8
    (folder / "log.db").write_bytes(flipped(data, place))
    assert not verify(folder).ok
    assert SKILL.encode() not in data


def with_loop_closed(folder: Path, number: int) -> None:
    with reopen(folder) as writer:
        with_loop(writer, number)


def with_loop(writer: RunWriter, number: int) -> int:

    return asyncio.run(unit(writer, number, expected=writer.log.head().seq))


def seeded(count: int) -> Iterator[random.Random]:
    dice = random.Random(count)
    for _ in range(count):
        yield dice


def flipped(data: bytes, place: int) -> bytes:
    index = place // 8
    return data[:index] + bytes([data[index] ^ (1 << place % 8)]) + data[index + 1 :]


def spoiled(data: bytes, dice: random.Random) -> bytes:
    pages = [data[start : start + 4096] for start in range(0, len(data), 4096)]
    one, other = dice.randrange(len(pages)), dice.randrange(len(pages))
    match dice.choice(["zero", "swap", "copy", "garble", "cut"]):
        case "zero":
            pages[one] = bytes(4096)
        case "swap":
            pages[one], pages[other] = pages[other], pages[one]
        case "copy":
            pages[one] = pages[other]
        case "garble":
            start = dice.randrange(4000)
            pages[one] = pages[one][:start] + dice.randbytes(96) + pages[one][start + 96 :]
        case _:
            return data[: dice.randrange(len(data))]
    return b"".join(pages)


def readable(folder: Path) -> object:
    """All that a client gets out of the four tables, in order and by key, or what it hears instead."""
    try:
        with closing(sqlite3.connect(f"file:{folder}/log.db?mode=ro", uri=True)) as connection:
            rows = {
                table: connection.execute(f"select * from {table} order by {key}").fetchall() for table, key in TABLES
            }
            found = [
                connection.execute("select size from blobs where digest = ?", row[:1]).fetchall()
                for row in rows["blobs"]
            ]
            slots = connection.execute("select slot, attempt from calls order by slot, attempt").fetchall()
            return rows, found, slots
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return re.sub(r"\d+", "n", str(error))


def read_all(folder: Path) -> bool:
    """Whether our own readers read it all; they may raise nothing but our errors."""
    try:
        with EventLog.open(folder) as log:
            for recorded in log.read():
                assert recorded.seq
            for row in Journal(log.reader).read():
                assert row.n
    except LogError:
        return False
    return True


def parsed(data: bytes) -> object:
    try:
        return json.loads(data)
    except ValueError:
        return None
