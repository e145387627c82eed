"""Telling somebody outside: a webhook or a command, and what becomes of one that does not work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillopt_es.adapters.notifying import open_notifier
from skillopt_es.errors import ConfigError
from skillopt_es.testing.endpoint import Endpoint, Reply

NOTICE = {"text": "run one paused", "run": "one"}


def test_a_command_gets_the_notice_on_stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And none of our keys."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-its-business")
    way = open_notifier(f"sh -c 'cat > {tmp_path}/told.json; env > {tmp_path}/env'", {})
    assert way.tell(NOTICE) == ""
    assert json.loads((tmp_path / "told.json").read_text()) == NOTICE
    assert "sk-not" not in (tmp_path / "env").read_text()


def test_a_webhook_is_posted_to_once() -> None:
    """Its address may come from a variable, so that it stands in no list of processes."""
    with Endpoint(lambda number: Reply(status=200 if number == 1 else 500)) as endpoint:
        way = open_notifier("env:HOOK", {"HOOK": f"{endpoint.url}/T0/secret-part"})
        assert way.tell(NOTICE) == ""
        assert way.tell(NOTICE) == "127.0.0.1 answered with HTTP 500"
        assert endpoint.requests == 2
    assert "secret-part" not in repr(way)
    assert open_notifier("http://127.0.0.1:9/secret-part", {}).tell(NOTICE) == "127.0.0.1 was not told: ConnectError"


@pytest.mark.parametrize(
    ("how", "said"),
    [("nothing-like-it", "cannot be started"), ("sh -c 'echo no >&2; exit 3'", "sh ended with exit code 3: no")],
)
def test_a_command_that_fails_says_why(how: str, said: str) -> None:
    """It is a warning: the run has ended already."""
    assert said in open_notifier(how, {}).tell(NOTICE)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("env:HOOK", "HOOK, which is not set"),
        ("", "is empty"),
        ("cat > note.json", "a program and no shell"),
        ("sh 'x", "not a command"),
        ("http://", "no host"),
    ],
)
def test_what_tells_nobody_is_refused_before_the_run(how: str, said: str) -> None:
    """Rather than found out at its end."""
    with pytest.raises(ConfigError, match=said):
        open_notifier(how, {})
