"""With --json, stdout is one document, whatever happens: a result, or why there is none."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import pytest
from support.command import Clerk, command, edit, project, start
from support.model_server import Answer, ModelServer
from support.ready import PATIENCE


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("run", "absent.yaml"), 2, "no such config file"),
        (("run", "--set", "train.batchsize=3"), 2, "batchsize"),
        (("run", "--no-such-option"), 2, "No such option"),
        (("status", "nowhere"), 2, "nowhere"),
        (("usage",), 2, "no run"),
        (("eval", "--split", "dev"), 2, "--split"),
    ],
)
def test_what_fails_before_it_has_a_result_says_so(
    words: tuple[str, ...], code: int, said: str, tmp_path: Path
) -> None:
    """In the document as on stderr."""
    done = command(*words, "--json", cwd=tmp_path)
    assert done.code == code == done.json["error"]["exit_code"]
    assert said in done.json["error"]["message"]
    assert done.json["error"]["message"] in done.err


def test_a_wrong_key_and_an_interrupt_are_errors_with_the_next_step(tmp_path: Path) -> None:
    """Of `run`, `resume` and `eval` alike."""
    config = project(tmp_path / "p")
    with ModelServer(lambda body, headers: Answer(status=401, error="wrong key")) as server:
        edit(config, "https://api.openai.com/v1", server.base_url)
        for words in (("run", config, "--run", "one"), ("resume", "one"), ("eval", config, "--split", "val")):
            done = command(*words, "--json", cwd=tmp_path)
            assert done.code == 1
            error = done.json["error"]
            place = "eval/val/item/" if words[0] == "eval" else "baseline/item/"
            assert error["message"].startswith(f"the target model at {place}")
            assert "OPENAI_API_KEY" in error["hint"]


def test_an_interrupted_run_prints_one_document(tmp_path: Path) -> None:
    """Exit code 130, and how to go on."""
    config = project(tmp_path / "p")
    clerk = Clerk(config.parent / "tasks.jsonl")

    def slow(body: object, headers: dict[str, str]) -> Answer:
        time.sleep(0.05)
        return clerk(body, headers)

    with ModelServer(slow) as server:
        edit(config, "https://api.openai.com/v1", server.base_url)
        process = start("run", config, "--run", "one", "--json", cwd=tmp_path)
        assert server.wait_until(lambda up: len(up.requests) >= 3)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert json.loads(out)["error"]["exit_code"] == 130
    assert "resume one" in json.loads(out)["error"]["hint"]


def test_a_paused_run_and_an_evaluation_that_is_no_score_are_documents_of_their_own(tmp_path: Path) -> None:
    """One document, which says what is wrong."""
    config = project(tmp_path / "p")
    edit(config, "model:\n", "model:\n  attempts: 1\n")
    with ModelServer(lambda body, headers: Answer(status=500, error="down")) as server:
        edit(config, "https://api.openai.com/v1", server.base_url)
        run = command("run", config, "--run", "one", "--json", cwd=tmp_path)
        scored = command("eval", config, "--split", "val", "--json", cwd=tmp_path)
    assert (run.code, scored.code) == (1, 1)
    assert "could not be measured" in run.json["paused"]
    assert "could not be measured" in scored.json["splits"][0]["problem"]
