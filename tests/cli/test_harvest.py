"""`harvest`: from the agents' files to tasks, with a person between."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import pytest
from support.in_process import Cli

from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.testing.endpoint import Endpoint, Reply

WRITTEN = Path(__file__).parent.parent / "adapters/conversations/written"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with what three agents wrote; the working folder is another one."""
    shutil.copytree(WRITTEN, tmp_path / "home")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "home"


def test_only_what_a_person_keeps_becomes_a_task(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same request of three agents is asked about once, and a second scan asks nothing again."""
    found = cli("harvest", "scan", "--home", home, "--json").json
    assert (found["conversations"], found["candidates"]) == ({"claude": 1, "codex": 1, "copilot": 1}, 1)
    assert cli("harvest", "tasks", "tasks.jsonl").err.startswith("error: nothing in harvest.jsonl has been kept")
    monkeypatch.setattr("sys.stdin", io.StringIO("k\n"))
    assert "kept 1, left 0, open 0" in cli("harvest", "review").out
    assert (
        'env: {name: tasks, data_path: tasks.jsonl, split_ratio: "2:1:1"}' in cli("harvest", "tasks", "tasks.jsonl").out
    )
    [task] = [json.loads(line) for line in Path("tasks.jsonl").read_text(encoding="utf-8").splitlines()]
    assert task["checks"] == [{"check": "section_contains", "section": "Fixed"}]
    assert task["trust"] == "untrusted"
    assert cli("harvest", "scan", "--home", home, "--json").json["new"] == []


def test_no_key_and_no_address_gets_into_a_file(cli: Cli, home: Path) -> None:
    """Though the agents' files are full of them; and those stay as they were."""
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    said = cli("harvest", "scan", "--home", home)
    everything = Path("harvest.jsonl").read_text(encoding="utf-8") + said.out + said.err
    assert "email 3 times, home 3 times, key 3 times" in said.out
    assert not [each for each in ("jane.doe", "sk-proj", "/home/jane") if each in everything]
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


def test_decisions_can_be_given_by_id(cli: Cli, home: Path) -> None:
    """For programs; an id may be cut short, an unknown one is refused."""
    [name] = cli("harvest", "scan", "--home", home, "--json").json["new"]
    [left] = cli("harvest", "review", "--leave", name[:6], "--json").json
    assert (left["id"], left["decision"], left["times"]) == (name, "left", 3)
    assert "no candidate's id begins so" in cli("harvest", "review", "--keep", "zzz").err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--from", "nobody"], "no such agent is known; known are claude, codex"),
        (["--since", "yesterday"], "write a day as YYYY-MM-DD"),
        (["--since", "2030-01-01"], "no conversation of claude"),
        (["--folder", "/elsewhere"], "no conversation of claude"),
    ],
)
def test_what_is_scanned_can_be_narrowed(cli: Cli, home: Path, words: list[str], said: str) -> None:
    """A mistake is a sentence; nothing found is said."""
    done = cli("harvest", "scan", "--home", home, *words)
    assert said in done.out + done.err


def test_where_nobody_answers_it_says_how_to_decide(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe has nobody to ask."""
    cli("harvest", "scan", "--home", home)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert "--keep ID and --leave ID ask nothing" in cli("harvest", "review").err


def test_a_person_may_stop_and_go_on(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not decided is asked again."""
    cli("harvest", "scan", "--home", home)
    monkeypatch.setattr("sys.stdin", io.StringIO("q\n"))
    assert "kept 0, left 0, open 1" in cli("harvest", "review").out


def chat(text: str) -> Reply:
    """A reply of a chat endpoint."""
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return Reply(body=json.dumps({"choices": [choice], "usage": usage}).encode())


def asked_in(folder: Path) -> str:
    """All that was sent to a model."""
    with EventLog.open(folder) as log:
        rows = Journal(log.reader).read()
        return "".join(log.text(digest) for row in rows for _, digest in row.call.request.messages)


def test_a_model_proposes_and_a_person_decides(cli: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its calls are journaled and asked once; the rules' own task can be had instead."""
    cli("harvest", "scan", "--home", home)
    proposal = {
        "usable": True,
        "why": "often",
        "input": "Write a release note with a section Fixed.",
        "checks": [{"check": "section_contains", "section": "Fixed"}],
        "rubric": {"brief": "It is brief."},
    }
    with Endpoint(lambda number: chat(json.dumps(proposal))) as endpoint:
        model = {"backend": "openai", "base_url": endpoint.url, "api_key_env": "", "optimizer": "o", "target": "t"}
        config = {"model": model}
        Path("config.yaml").write_text(json.dumps({**config, "env": {"data_path": "x.jsonl"}}), encoding="utf-8")
        told = cli("harvest", "propose", "config.yaml", "--max-calls", "3")
        again = cli("harvest", "propose", "config.yaml")
    assert "1 candidate, cleaned, to o at" in told.err
    assert "proposed    1 task" in told.out
    assert "the answer that was accepted fails a check: the section 'Fixed' is missing" in told.out
    assert "nothing     every candidate" in again.out
    assert endpoint.requests == 1
    asked = asked_in(Path("harvest.calls"))
    assert "release note" in asked
    assert not [each for each in ("jane.doe", "sk-proj", "/home/jane") if each in asked]
    assert cli("usage", "harvest.calls").code == 0
    assert "what models were asked about candidate tasks" in cli("status", "harvest.calls").out
    assert cli("verify", "harvest.calls").code == 0
    assert cli("replay", "harvest.calls", "--check").code == 0
    [waiting] = cli("harvest", "review", "--json").json
    assert (waiting["proposed_by"], waiting["task"]["input"]) == ("o", proposal["input"])
    monkeypatch.setattr("sys.stdin", io.StringIO("r\nk\n"))
    shown = cli("harvest", "review").out
    assert "o proposes a task: often" in shown
    cli("harvest", "tasks", "rules.jsonl")
    [task] = [json.loads(line) for line in Path("rules.jsonl").read_text(encoding="utf-8").splitlines()]
    assert task["input"] != proposal["input"]
    cli("harvest", "review", "--keep", waiting["id"])
    cli("harvest", "tasks", "tasks.jsonl")
    [task] = [json.loads(line) for line in Path("tasks.jsonl").read_text(encoding="utf-8").splitlines()]
    assert task["input"] == proposal["input"]
