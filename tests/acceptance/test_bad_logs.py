"""Whatever is wrong with a log or a name: every reading command says it in one sentence and shows what can be read."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from support.in_process import Cli, Done, called
from support.params import parametrized
from support.scripted import NOON, ScriptedEnvironment, ScriptedWorld, config
from support.tamper import cut_off, seqs_of

from skillopt_es.events.catalog import CandidateGated
from skillopt_es.events.log import EventLog
from skillopt_es.events.schema import LOG_FILE
from skillopt_es.events.writer import RunWriter
from skillopt_es.sessions.session import start

Damage = Callable[[Path], object]


def bytes_of(change: Callable[[bytes], bytes]) -> Damage:
    """Another content of the file."""
    return lambda run: (run / LOG_FILE).write_bytes(change((run / LOG_FILE).read_bytes()))


def sql(*statements: str) -> Damage:
    """What somebody does who drops the triggers first."""

    def damage(run: Path) -> None:
        with closing(sqlite3.connect(run / LOG_FILE)) as connection, connection:
            triggers = connection.execute("select name from sqlite_master where type = 'trigger' order by 1").fetchall()
            for statement in [*(f"drop trigger {name}" for (name,) in triggers), *statements]:
                connection.execute(statement)

    return damage


def ahead_and_cut(run: Path) -> None:
    """A writer was killed: its last ten events are in the write-ahead log alone, and half of that is lost."""
    with EventLog.open(run) as log:
        events = [recorded.event for recorded in log.read()]
    shorter = cut_off(run, run.parent / "shorter", len(events) - 10)
    with RunWriter.open(shorter, now=lambda: NOON) as writer:
        for number, event in enumerate(events[-10:], len(events) - 10):
            asyncio.run(writer.append([event], expected=number))
        for name in (LOG_FILE, f"{LOG_FILE}-wal", "head.json", "tail"):
            shutil.copy(shorter / name, run / name)
    ahead = run / f"{LOG_FILE}-wal"
    ahead.write_bytes(ahead.read_bytes()[: ahead.stat().st_size // 2])


# What is done to a log of 127 events; what is said of it (a | at the end: not by all); which commands show something.
DAMAGES: dict[str, tuple[Damage, str, str]] = {
    "no bytes": (bytes_of(lambda raw: b""), "is empty, not a log", ""),
    "a text": (bytes_of(lambda raw: b"hello\n" * 100), "is not an SQLite database", ""),
    "another program's": (bytes_of(lambda raw: raw[:68] + b"\0\0\0\7" + raw[72:]), "of another program", ""),
    "the header": (bytes_of(lambda raw: raw[:100]), "is damaged", ""),
    "half": (bytes_of(lambda raw: raw[: len(raw) // 2]), "is damaged|was cut", "log replay explain lineage status"),
    "all but a page": (bytes_of(lambda raw: raw[:-4096]), "was cut: its last 4,096 bytes are", "log replay usage"),
    "a newer format": (bytes_of(lambda raw: raw[:60] + struct.pack(">I", 9) + raw[64:]), "has format 9", ""),
    "run: no row": (sql("delete from run"), "describes 0 runs", ""),
    "run: changed": (sql("update run set name = 'x'"), "description of the run", ""),
    "events: none": (sql("delete from events"), "the log ends at event 0", ""),
    "events: first changed": (sql("update events set data = '{}' where seq = 1"), "event 1 (RunStarted) was", ""),
    "events: one missing": (sql("delete from events where seq = 40"), "event 40 is missing", "log replay explain"),
    "events: one changed": (
        sql("update events set data = replace(data, 'hard', 'hart') where seq = 40"),
        "event 40 (RolloutCompleted) was changed|",
        "log replay status explain blame",
    ),
    "events: tail missing": (
        sql("delete from events where seq > 60"),
        "the log ends at event 60, but head.json says that there were 127",
        "log replay status explain blame lineage usage",
    ),
    "events: of the future": (
        sql("update events set type = 'SomethingNew' where seq = 127"),
        "of a type this software does not know (SomethingNew)",
        "log replay status explain blame lineage usage",
    ),
    "events: no table": (sql("drop table events"), "is damaged", ""),
    "calls: one missing": (sql("delete from calls where n = 5"), "1 of 87 calls are missing", "log replay usage"),
    "calls: none": (sql("delete from calls"), "87 of 87 calls are missing", "log replay status explain blame"),
    "calls: one changed": (
        sql("update calls set output_tokens = 9999 where n = 5"),
        "call 5 was changed|",
        "log replay status usage",
    ),
    "calls: no table": (sql("drop table calls"), "is damaged", "log replay explain"),
    "forms: none": (sql("delete from forms"), "call 1 was changed|", "log replay explain"),
    "blobs: none": (sql("delete from blobs"), "is missing from the log|", "log replay status explain blame"),
    "blobs: garbled": (sql("update blobs set data = x'00', codec = 'raw'"), "is damaged|", "log replay status explain"),
    "the anchor": (lambda run: (run / "head.json").write_text("{"), "is damaged", "log replay status explain blame"),
    "a cut write-ahead log": (
        ahead_and_cut,
        "but tail says that there were 127",
        "log replay status explain blame lineage usage",
    ),
}  # fmt: skip

COMMANDS: dict[str, tuple[str, ...]] = {
    "status": ("RUN",),
    "log": ("RUN",),
    "replay": ("RUN",),
    "replay --check": ("RUN", "--check"),
    "lineage": ("RUN",),
    "explain": ("RUN", "step", "1"),
    "why-not": ("RUN",),
    "blame": ("RUN",),
    "diff": ("RUN", "step", "1"),
    "bisect": ("RUN", "--item", "v0"),
    "compare": ("RUN", "OTHER"),
    "regate": ("RUN", "--set", "evaluation.gate_metric=soft"),
    "usage": ("RUN",),
    "show": ("RUN", "41"),
    "verify": ("RUN",),
    "fork": ("RUN", "--name", "forked"),
    "export": ("RUN", "-", "--format", "jsonl"),
    "freeze": ("RUN", "--out", "FILE"),
}
LOOKS_NOT = {"show": "looks at one event", "verify": "says it on stdout, as its result"}


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs commands in this process."""
    return called(capsys)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 127 events."""
    folder = tmp_path_factory.mktemp("whole")
    world = ScriptedWorld(environment=ScriptedEnvironment(train=6, val=6, test=3))
    settings = config(folder, ["train.num_epochs=2", "train.batch_size=3"])
    asyncio.run(start(settings, folder / "run", world.session()))
    return folder / "run"


def copied(run: Path, to: Path) -> Path:
    """A copy without what SQLite leaves beside a log."""
    return Path(shutil.copytree(run, to, ignore=shutil.ignore_patterns("log.db-*")))


def assert_one_sentence(done: Done, command: str) -> None:
    """A failure is one error with at most one line of advice; success says nothing on stderr."""
    errors = [line for line in done.err.splitlines() if line.startswith("error: ")]
    assert done.code in (0, 1, 2), command
    assert "Traceback" not in done.out + done.err
    if command not in LOOKS_NOT:
        assert len(errors) == (done.code != 0), f"{command}: {done.code}, {done.err}"
    assert len(done.err.splitlines()) <= 2, f"{command}: {done.err}"


@parametrized("name", DAMAGES, by_default=8)
def test_a_damaged_log_is_named_and_read_as_far_as_it_goes(name: str, whole: Path, tmp_path: Path, cli: Cli) -> None:
    """By each command, in one sentence; those that can still show something do."""
    damage, said, shown = DAMAGES[name]
    run = copied(whole, tmp_path / "runs" / "run")
    damage(run)
    places = {"RUN": run, "OTHER": whole, "FILE": tmp_path / "file"}
    sentences, bad = [], []
    for command, words in COMMANDS.items():
        done = cli(*command.split(), *(places.get(word, word) for word in words))
        assert_one_sentence(done, command)
        sentences.append(done.err)
        if done.code:
            bad.append(command)
        if command in shown.split():
            assert done.out.strip(), f"{command} shows nothing: {done.err}"
    assert "verify" in bad
    assert "freeze" in bad
    wanted = [sentence for sentence in said.split("|") if sentence]
    assert not wanted or any(sentence in err for err in sentences for sentence in wanted), sentences
    if said and not said.endswith("|"):
        silent = {command for command in COMMANDS if command not in bad} - set(LOOKS_NOT)
        assert not silent, f"{silent} said nothing of it"


NAMES: dict[str, tuple[tuple[str, ...], str]] = {
    "no such run": (("nope",), "there is no run nope in"),
    "a part of a name": (("tw",), "there is no run tw in"),
    "a folder without a run": (("empty",), "there is no run empty in"),
    "a way out": (("../../etc",), "there is no run ../../etc in"),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_is_no_run_is_named(name: str, whole: Path, tmp_path: Path, cli: Cli) -> None:
    """Exit code 2 and what to type instead, from every command that takes a run."""
    words, said = NAMES[name]
    copied(whole, tmp_path / "runs" / "two")
    copied(whole, tmp_path / "runs" / "twin")
    (tmp_path / "runs" / "empty").mkdir()
    for command, template in COMMANDS.items():
        rest = [str(whole) if word == "OTHER" else word for word in template if word != "RUN"]
        done = cli(*command.split(), *words, *rest, "--dir", tmp_path / "runs")
        assert (done.code, said in done.err) == (2, True), f"{command}: {done.err}"
        assert_one_sentence(done, command)
    if name == "a part of a name":
        assert "did you mean twin, two?" in cli("status", "tw", "--dir", tmp_path / "runs").err


def test_a_name_of_two_runs_is_refused(whole: Path, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """One among the runs, another one right here."""
    copied(whole, tmp_path / "runs" / "one")
    copied(whole, tmp_path / "one")
    monkeypatch.chdir(tmp_path)
    done = cli("status", "one")
    assert done.code == 2
    assert "one names two runs, runs/one and one" in done.err
    assert cli("status", tmp_path / "one").code == 0
    assert cli("status", "runs/one").code == 0


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("replay", ("--until", "step", 3)),
        ("explain", ("step", 3)),
        ("blame", ("--at", "step", 3)),
        ("diff", ("step", 1, "step", 3)),
        ("fork", ("--until", "step", 3)),
        ("export", ("-", "--at", "step", 3)),
    ],
)
def test_a_step_that_is_not_reached_says_how_far_the_run_is(
    command: str, words: tuple[object, ...], whole: Path, tmp_path: Path, cli: Cli
) -> None:
    """Of a run that stopped after its second step."""
    run = cut_off(whole, tmp_path / "cut", seqs_of(whole, CandidateGated, lambda event: event.step == 2)[0])
    done = cli(command, run, *words)
    assert done.code == 2
    assert "step 3" in done.err
    assert "2 of 4" in done.err
    assert "has no step 9" in cli(command, run, *(9 if word == 3 else word for word in words)).err
