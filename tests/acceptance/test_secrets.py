"""The key goes to the endpoint and nowhere else, whatever the endpoint does with it."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from urllib.parse import quote

import pytest
from attrs import evolve
from support.desk import Desk
from support.model_server import Answer
from support.params import parametrized
from support.project import KEY_NAME, Change, Endpoint, Project, unchanged

from skillopt_es.adapters.models.redaction import REDACTED
from skillopt_es.events.log import EventLog
from skillopt_es.ports import ChatRequest

CANARY = "sk-canary-Zx81Qw7+/=pL"
FORMS = (CANARY, quote(CANARY, safe=""), base64.b64encode(CANARY.encode()).decode(), json.dumps(CANARY)[1:-1])


def in_replies(request: ChatRequest, answer: Answer) -> Answer:
    """An endpoint that quotes the key in every text, its headers and its model's name."""
    headers = {"x-request-id": f"req-{CANARY}", "set-cookie": f"key={CANARY}"}
    if request.stage == "rollout":
        return evolve(answer, text=f"{answer.text} (your key: {CANARY})", headers=headers)
    reply = json.loads(answer.text or "")
    reply["reasoning"] = f"because of {CANARY}"
    return evolve(answer, text=json.dumps(reply), headers=headers)


def in_prose(_: ChatRequest, answer: Answer) -> Answer:
    """Replies that cannot be used, and are asked again with the reason."""
    return evolve(answer, text=f"Bearer {CANARY}")


def in_errors(status: int) -> Change:
    """An endpoint that quotes the key in its errors: whole, in other spellings, and masked."""
    message = f"wrong key {CANARY}, {FORMS[1]}, Bearer {FORMS[2]}, {CANARY[:8]}********{CANARY[-4:]}"
    error = {"message": message, "code": CANARY, "param": CANARY}
    return lambda _, answer: evolve(answer, status=status, error=error, headers={"x-request-id": CANARY})


def in_garbage(_: ChatRequest, answer: Answer) -> Answer:
    """A body that is no JSON and full of keys."""
    return evolve(answer, raw=f"<html>{CANARY} " * 2000)


WAYS: dict[str, Change] = {
    "quiet": unchanged,
    "replies": in_replies,
    "prose": in_prose,
    "401": in_errors(401),
    "404": in_errors(404),
    "429": in_errors(429),
    "500": in_errors(500),
    "garbage": in_garbage,
    "redirect": lambda _, answer: evolve(answer, status=302, headers={"location": f"http://127.0.0.1:9/?k={CANARY}"}),
}


def assert_nowhere(run: Path, *printed: str) -> None:
    """No form of the key, and no telling piece of it, is in any file, text or line."""
    searched = [file.read_bytes() for file in run.rglob("*") if file.is_file()]
    searched += [text.encode() for text in printed]
    with EventLog.open(run) as log:
        digests = [str(row[0]) for row in log.reader.rows("select digest from log_blobs order by digest")]
        assert digests
        searched += [log.text(digest).encode() for digest in digests]
    for content in searched:
        for form in (*FORMS, CANARY[:14], CANARY[-10:]):
            assert form.encode() not in content


@parametrized("way", WAYS, by_default=4)
def test_the_key_is_nowhere(desk: Desk, endpoint: Endpoint, project: Project, way: str) -> None:
    """Not in the run's files, its texts, what is printed, nor on the command line of the process."""
    endpoint.change = WAYS[way]
    project.set(train={"num_epochs": 1})
    with desk.with_environ(**{KEY_NAME: CANARY}).start("run", "config.yaml", "--run", "one") as running:
        running.until(lambda: endpoint.server.requests)
        words = Path(f"/proc/{running.pid}/cmdline").read_bytes() if Path("/proc").exists() else b""
        done = running.wait()
    assert CANARY.encode() not in words
    assert {request.headers["authorization"] for request in endpoint.server.requests} == {f"Bearer {CANARY}"}
    assert_nowhere(project.run_folder(), done.out, done.err)


@pytest.mark.parametrize("way", ["replies", "429", "garbage"])
def test_the_key_is_not_in_a_log_for_programs(desk: Desk, endpoint: Endpoint, project: Project, way: str) -> None:
    """Every line on stderr is a JSON object, those of waits and failures too, and the run's own log says the same."""
    endpoint.change = WAYS[way]
    project.set(train={"num_epochs": 1})
    keyed = desk.with_environ(**{KEY_NAME: CANARY})
    done = keyed.run("--log-format", "json", "run", "config.yaml", "--run", "one")
    lines = [json.loads(line) for line in done.err.splitlines()]
    assert all({"event", "level", "timestamp"} <= line.keys() for line in lines)
    written = (project.run_folder() / "logs.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(written) > 1
    assert set(written) <= set(done.err.splitlines())
    assert {json.loads(line)["run"] for line in written} == {"one"}
    assert_nowhere(project.run_folder(), done.out, done.err)


@pytest.mark.parametrize("words", [["--debug", "run"], ["--debug", "--log-format", "json", "run"], ["run", "--json"]])
def test_the_key_is_not_in_a_traceback(desk: Desk, endpoint: Endpoint, project: Project, words: list[str]) -> None:
    """Also when everything is shown."""
    endpoint.change = in_errors(401)
    keyed = desk.with_environ(**{KEY_NAME: CANARY})
    done = keyed.run(*words, "config.yaml", "--run", "one")
    assert done.code != 0
    assert_nowhere(project.run_folder(), done.out, done.err)


def test_no_command_shows_the_key(desk: Desk, endpoint: Endpoint, project: Project) -> None:
    """What was never recorded cannot be printed later."""
    endpoint.change = in_replies
    project.set(train={"num_epochs": 1})
    keyed = desk.with_environ(**{KEY_NAME: CANARY})
    assert keyed.run("run", "config.yaml", "--run", "one", "--quiet").code == 0
    for words in (
        ["log", "one"],
        ["log", "one", "--json"],
        ["show", "one", 1],
        ["status", "one"],
        ["export", "one", "--format", "jsonl", "out.jsonl"],
        ["export", "one", "out/some-skill/", "--description", "What it does."],
        ["export", "one", "--format", "datasette", "out/look"],
        ["install", "one", "--to", "out/skills", "--name", "a-skill", "--description", "What it does."],
    ):
        done = keyed.run(*words)
        assert done.code == 0, done.err
        assert_nowhere(project.run_folder(), done.out, done.err)
    written = [desk.folder / "out.jsonl", *(path for path in (desk.folder / "out").rglob("*") if path.is_file())]
    assert len(written) > 7
    assert not [path for path in written if CANARY.encode() in path.read_bytes()]


GRADERS = {
    "raises": 'raise RuntimeError("x " + os.environ["ACCEPTANCE_KEY"])',
    "notes": 'return {"hard": 0, "note": "because of " + os.environ["ACCEPTANCE_KEY"]}',
}


@pytest.mark.parametrize("way", GRADERS)
def test_what_a_grader_says_loses_the_key(desk: Desk, project: Project, way: str) -> None:
    """Whatever a user's function raises or notes."""
    (project.folder / "grader.py").write_text(f"import os\n\n\ndef grade(answer, item):\n    {GRADERS[way]}\n")
    project.set(env={"grader": "python:grader:grade"}, train={"num_epochs": 1})
    assert_no_key_is_told(desk.with_environ(**{KEY_NAME: CANARY}), project)


def test_what_a_command_says_loses_the_key(desk: Desk, project: Project) -> None:
    """Its last words on stderr."""
    program = project.folder / "grade.sh"
    program.write_text(f'#!/bin/sh\necho "wrong: {CANARY}" >&2\nexit 3\n')
    program.chmod(0o755)
    project.set(env={"grader": "command:./grade.sh", "sandbox": "unconfined"}, train={"num_epochs": 1})
    assert_no_key_is_told(desk.with_environ(**{KEY_NAME: CANARY}), project)


def assert_no_key_is_told(desk: Desk, project: Project) -> None:
    """Neither by the commands that meet the grader nor in what they leave."""
    words = (
        ["--debug", "run", "config.yaml", "--run", "one"],
        ["doctor", "config.yaml"],
        ["show", "one", "baseline"],
        ["log", "one", "--json"],
    )
    printed = [text for each in words for done in [desk.run(*each)] for text in (done.out, done.err)]
    assert REDACTED in "".join(printed)
    assert_nowhere(project.run_folder(), *printed)


@pytest.mark.parametrize(
    ("start", "more"), [("http://127.0.0.1:9/v1", f"?api_key={CANARY}"), ("127.0.0.1:9/v1", f"#{CANARY}")]
)
def test_an_address_with_more_than_a_place_is_refused_unseen(
    desk: Desk, project: Project, start: str, more: str
) -> None:
    """A query or a fragment may hold a key, as a user and a password do."""
    for words in (["doctor", "config.yaml"], ["run", "config.yaml", "--run", "one"], ["estimate", "config.yaml"]):
        done = desk.run(*words, "--set", f"model.base_url={start}{more}")
        assert CANARY not in done.out + done.err
        if words[0] != "estimate":
            assert done.code == (1 if words[0] == "doctor" else 2)
            assert "model.base_url holds credentials, a query (?) or a fragment (#)" in done.out + done.err
            assert "model.api_key_env" in done.out + done.err
    assert not project.run_folder().exists()
