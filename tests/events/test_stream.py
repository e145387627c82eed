"""`log --json` is a stable stream: its shape is pinned here and described in docs/log-stream.md."""

from __future__ import annotations

import json
import re
from pathlib import Path

import attrs
import pytest
from support.audited import KINDS, Audited
from support.in_process import Cli, called
from support.params import parametrized
from support.stream_docs import FILE, stream_docs

from skillopt_es.events.catalog import BY_NAME


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command in this process."""
    return called(capsys)


def test_the_stream_page_is_what_the_events_are() -> None:
    """After a change of an event, run `python tests/support/stream_docs.py`."""
    assert FILE.read_text(encoding="utf-8") == stream_docs()


@parametrized("kind", KINDS, by_default=5)
def test_every_line_has_its_shape(cli: Cli, audited: Audited, kind: str) -> None:
    """The same keys, numbers without gaps, one chain, and each field of the type whatever its value."""
    done = cli("log", audited(kind), "--json")
    hash_before = None
    for number, line in enumerate(done.lines, 1):
        assert line.isascii()
        event = json.loads(line)
        assert line == json.dumps(event, sort_keys=True, separators=(",", ":"))
        assert list(event) == ["data", "hash", "prev_hash", "recorded_at", "seq", "type", "version"]
        assert event["seq"] == number
        assert hash_before in (None, event["prev_hash"])
        hash_before = event["hash"]
        kind_of = BY_NAME[event["type"]]
        assert event["version"] == kind_of.VERSION
        assert set(event["data"]) == {attribute.name for attribute in attrs.fields(kind_of)}
    assert number > 10


def test_a_file_has_the_same_lines(cli: Cli, audited: Audited, tmp_path: Path) -> None:
    """And `--type` and `--after` leave lines out, nothing else."""
    run = audited("plain")
    lines = cli("log", run, "--json").lines
    assert cli("export", run, tmp_path / "run.jsonl", "--format", "jsonl").code == 0
    assert (tmp_path / "run.jsonl").read_text(encoding="utf-8").splitlines() == lines
    some = cli("log", run, "--json", "--type", "CandidateGated", "--after", 30).lines
    assert some == [
        line for line in lines if json.loads(line)["type"] == "CandidateGated" and json.loads(line)["seq"] > 30
    ]
    assert some


def test_a_line_that_is_pinned(cli: Cli, audited: Audited) -> None:
    """What a reader of a first release relies on."""
    [line] = cli("log", audited("plain"), "--json", "--type", "EpochPlanned", "--last", 1).lines
    event = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", event["recorded_at"])
    assert sorted(event["data"]) == ["batches", "epoch", "meta_skill"]
    assert sorted(event["data"]["batches"][0]) == ["items", "seed"]
    rollout = json.loads(cli("log", audited("plain"), "--json", "--type", "RolloutCompleted", "--last", 1).lines[0])
    assert sorted(rollout["data"]["outcome"]) == ["hard", "kind", "soft"]
    [[slot, digest]] = rollout["data"]["calls"]
    assert (type(slot), len(digest)) == (str, 32)
