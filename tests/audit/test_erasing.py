"""Erasing an item's texts: the bytes are gone, the chain vouches for the rest, and everything can still be read."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from attrs import evolve
from support.audits import regated
from support.logs import events_of
from support.scripted import NOON, ScriptedEnvironment, ScriptedModel, ScriptedWorld, config, optimizer_reply
from support.tamper import cut_off

from skillopt_es.audit.blame import blame
from skillopt_es.audit.check import check
from skillopt_es.audit.descent import Evidence, descent
from skillopt_es.audit.erasing import Erased, erase_evidence
from skillopt_es.audit.own_words import _lines
from skillopt_es.audit.retracting import retracted
from skillopt_es.engine.differences import CheckReport
from skillopt_es.errors import BackendError
from skillopt_es.events.catalog import PatchProposed, RolloutCompleted, RunPaused, TextsErased
from skillopt_es.events.erase import Eraser
from skillopt_es.events.erasures import ERASED, ErasedText
from skillopt_es.events.errors import LogUnwritable, RunBusy
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import FailurePattern
from skillopt_es.events.verify import verify
from skillopt_es.events.writer import RunWriter
from skillopt_es.ports import CallFailed, ChatRequest
from skillopt_es.sessions.continuing import read_before
from skillopt_es.sessions.forking import make_fork
from skillopt_es.sessions.session import read_state, resume, start, train_on

SMALL = ("train.num_epochs=2", "train.batch_size=3", "optimizer.slow_update_gate_with_selection=true")


def world() -> ScriptedWorld:
    """A run of about a hundred events; its optimizer repeats what it read."""
    return ScriptedWorld(
        environment=ScriptedEnvironment(train=6, val=6, test=3),
        optimizer=ScriptedModel("scripted optimizer", _talkative),
    )


def _talkative(request: ChatRequest) -> str:
    reply = optimizer_reply(request)
    said = " and ".join(
        word for word in ("kind: apple id: t0", "kind: cedar id: t2") if word in request.messages[1].content
    )
    return reply.replace("kinds are missing", f"seen: {said}") if said else reply


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete run; read it, never write to it."""
    folder = tmp_path_factory.mktemp("erase")
    asyncio.run(start(config(folder, SMALL), folder / "run", world().session()))
    return folder / "run"


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    """A copy of it, beside its config."""
    config(tmp_path, SMALL)
    return Path(shutil.copytree(whole, tmp_path / "run"))


def erased(folder: Path, item: str = "t0", place: str = "", also: tuple[str, ...] = ()) -> Erased:
    """The item's texts are taken out."""
    return erase_evidence(folder, Evidence(item, place), reason="private", by="me", now=lambda: NOON, also=also)


def checked(folder: Path) -> CheckReport:
    """What `replay --check` finds."""
    with EventLog.open(folder) as log:
        return asyncio.run(check(log, Journal(log.reader), folder))


def assert_whole(folder: Path) -> None:
    """The log is what was written, but for what was erased, and what can be derived follows."""
    report = verify(folder)
    assert report.ok, report.problems
    found = checked(folder)
    assert found.ok, found.mismatch
    assert found.events == len(events_of(folder))


def stored(folder: Path) -> Iterator[bytes]:
    """Every byte that the run's files hold, and every text of it unpacked."""
    yield from (path.read_bytes() for path in folder.iterdir() if path.is_file())
    with closing(sqlite3.connect(f"file:{folder / 'log.db'}?mode=ro", uri=True)) as connection:
        for codec, data in connection.execute("select codec, data from blobs"):
            yield zlib.decompress(data) if codec == "zlib" else data


def says(folder: Path, text: str) -> bool:
    """Whether a text stands anywhere in the run."""
    return any(text.encode() in raw for raw in stored(folder))


def test_the_texts_are_gone_to_the_last_byte(run: Path) -> None:
    """From the file, from its write-ahead log, from the prompts that showed it and the answers that repeated it."""
    assert says(run, "kind: apple id: t0")
    found = erased(run)
    assert not says(run, "kind: apple id: t0")
    assert says(run, "kind: birch id: t1")
    assert found.own_texts
    assert found.other_texts > 2
    assert found.events
    assert (found.left_in_files, found.related_runs) == ((), ())


def test_the_chain_vouches_for_the_rest(run: Path, whole: Path) -> None:
    """No hash changes; `verify` says what was erased, when, by whom and why."""
    erased(run)
    assert_whole(run)
    with EventLog.open(run) as log, EventLog.open(whole) as before:
        rows = list(log.read())
        assert [row.hash for row in rows[:-1]] == [row.hash for row in before.read()]
    [told] = verify(run).erased
    event = rows[-1].event
    assert isinstance(event, TextsErased)
    assert (told.seq, told.by, told.reason, told.items) == (rows[-1].seq, "me", "private", ("t0",))
    assert (told.texts, told.events) == (len(event.texts), len(event.events))
    assert told.recorded_at.startswith("2026-01-01T12:00")


def test_what_follows_from_what_is_left_is_still_checked(run: Path) -> None:
    """The others are taken on trust, and counted."""
    before = checked(run).decisions
    erased(run)
    found = checked(run)
    [(what, count)] = found.unchecked.items()
    assert "erased" in what
    assert found.decisions > before / 2
    assert found.decisions + count == before


@pytest.mark.parametrize("item", ["t3", "v0", "x1"])
def test_any_item_can_be_erased(run: Path, item: str) -> None:
    """Of each split; and then the next."""
    erased(run, item)
    assert not any(says(run, f" id: {item}{end}") for end in ('"', "\n", "\\n"))
    erased(run, "t2")
    assert_whole(run)
    assert [each.items for each in verify(run).erased] == [(item,), ("t2",)]


def test_everything_is_still_read(run: Path) -> None:
    """With a mark in the place of what is gone."""
    erased(run)
    with EventLog.open(run) as log:
        rows = list(log.read())
        texts = [log.text(row.event.trajectory) for row in rows if isinstance(row.event, RolloutCompleted)]
        marks = {text for text in texts if isinstance(text, ErasedText)}
    assert marks == {"(erased on 2026-01-01: private)"}
    assert {e.prediction for e in events_of(run) if isinstance(e, RolloutCompleted) and e.item == "t0"} == {ERASED}
    assert any(event.reasoning == ERASED for event in events_of(run) if isinstance(event, PatchProposed))
    assert blame(rows) is not None
    assert descent(Evidence("t0"), rows).derived
    assert not any(verdict.changed for verdict in regated(run).verdicts)


def test_there_is_nothing_to_erase_twice(run: Path) -> None:
    """The second time no event is written."""
    erased(run)
    events = len(events_of(run))
    again = erased(run)
    assert again.event is None
    assert "nothing more" in "\n".join(again.lines())
    assert len(events_of(run)) == events


def test_one_trajectory_takes_only_its_own_texts_along(run: Path) -> None:
    """What the item sent elsewhere, too, stays."""
    [first, *_] = [event for event in events_of(run) if isinstance(event, RolloutCompleted) and event.item == "t0"]
    erased(run, "t0", first.place)
    assert says(run, "kind: apple id: t0")
    assert_whole(run)


def test_more_can_be_named(run: Path) -> None:
    """Also what other items say."""
    assert says(run, "kind: birch id: t1")
    erased(run, also=("kind: birch id: t1",))
    assert not says(run, "kind: birch id: t1")
    assert_whole(run)


# --- others at the same time, and crashes --------------------------------------------------------------------------


def test_a_run_that_is_written_is_left_alone(run: Path) -> None:
    """Whoever writes it is named."""
    with RunWriter.open(run, now=lambda: NOON), pytest.raises(RunBusy):
        erased(run)
    assert says(run, "kind: apple id: t0")
    erased(run)


def test_a_crash_leaves_all_or_nothing(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the commit it is as it was; the guards of the tables stand."""
    with monkeypatch.context() as patched:
        patched.setattr(Eraser, "_append", _crash)
        with pytest.raises(KeyboardInterrupt):
            erased(run)
    assert verify(run).ok
    assert verify(run).erased == ()
    assert says(run, "kind: apple id: t0")
    assert not erased_after_commit(run, monkeypatch)


def erased_after_commit(run: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a text survives a crash after the commit once the same is asked for again."""
    with monkeypatch.context() as patched:
        patched.setattr(Eraser, "wipe", _crash)
        with pytest.raises(KeyboardInterrupt):
            erased(run)
    assert verify(run).ok
    assert erased(run).event is None
    assert_whole(run)
    return says(run, "kind: apple id: t0")


def _crash(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_reader_at_work_is_told_of(run: Path) -> None:
    """Nothing is half done: the same again finishes."""
    with closing(sqlite3.connect(run / "log.db", isolation_level=None)) as reader:
        reader.execute("begin")
        reader.execute("select count(*) from blobs").fetchone()
        with pytest.raises(LogUnwritable):
            erased(run)
    assert verify(run).erased
    erased(run)
    assert not says(run, "kind: apple id: t0")


# --- tampering -----------------------------------------------------------------------------------------------------


def tampered(run: Path, *statements: str) -> list[str]:
    """What `verify` says after somebody else changed the file."""
    with closing(sqlite3.connect(run / "log.db")) as connection:
        triggers = connection.execute("select name, sql from sqlite_master where type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"drop trigger {name}")
        for statement in statements:
            connection.execute(statement)
        for _, sql in triggers:
            connection.execute(sql)
        connection.commit()
    return [problem.message for problem in verify(run).problems]


def test_an_erasure_hides_no_other_change(run: Path) -> None:
    """What is left of an event may not change again, nor may another text go."""
    erased(run)
    [told] = [event for event in events_of(run) if isinstance(event, TextsErased)]
    seq = told.events[0].seq
    [message] = tampered(run, f"update events set data = replace(data, '(erased)', '(other)') where seq = {seq}")
    assert f"event {seq}" in message
    tampered(run, f"update events set data = replace(data, '(other)', '(erased)') where seq = {seq}")
    assert verify(run).ok
    assert any("missing" in message for message in tampered(run, "delete from blobs where rowid = 3"))


# --- going on ------------------------------------------------------------------------------------------------------


def test_a_fork_knows_what_its_parent_erased(run: Path) -> None:
    """Before the erasure, too; and it goes on to the same end."""
    erased(run)
    fork = make_fork(run, 30, run.parent / "fork", now=lambda: NOON).folder
    assert verify(fork).ok, verify(fork).problems
    assert [each.items for each in verify(fork).erased] == [("t0",)]
    asyncio.run(resume(fork, world().session()))
    assert read_state(fork).status == "completed"
    assert_whole(fork)


def test_a_fork_without_the_item_never_needs_its_texts(run: Path) -> None:
    """Retracted and erased in both: the fork's end has never heard of it."""
    fork = retracted(
        run, Evidence("t0"), run.parent / "without", reason="private", by="me", now=lambda: NOON
    ).fork.folder
    found = erased(run)
    assert found.related_runs == ("without",)
    erased(fork)
    asyncio.run(resume(fork, world().session()))
    assert_whole(fork)
    assert not says(fork, "kind: apple id: t0")


def test_a_run_that_stopped_asks_anew_for_what_is_gone(tmp_path: Path) -> None:
    """An answer that was erased is no answer; the run goes on all the same."""
    config(tmp_path, SMALL)
    there = world()
    broken = ScriptedModel("scripted optimizer", _refusing)
    with pytest.raises(BackendError):
        asyncio.run(start(config(tmp_path, SMALL), tmp_path / "run", ScriptedWorld(
            environment=there.environment, target=there.target, optimizer=broken).session()))  # fmt: skip
    run = tmp_path / "run"
    assert isinstance(events_of(run)[-1], RunPaused)
    [last, *_] = [event for event in events_of(run) if isinstance(event, RolloutCompleted) and event.purpose == "train"]
    erased(run, last.item)
    asyncio.run(resume(run, there.session()))
    assert read_state(run).status == "completed"
    assert_whole(run)


def _refusing(request: ChatRequest) -> str:
    raise CallFailed("auth", "wrong key")


def test_a_log_that_was_cut_off_can_be_erased_from(run: Path, tmp_path: Path) -> None:
    """The last writer died, and nobody has said so."""
    part = cut_off(run, tmp_path / "part", 40)
    erased(part)
    assert_whole(part)
    assert not says(part, "kind: apple id: t0")


def test_a_text_that_is_nested_too_deep_is_searched_as_it_stands() -> None:
    """What a model wrote may be anything; finding an item's words in it must not break off."""
    deep = "[" * 5000
    assert list(_lines(deep)) == [deep]
    nested = "[" * 900 + '"a word"' + "]" * 900
    assert list(_lines(nested)) in (["a word"], [nested])
    assert list(_lines('{"b": ["x", {"c": "y"}], "a": "z\\nw"}')) == ["x", "y", "z", "w"]


def test_what_another_run_handed_on_is_erased_too(run: Path, tmp_path: Path) -> None:
    """The notes and tries of the run before it, in every field that quotes; each run names the other."""
    before = read_before(run, ("train.num_epochs=1", "train.train_size=0"))
    said = "It said: kind: apple id: t0, so be careful."
    tried = evolve(before.learned.tried[-1], rejected_notes=(said,), patterns=(FailurePattern(said, 1, said),))
    quoted = evolve(before.learned, meta_skill=said, tried=(tried,))
    asyncio.run(train_on(evolve(before, learned=quoted), tmp_path / "on", world().session()))
    assert says(tmp_path / "on", "kind: apple id: t0")
    found = erased(tmp_path / "on")
    assert found.related_runs == ("run",)
    assert not says(tmp_path / "on", "kind: apple id: t0")
    assert_whole(tmp_path / "on")
    assert erased(run).related_runs == ("on",)


def test_what_only_the_run_before_has_of_an_item_is_looked_for(run: Path, tmp_path: Path) -> None:
    """It was not tried since: only the other log knows its words."""
    before = read_before(run, ())
    quoted = evolve(before.learned, meta_skill="It said: kind: apple id: t0, so be careful.")
    stopped = ScriptedWorld(environment=ScriptedEnvironment(train=6, val=6, test=3), target=ScriptedModel("t", _absent))
    with suppress(BackendError):
        asyncio.run(train_on(evolve(before, learned=quoted), tmp_path / "on", stopped.session()))
    assert says(tmp_path / "on", "kind: apple id: t0")
    erased(tmp_path / "on")
    assert not says(tmp_path / "on", "kind: apple id: t0")


def _absent(request: ChatRequest) -> str:
    raise CallFailed("auth", "no key")
