"""What a paused run says to type makes it go on, or says what comes first: at its end, and in `status`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from support.command import KEY, Clerk, edit, project, unsealed
from support.in_process import Cli
from support.model_server import Answer, ModelServer

from skillopt_es.cli.summary import steps_after

REFUSED = Answer(status=401, error={"message": "wrong key"})
NO_FIELD = Answer(status=400, error={"message": "no such field"})
CLOSED = Answer(status=429, error={"message": "later"}, headers={"Retry-After": "3600"})


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of one's own, in whose folder commands are typed."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.chdir(tmp_path)
    return unsealed(project(tmp_path / "p"))


def next_of(out: str) -> list[str]:
    """The lines that say what to type next."""
    lines = out[out.index("next  ") :].splitlines()
    return [line[10:].strip() for line in lines if line.strip()]


def refusing(answer: Answer) -> Callable[[Any, Mapping[str, str]], Answer]:
    """An endpoint that says this to everybody."""
    return lambda body, headers: answer


def test_a_budget_names_the_limit_to_raise(cli: Cli, config: Path) -> None:
    """Without a higher one the run would pause again at once."""
    with ModelServer(Clerk(config.parent / "tasks.jsonl")) as server:
        edit(config, "https://api.openai.com/v1", server.base_url)
        done = cli("run", config, "--run", "b", "--max-calls", "20", "--quiet")
        assert done.code == 3
        assert next_of(done.out) == ["skillopt-es resume b --max-calls N   (with a higher limit)"]
        assert next_of(cli("status", "b").out) == next_of(done.out)
        scored = cli("eval", config, "--split", "val", "--max-calls", "3")
        assert scored.code == 3
        [evaluation] = Path("evals").iterdir()
        said = next_of(cli("status", evaluation.name, "--dir", "evals").out)
        assert said == [
            "the same `skillopt-es eval` with a higher --max-calls asks for what is missing, and nothing twice"
        ]


def test_status_still_says_what_is_to_be_done_about_an_error(cli: Cli, config: Path) -> None:
    """What the run said when it stopped, for whoever was not there."""
    with ModelServer(refusing(REFUSED)) as server:
        edit(config, "https://api.openai.com/v1", server.base_url)
        done = cli("run", config, "--run", "b", "--quiet")
        check = "check the key in the environment variable OPENAI_API_KEY"
        assert f"{check}, then `skillopt-es resume b` continues it" in done.err
        assert next_of(cli("status", "b").out) == [f"skillopt-es resume b   (first: {check})"]
        assert cli("eval", config, "--split", "val").code == 1
        [evaluation] = Path("evals").iterdir()
        assert next_of(cli("status", evaluation.name, "--dir", "evals").out)[0].startswith(f"{check}; then the same")


def test_a_request_that_is_refused_leads_to_the_settings(cli: Cli, config: Path) -> None:
    """The same in `run`, `eval` and `doctor`, each with what goes on there."""
    with ModelServer(refusing(NO_FIELD)) as server:
        edit(config, "https://api.openai.com/v1", server.base_url)
        where = f"model.target_base_url (or model.base_url) (now {server.base_url})"
        hint = f"check model.target (now 'gpt-4.1-mini') and {where}"
        assert f"{hint}, then `skillopt-es resume b` continues it" in cli("run", config, "--run", "b", "--quiet").err
        assert f"{hint}, then the same command continues" in cli("eval", config, "--split", "val").err
        fixes = [check["fix"] for check in cli("doctor", config, "--json").json["checks"] if check["name"] == "target"]
        assert hint in fixes


def test_nobody_is_told_to_resume_what_is_no_run(cli: Cli, config: Path) -> None:
    """An endpoint that takes nobody for an hour: only `run` speaks of a run."""
    with ModelServer(refusing(CLOSED)) as server:
        edit(config, "https://api.openai.com/v1", server.base_url)
        hint = "give it time, or raise model.target_patience_seconds (or model.patience_seconds)"
        assert f"{hint}, then `skillopt-es resume b` continues it" in cli("run", config, "--run", "b", "--quiet").err
        scored, examined = cli("eval", config, "--split", "val"), cli("doctor", config, "--json")
        assert f"{hint}, then the same command continues" in scored.err
        assert hint in examined.out
        assert "resume the run" not in scored.err + examined.out


def test_a_score_without_answers_says_so(cli: Cli, config: Path) -> None:
    """What came back empty was measured, but nobody answered; the hint names the key that decides about it."""
    with ModelServer(refusing(Answer(text=None))) as server:
        edit(config, "https://api.openai.com/v1", server.base_url)
        done = cli("eval", config, "--split", "val", "--set", "model.attempts=1")
    assert done.code == 1
    assert "val: no score (0 answered, 8 without an answer, 0 not measured)" in done.lines
    assert "rollout.max_unanswered_share says how much may be without an answer" in done.err
    assert "max_failed_share" not in done.err
    [evaluation] = Path("evals").iterdir()
    assert "unanswered: 8 of 8 items" in cli("log", evaluation.name, "--dir", "evals", "--type", "RunPaused").out


@pytest.mark.parametrize(
    ("reason", "hint", "expected"),
    [
        ("handoff", "", [("handoff list b", "what is asked"), ("resume b", "when it is answered")]),
        ("interrupt", "", [("resume b", "")]),
        ("unmeasured", "", [("resume b", "when the cause is gone")]),
        ("error", "free some space", [("resume b", "first: free some space")]),
    ],
)
def test_each_pause_has_its_own_next_step(reason: str, hint: str, expected: list[tuple[str, str]]) -> None:
    """By what paused the run."""
    assert steps_after(Path("runs/b"), reason=reason, key="", hint=hint) == expected
