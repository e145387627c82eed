"""A pipe, a device, a socket, a folder or a link to itself in the place of a user's file: one sentence, no waiting."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from support.in_process import Cli, called

from skillopt_es.config.places import packaged


def pipe(path: Path) -> None:
    """Nobody ever writes to it."""
    os.mkfifo(path)


def loop(path: Path) -> None:
    """A link that leads to itself."""
    path.symlink_to(path.name)


def endless(path: Path) -> None:
    """A device that never ends."""
    path.symlink_to("/dev/zero")


def listening(path: Path) -> None:
    """A socket's name stays when it is closed."""
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)


ODD: dict[str, Callable[[Path], object]] = {"pipe": pipe, "loop": loop, "endless": endless, "socket": listening}


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs commands in this process."""
    return called(capsys)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The demo, as files of a user's own."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(packaged("demo"), tmp_path, dirs_exist_ok=True)
    (tmp_path / "config.yaml").write_text("_base_: demo.yaml\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", ["tasks.jsonl", "SKILL.md", "config.yaml"])
def test_what_is_no_plain_file_is_refused(name: str, odd: str, cli: Cli, project: Path) -> None:
    """By every command that reads it, with its name."""
    (project / name).unlink()
    ODD[odd](project / name)
    for words in (("doctor", "config.yaml"), ("estimate", "config.yaml"), ("run", "config.yaml", "--quiet"),
                  ("eval", "config.yaml", "--split", "val")):  # fmt: skip
        done = cli(*words)
        assert done.code in (1, 2), (words, done)
        assert name in done.out + done.err or "/dev/zero" in done.out + done.err
        assert ("not a plain file" in done.out + done.err) or ("symbolic links" in done.out + done.err), done


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet", "t.json"])
def test_data_that_are_imported_are_plain_files(name: str, odd: str, cli: Cli, project: Path) -> None:
    """Whatever kind their name says."""
    pytest.importorskip("pyarrow")
    ODD[odd](project / name)
    done = cli("import-tasks", name, "--to", "out.jsonl")
    assert done.code in (1, 2), done
    assert name in done.err


@pytest.mark.parametrize("odd", ODD)
def test_other_files_of_a_user_are_plain_ones(odd: str, cli: Cli, project: Path) -> None:
    """A cassette, a harvest, a list of a sweep, a skill to score."""
    ODD[odd](project / "odd.yaml")
    for words in (
        ("thaw", "odd.yaml"),
        ("harvest", "review", "odd.yaml", "--json"),
        ("harvest", "tasks", "out.jsonl", "--file", "odd.yaml"),
        ("sweep", "run", "odd.yaml"),
        ("eval", "config.yaml", "--skill", "odd.yaml"),
        ("schedule", "odd.yaml", "--max-calls", "5"),
    ):
        done = cli(*words)
        assert done.code in (1, 2), (words, done)
        assert "odd.yaml" in done.err or "/dev/zero" in done.err, (words, done)


def conversation(home: Path, name: str, asked: str) -> Path:
    """A conversation with Claude Code."""
    file = home / ".claude/projects/p" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    said = '{{"type":"{0}","sessionId":"{1}","message":{{"role":"{0}","content":"{2}"}}}}\n'
    answer = said.format("assistant", name, "Here it is: a poem with four lines.")
    file.write_text(said.format("user", name, asked) + answer, encoding="utf-8")
    return file


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Two conversations, between which something is wrong."""
    home = tmp_path / "home"
    conversation(home, "a.jsonl", "Please write a poem about foo and bar in four lines")
    conversation(home, "z.jsonl", "Please translate the annual report of the year into French")
    return home


@pytest.mark.parametrize("odd", [*ODD, "folder", "bytes", "no json", "unreadable base"])
def test_a_conversation_that_cannot_be_read_stops_no_other(
    odd: str, cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named, and the others are read."""
    monkeypatch.chdir(home / ".claude/projects/p")
    bad = home / ".claude/projects/p/m.jsonl"
    match odd:
        case "folder":
            bad.mkdir()
        case "bytes":
            bad.write_bytes(b"\xff\xfe\x00{")
        case "no json":
            bad.write_text("{\n{}\n", encoding="utf-8")
        case "unreadable base":
            bad = home / ".local/share/opencode/opencode.db"
            bad.parent.mkdir(parents=True)
            os.mkfifo(bad)
        case _:
            ODD[odd](bad)
    found = cli("harvest", "scan", "--home", home, "--out", home / "h.jsonl", "--json")
    assert found.code == 0
    assert found.json["candidates"] == 2
    [unreadable] = found.json["unreadable"]
    assert unreadable["file"] == str(bad)
    assert not unreadable["why"].startswith("is ")


def test_half_a_character_spoils_no_conversation(cli: Cli, home: Path) -> None:
    """An agent that cuts a text at a number of characters leaves one; a mark stands in its place."""
    conversation(home, "m.jsonl", "\\ud800 please write the monthly summary for sales and support")
    found = cli("harvest", "scan", "--home", home, "--out", home / "h.jsonl", "--json")
    assert (found.code, found.json["candidates"], found.json["unreadable"]) == (0, 3, [])
    assert "\ufffd please write the monthly summary" in (home / "h.jsonl").read_text(encoding="utf-8")


def test_a_pipe_of_the_shell_is_no_plain_file(cli: Cli, project: Path) -> None:
    """`run <(sed …)`: its sentence names what was typed."""
    ours, theirs = os.pipe()
    try:
        for words in (("run", f"/dev/fd/{ours}"), ("doctor", "config.yaml", "--set", f"env.data_path=/dev/fd/{ours}")):
            done = cli(*words)
            assert f"/dev/fd/{ours} is not a plain file" in done.out + done.err, done
    finally:
        os.close(ours)
        os.close(theirs)
