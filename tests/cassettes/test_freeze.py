"""A run in one file: the same bytes for the same run, nothing of the machine in it, every decision still follows."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from shutil import copytree

import pytest
from support.desk import Desk
from support.in_process import Cli, called
from support.logs import events_of
from support.params import parametrized
from support.project import KEY, KEY_NAME, Endpoint, Project, plain_config

from skillopt_es.cassettes.file import packed, read_cassette
from skillopt_es.cassettes.freezing import Redactor, freeze, thaw
from skillopt_es.errors import CassetteDamaged
from skillopt_es.events.catalog import RunStarted
from skillopt_es.events.errors import LogDamaged, RunExists
from skillopt_es.events.log import EventLog
from skillopt_es.events.schema import LOG_FILE
from skillopt_es.events.verify import verify
from skillopt_es.sessions.session import read_state


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs commands in this process."""
    return called(capsys)


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that was made against an endpoint, with a header of its own and a file in a home folder."""
    folder = tmp_path_factory.mktemp("elsewhere")
    endpoint = Endpoint()
    with endpoint.server:
        project = Project(folder, plain_config(endpoint.base_url)).write()
        data = folder / "home" / "ada" / "tasks.jsonl"
        data.parent.mkdir(parents=True)
        (folder / "tasks.jsonl").rename(data)
        config = folder / "config.yaml"
        text = config.read_text().replace("data_path: tasks.jsonl", f"data_path: {data}")
        config.write_text(f"{text}\n".replace("model:\n", "model:\n  extra_headers: {x-team: payroll}\n"))
        done = Desk(folder, {KEY_NAME: KEY}).run("run", "config.yaml", "--run", "one", "--set", "train.num_epochs=1")
        assert done.code == 0, done.err
    return project.run_folder()


def test_a_run_that_names_nothing_keeps_its_hashes(demo_run: Path, tmp_path: Path) -> None:
    """Packed and laid out again, it is the same log."""
    cassette = freeze(demo_run)
    assert not cassette.redactions
    thaw(cassette, tmp_path / "again")
    report = verify(tmp_path / "again")
    assert report.ok, report.problems
    assert report.head_hash == verify(demo_run).head_hash == cassette.source_head
    assert read_state(tmp_path / "again") == read_state(demo_run)


def test_the_same_run_gives_the_same_bytes(demo_run: Path, tmp_path: Path) -> None:
    """Also from its cassette."""
    content = packed(freeze(demo_run))
    assert packed(freeze(demo_run)) == content
    (tmp_path / "one").write_bytes(content)
    assert packed(read_cassette(tmp_path / "one")) == content


def test_nothing_of_the_machine_is_in_it(elsewhere: Path, tmp_path: Path) -> None:
    """Neither host nor home folder nor a header's value, though the run names all of them."""
    [started] = [event for event in events_of(elsewhere) if isinstance(event, RunStarted)]
    assert "payroll" in json.dumps(started.config)
    content = packed(freeze(elsewhere))
    plain = gzip.decompress(content).decode()
    assert not [word for word in ("127.0.0.1", "/home/ada", "payroll", KEY) if word in plain]
    header = json.loads(plain.splitlines()[0])
    assert header["redactions"]["hidden value"] == 1
    assert header["redactions"]["home folder"] >= 1
    assert header["redactions"]["endpoint-1.invalid"] >= 2
    assert header["source_head"] == verify(elsewhere).head_hash != header["head"][1]


def test_a_redacted_run_is_whole_and_its_decisions_follow(elsewhere: Path, tmp_path: Path, cli: Cli) -> None:
    """Laid out again, with new chains and the calls that its events refer to."""
    thaw(freeze(elsewhere), tmp_path / "runs" / "one")
    report = verify(tmp_path / "runs" / "one")
    assert report.ok, report.problems
    done = cli("replay", "one", "--check", "--dir", tmp_path / "runs")
    assert done.code == 0, done.err
    assert cli("explain", "one", "step", 1, "--dir", tmp_path / "runs").code == 0


def test_a_forks_parent_is_found_again(elsewhere: Path, tmp_path: Path, cli: Cli) -> None:
    """The hash of the last shared event is another one, and the fork says so."""
    runs = tmp_path / "runs"
    copytree(elsewhere, runs / "one")
    done = cli("fork", "one", "--until", "step", 1, "--name", "other", "--dir", runs)
    assert done.code == 0, done.err
    thaw(freeze(runs / "other"), tmp_path / "thawed")
    report = verify(tmp_path / "thawed")
    assert report.ok, report.problems
    with EventLog.open(runs / "other") as fork, EventLog.open(tmp_path / "thawed") as thawed:
        assert fork.run.parent_run == thawed.run.parent_run
        assert fork.run.parent_head != thawed.run.parent_head


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://10.0.0.5:8000/v1", "http://endpoint-1.invalid/v1"),
        ("openai-chat https://me:pass@api.corp.example/v1 small", "openai-chat https://endpoint-1.invalid/v1 small"),
        ("/home/ada/data/x.jsonl", "~/data/x.jsonl"),
        ("../../home/ada/x", "../../~/x"),
        ("/Users/ada.l/x and /root/.cache", "~/x and ~/.cache"),
        (r"C:\Users\ada\x", r"~\x"),
        ("a homely /rooted place at home/", "a homely /rooted place at home/"),
    ],
)
def test_names_of_machines_and_people_are_replaced(text: str, shown: str) -> None:
    """And nothing else."""
    redactor = Redactor()
    assert redactor.text(text) == shown
    assert redactor.text(shown) == shown


def test_a_bare_host_in_an_error_has_the_same_number() -> None:
    """Once it was met in an address."""
    redactor = Redactor()
    redactor.text("http://gpu-7:8000/v1")
    assert redactor.text("gpu-7:8000 refused the connection") == "endpoint-1.invalid refused the connection"


def cut(raw: bytes) -> bytes:
    """The first half."""
    return raw[: len(raw) // 2]


def other_answer(raw: bytes) -> bytes:
    """Another text among the answers."""
    plain = gzip.decompress(raw)
    return gzip.compress(plain.replace(b'"outcome":"answered"', b'"outcome":"answerec"', 1))


def other_checksum(raw: bytes) -> bytes:
    """One bit of the packed file's own check."""
    return raw[:-8] + bytes([raw[-8] ^ 1]) + raw[-7:]


def rewritten_end(raw: bytes) -> bytes:
    """An event less, and a digest that vouches for the rest."""
    from hashlib import sha256

    *lines, _, _ = gzip.decompress(raw).splitlines(keepends=True)
    end = json.dumps({"sha256": sha256(b"".join(lines)).hexdigest()}, separators=(",", ":"))
    return gzip.compress(b"".join(lines) + f"{end}\n".encode())


@parametrized(
    ("damage", "sentence"),
    [
        (cut, "it is incomplete"),
        (other_answer, "it is not what was written"),
        (rewritten_end, "its chain does not end where it says"),
        (lambda raw: b"", "is not"),
        (lambda raw: b"a text", "is not a cassette"),
        (lambda raw: b"\0" + raw[1:], "is not a cassette, or its beginning is damaged"),
        (lambda raw: raw[:2] + b"\xff" + raw[3:], "is damaged: it cannot be unpacked"),
        (other_checksum, "is damaged: it cannot be unpacked"),
        (lambda raw: raw + raw, "is damaged: there is something after its end"),
        (lambda raw: gzip.compress(bytes(80_000_000)), "unpacks to more than 67 MiB"),
        (lambda raw: gzip.compress(b"a text"), "it is not what was written"),
    ],
    by_default=4,
)
def test_a_changed_file_is_refused(
    small_cassette: bytes, tmp_path: Path, cli: Cli, damage: Callable[[bytes], bytes], sentence: str
) -> None:
    """In one sentence that says what is wrong."""
    file = tmp_path / "one.cassette"
    file.write_bytes(damage(small_cassette))
    with pytest.raises(CassetteDamaged, match=sentence):
        read_cassette(file)
    done = cli("thaw", file, "--dir", tmp_path / "runs")
    assert done.code == 2
    assert not (tmp_path / "runs").exists()


@pytest.fixture(scope="module")
def small_cassette(demo_run: Path) -> bytes:
    """The demo in one file."""
    return packed(freeze(demo_run))


def rewritten(raw: bytes, change: Callable[[dict[str, object]], None]) -> bytes:
    """Every line changed, and a digest that vouches for them."""
    from hashlib import sha256

    *lines, _ = gzip.decompress(raw).splitlines()
    parsed = [json.loads(line) for line in lines]
    for line in parsed:
        change(line)
    body = b"".join(json.dumps(line, sort_keys=True, separators=(",", ":")).encode() + b"\n" for line in parsed)
    end = json.dumps({"sha256": sha256(body).hexdigest()}, separators=(",", ":"))
    return gzip.compress(body + f"{end}\n".encode())


@parametrized("value", ["yesterday", "2026-11-19 02:00:00", "", 7, None], by_default=2)
@pytest.mark.parametrize("kind", ["call", "event"])
def test_a_moment_that_is_none_is_refused(
    small_cassette: bytes, tmp_path: Path, cli: Cli, kind: str, value: object
) -> None:
    """As damage, not as an error of ours."""

    def change(line: dict[str, object]) -> None:
        if "at" in line and kind == "call":
            line["at"] = value
        event = line.get("event")
        if isinstance(event, list) and kind == "event":
            event[2] = value

    refused(tmp_path, cli, rewritten(small_cassette, change))


@pytest.mark.parametrize("tokens", [10**30, -1, 1.5, "many", True])
def test_a_number_that_no_log_can_hold_is_refused(
    small_cassette: bytes, tmp_path: Path, cli: Cli, tokens: object
) -> None:
    """A provider that counts to thirty digits, say."""

    def change(line: dict[str, object]) -> None:
        call = line.get("call")
        if isinstance(call, dict):
            call["input_tokens"] = tokens

    refused(tmp_path, cli, rewritten(small_cassette, change))


def refused(tmp_path: Path, cli: Cli, raw: bytes) -> None:
    """The file is called damaged, in one sentence."""
    file = tmp_path / "one.cassette"
    file.write_bytes(raw)
    done = cli("thaw", file, "--dir", tmp_path / "runs")
    assert done.code == 2
    assert "is damaged: its lines are not those of a cassette" in done.err
    assert not (tmp_path / "runs").exists()


def test_a_damaged_run_is_refused(demo_run: Path, tmp_path: Path) -> None:
    """And says where."""
    folder = Path(copytree(demo_run, tmp_path / "run"))
    with closing(sqlite3.connect(folder / LOG_FILE)) as connection, connection:
        connection.execute("drop trigger events_no_update")
        connection.execute("update events set data = replace(data, 'hard', 'hart') where seq = 300")
    with pytest.raises(LogDamaged, match="cannot be a cassette: "):
        freeze(folder)


def test_the_commands_say_what_they_did(demo_run: Path, tmp_path: Path, cli: Cli) -> None:
    """And never write over a file or a run by accident."""
    file = tmp_path / "one.cassette"
    done = cli("freeze", demo_run, "--out", file)
    assert done.code == 0, done.err
    assert f"cassette    {file} (" in done.out
    assert "left out    nothing" in done.out
    assert cli("freeze", demo_run, "--out", file).code == 2
    assert cli("freeze", demo_run, "--out", file, "--force", "--json").json["events"] > 1000
    thawed = cli("thaw", file, "--name", "theirs", "--dir", tmp_path / "runs")
    assert thawed.code == 0, thawed.err
    assert verify(tmp_path / "runs" / "theirs").ok
    assert cli("thaw", file, "--name", "../x", "--dir", tmp_path / "runs").code == 2
    again = cli("thaw", file, "--name", "theirs", "--dir", tmp_path / "runs")
    assert again.code == RunExists.exit_code
    assert "there is already a run" in again.err
    nowhere = cli("thaw", tmp_path / "none", "--dir", tmp_path / "runs")
    assert (nowhere.code, "there is no cassette" in nowhere.err) == (2, True)
