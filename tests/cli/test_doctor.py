"""`doctor` finds what is in the way of a run, all of it at once, and says what to do; it never shows a key."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
from support.command import KEY, Clerk, Done, command, edit, environment, project
from support.in_process import Cli
from support.model_server import Answer, ModelServer

from skillopt_es.config import load_config
from skillopt_es.ports import CallFailed, FailureKind
from skillopt_es.sessions.checks import check_sqlite
from skillopt_es.sessions.doctor import fix_for


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The config of a fresh project whose endpoint is down."""
    return project(tmp_path / "p", "http://127.0.0.1:9/v1")


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The config of a project that is only read."""
    return project(tmp_path_factory.mktemp("own") / "p", "http://127.0.0.1:9/v1")


def examined(config: Path, *words: str, env: Mapping[str, str] | None = None) -> tuple[Done, dict[str, dict[str, Any]]]:
    """What `doctor` said, by check (of several with one name, the worst)."""
    done = command("doctor", config, *words, "--json", cwd=config.parent, env=env)
    checks: dict[str, dict[str, Any]] = {}
    for check in done.json["checks"]:
        if check["status"] != "ok" or check["name"] not in checks:
            checks[check["name"]] = check
    assert done.code == int(any(check["status"] == "problem" for check in checks.values()))
    assert done.json["ok"] == (done.code == 0)
    return done, checks


def problems(checks: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Message and fix of each problem."""
    return {
        name: f"{check['message']} | {check['fix']}" for name, check in checks.items() if check["status"] == "problem"
    }


def test_few_validation_tasks_are_a_warning(own: Path, cli: Cli) -> None:
    """In `doctor`, in an estimate, and where a run begins; enough of them are none."""
    few = "8 validation tasks: fewer than 20 show large gains and losses only"
    _, checks = examined(own, "--no-calls")
    assert (checks["data"]["status"], checks["data"]["message"]) == ("warning", few)
    assert few in cli("estimate", own).out
    assert few in cli("estimate", own, "--json").json["notes"]
    assert "validation tasks" not in cli("estimate").out


def test_all_mistakes_of_a_config_are_told_at_once(tmp_path: Path, cli: Cli) -> None:
    """One check each; other commands name the first, and how many more there are."""
    config = tmp_path / "config.yaml"
    config.write_text("modle: {a: 1}\ntrain: {bach_size: 4}\nmodel: {optimizer: o, target: t, temprature: 1}\n")
    done = cli("doctor", config, "--no-calls", "--json")
    found = [each["message"].partition(": ")[2] for each in done.json["checks"] if each["status"] == "problem"]
    assert found == ["unknown section modle", "unknown key train.bach_size", "unknown key model.temprature"]
    error = cli("run", config, "--dir", tmp_path, "--json").json["error"]
    assert error["message"].endswith("unknown section modle")
    assert error["hint"] == "did you mean model?; 2 more mistakes: `skillopt-es doctor CONFIG` shows all of them"


def test_a_healthy_project_has_no_problem(config: Path) -> None:
    """Every check is a line; both models were asked once; nothing was left behind."""
    with ModelServer(Clerk(config.parent / "tasks.jsonl")) as server:
        done = command("doctor", config, "--set", f"model.base_url={server.base_url}", cwd=config.parent)
    assert done.code == 0, done.out
    assert "no problems" in done.out
    for words in ("16 train, 8 val, 8 test", "OPENAI_API_KEY is set", "gpt-4.1 answered in", "takes JSON schemas"):
        assert words in done.out
    assert "7 tokens in, 3 out" in done.out
    assert [request.body["max_completion_tokens"] for request in server.requests] == [256, 256]
    assert sorted(path.name for path in config.parent.iterdir() if path.name != "__pycache__") == [
        ".gitignore",
        "SKILL.md",
        "config.yaml",
        "grader.py",
        "tasks.jsonl",
    ]


def test_the_demo_is_healthy(tmp_path: Path) -> None:
    """Without a config, and without any network."""
    done = command("doctor", cwd=tmp_path)
    assert done.code == 0
    assert "simulated-target answered" in done.out


def test_no_calls_sends_nothing(config: Path) -> None:
    """And does not mind that the endpoint is down."""
    done, checks = examined(config, "--no-calls")
    assert done.code == 0
    assert "was not called" in checks["target"]["message"]


PAIRED = "evaluation.gate_rule=paired"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            (PAIRED, "env.split_mode=ratio", "env.split_ratio=2:1:7"),
            "paired cannot tell the noise from 3 validation items",
        ),
        ((PAIRED, "evaluation.gate_repeats=2"), "paired cannot tell the noise from 8 validation items with 2 draws"),
        (("train.train_size=400",), "train.train_size is 400, but the train split has 16 items"),
        (("evaluation.min_items=50",), "evaluation.min_items is 50, and there are 8 validation items"),
        (("train.reuse=identical", "model.temperature=1"), "neither model is asked at temperature 0"),
        (("evaluation.no_untrusted_only=true", "env.trust=untrusted"), "env.trust says that all of them are"),
    ],
)
def test_what_a_run_would_refuse_is_a_problem(
    cli: Cli, own: Path, monkeypatch: pytest.MonkeyPatch, settings: tuple[str, ...], said: str
) -> None:
    """In the words of the run; nobody is blamed for a file that came with the package."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    words = [word for setting in settings for word in ("--set", setting)]
    refused = cli("estimate", own, *words)
    assert (refused.code, said in refused.err) == (2, True)
    assert "safe.yaml" not in refused.err
    done = cli("doctor", own, "--no-calls", *words, "--json")
    [found] = [check for check in done.json["checks"] if check["status"] == "problem"]
    assert found["name"] == "config"
    assert refused.err.strip().endswith(f"error: {found['message']}\n  {found['fix']}")


def test_a_refusal_says_what_decides_it(cli: Cli, own: Path) -> None:
    """Each setting with its place: a preset by its name."""
    refused = cli("estimate", own, "--set", PAIRED, "--set", "env.split_mode=ratio", "--set", "env.split_ratio=2:1:7")
    assert "what decides this: evaluation.gate_rule (--set), evaluation.gate_repeats (the preset safe)" in refused.err
    refused = cli("estimate", own, "--set", PAIRED, "--set", "evaluation.gate_repeats=2")
    assert "what decides this: evaluation.gate_rule (--set), evaluation.gate_repeats (--set)" in refused.err
    assert f"env.split_mode ({own})" in refused.err


def test_several_problems_are_found_at_once(config: Path) -> None:
    """A missing skill, a broken item and a missing key do not hide each other."""
    (config.parent / "SKILL.md").unlink()
    edit(config.parent / "tasks.jsonl", '"id": "billing-02"', '"id": "billing-01"')
    env = environment()
    del env["OPENAI_API_KEY"]
    _, checks = examined(config, env=env)
    found = problems(checks)
    assert set(found) == {"skill", "data", "key"}
    assert "no such skill file" in found["skill"]
    assert "tasks.jsonl:2" in found["data"]
    assert "billing-01" in found["data"]
    assert "export OPENAI_API_KEY=" in found["key"]


@pytest.mark.parametrize(
    ("override", "check", "says"),
    [
        ("train.batchsize=3", "config", "train.batch_size"),
        ("model.api_key=sk-house-0123456789abcdef", "config", "model.api_key_env"),
        ("env.name=taks", "environment", "tasks"),
        ("env.grader=python:grader:grades", "environment", "grade"),
        ("env.skill_init=.", "skill", "SKILL.md"),
        ("env.skill_init=none.md", "skill", "env.skill_init"),
        ("env.data_path=none.jsonl", "data", "none.jsonl"),
        ("env.split_field=type", "data", "split"),
        ("model.base_url=127.0.0.1:9", "target", "base_url"),
        ("model.backend=opnai", "target", "openai"),
    ],
)
def test_a_wrong_key_of_the_config_is_named(config: Path, override: str, check: str, says: str) -> None:
    """With what it should be."""
    _, checks = examined(config, "--no-calls", "--set", override)
    assert says in problems(checks)[check]
    assert "folder" in checks
    assert "space" in checks


def test_files_that_are_no_text_are_named(config: Path) -> None:
    """Skill and data in another encoding."""
    (config.parent / "SKILL.md").write_bytes("Prüfe".encode("latin-1"))
    (config.parent / "tasks.jsonl").write_bytes('{"id": "ü"}'.encode("latin-1"))
    _, checks = examined(config, "--no-calls")
    assert "UTF-8" in problems(checks)["skill"]
    assert "UTF-8" in problems(checks)["data"]
    config.write_bytes("# ü\n".encode("latin-1"))
    _, checks = examined(config, "--no-calls")
    assert "UTF-8" in problems(checks)["config"]


def test_a_config_that_is_missing_is_a_problem_of_its_own(config: Path) -> None:
    """The machine is examined all the same."""
    config.unlink()
    _, checks = examined(config)
    assert set(problems(checks)) == {"config"}
    assert "folder" in checks


@pytest.mark.parametrize(
    ("split", "policy", "status", "said"),
    [
        ("test", "refuse", "problem", "again (test) = billing-01 (train)"),
        ("test", "warn", "warning", "again (test) = billing-01 (train)"),
        ("train", "refuse", "warning", "again (train) is billing-01 (train)"),
    ],
)
def test_an_item_that_is_there_twice_is_found(config: Path, split: str, policy: str, status: str, said: str) -> None:
    """Under another id and in another split it would be scored after it was learned, and no run would start."""
    tasks = config.parent / "tasks.jsonl"
    first = json.loads(tasks.read_text(encoding="utf-8").splitlines()[0])
    with tasks.open("a", encoding="utf-8") as file:
        file.write(json.dumps({**first, "id": "again", "split": split}) + "\n")
    done, checks = examined(config, "--no-calls", "--set", f"env.same_input={policy}")
    assert done.code == (1 if status == "problem" else 0)
    assert checks["data"]["status"] == status
    assert said in checks["data"]["message"]


def said_by(config: Path, answer: Answer, *words: str) -> dict[str, dict[str, Any]]:
    """The checks when the endpoint gives this answer to everything."""
    with ModelServer(lambda body, headers: answer) as server:
        return examined(config, "--set", f"model.base_url={server.base_url}", *words)[1]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("return item['typo']", "KeyError: 'typo'"),
        ("return 7", "the grade must be a number from 0 to 1"),
        ("return 1 / (answer != item['expected'])", "ZeroDivisionError"),
    ],
)
def test_a_grader_that_breaks_is_found_before_a_call_is_paid(config: Path, body: str, said: str) -> None:
    """It is tried on a wrong answer and on a right one; with --no-calls it is not, as it may ask somebody, too."""
    (config.parent / "grader.py").write_text(f"def grade(answer, item):\n    print(answer)\n    {body}\n")
    offline = ("--set", "model.backend=simulated")
    assert said in problems(examined(config, *offline)[1])["grader"]
    assert "grader" not in examined(config, *offline, "--no-calls")[1]


def test_a_model_that_says_nothing_is_a_problem(config: Path) -> None:
    """Every item would score 0, and nothing would say why."""
    with ModelServer(lambda body, headers: Answer(text=" ")) as server:
        _, checks = examined(config, "--set", f"model.base_url={server.base_url}")
    assert {"target", "optimizer"} <= set(problems(checks))
    assert "empty" in problems(checks)["target"]


def test_a_wrong_key_leads_to_its_variable(config: Path) -> None:
    """The endpoint's own words quote the key; what is shown does not."""
    error = {"message": f"Incorrect API key provided: {KEY}.", "code": "invalid_api_key"}
    checks = said_by(config, Answer(status=401, error=error))
    found = problems(checks)
    assert set(found) == {"target", "optimizer"}
    assert "401" in found["target"]
    assert "OPENAI_API_KEY" in found["target"]
    assert checks["endpoint"]["status"] == "ok"


def test_an_unknown_model_leads_to_its_key(config: Path) -> None:
    """One for each role, because they are two models."""
    found = problems(said_by(config, Answer(status=404, error={"message": "no such model", "code": "model_not_found"})))
    assert "model.target (now 'gpt-4.1-mini')" in found["target"]
    assert "model.optimizer (now 'gpt-4.1')" in found["optimizer"]


def test_an_endpoint_that_is_down_is_one_problem(config: Path) -> None:
    """Both roles use it, but it is mended once."""
    _, checks = examined(config, "--set", "model.backoff_seconds=0.01")
    found = problems(checks)
    assert set(found) == {"endpoint"}
    assert "base_url" in found["endpoint"]
    assert "127.0.0.1:9" in found["endpoint"]


def test_an_endpoint_that_only_one_role_uses_is_examined_for_itself(config: Path) -> None:
    """The other role's is up."""
    with ModelServer(Clerk(config.parent / "tasks.jsonl")) as server:
        _, checks = examined(
            config, "--set", f"model.target_base_url={server.base_url}", "--set", "model.backoff_seconds=0.01"
        )
    assert set(problems(checks)) == {"endpoint"}
    assert "model.optimizer_base_url" in problems(checks)["endpoint"]
    assert checks["target"]["status"] == "ok"


def test_what_an_endpoint_cannot_do_is_said(config: Path) -> None:
    """No usage, a reply that is cut, a schema that is not kept to or refused."""
    checks = said_by(config, Answer(text="", finish="length", usage=None))
    assert "tokens are not reported" in checks["target"]["message"]
    assert "cut at 256 tokens" in checks["target"]["message"]
    assert checks["json"]["status"] == "ok"
    assert "does not keep to it" in said_by(config, Answer(text="ready"))["json"]["message"]
    checks = said_by(config, Answer(text="ready"), "--set", "model.structured_output=off")
    assert "off" in checks["json"]["message"]

    def refusing(body: Any, headers: Mapping[str, str]) -> Answer:
        refused = "response_format" in body
        return Answer(status=400, error={"message": "response_format is not supported"}) if refused else Answer()

    with ModelServer(refusing) as server:
        done, checks = examined(config, "--set", f"model.base_url={server.base_url}")
    assert done.code == 0
    assert "refuses JSON schemas" in checks["json"]["message"]


@pytest.mark.parametrize("kind", get_args(FailureKind))
def test_every_kind_of_failure_has_a_fix(config: Path, kind: FailureKind) -> None:
    """Also when an adapter has no hint of its own; its own comes first."""
    own = load_config(config).target_model
    assert fix_for(CallFailed(kind, "no"), "target", own)
    assert fix_for(CallFailed(kind, "no", hint="do this"), "target", own) == "do this"


@pytest.mark.skipif(sys.platform != "linux", reason="/proc takes no files")
def test_a_folder_that_takes_no_files_is_a_problem(config: Path) -> None:
    """Said before a run is lost to it."""
    _, checks = examined(config, "--no-calls", "--dir", "/proc/runs")
    assert "/proc cannot be written" in problems(checks)["folder"]


@pytest.mark.parametrize(
    ("version", "cautious"),
    [
        ((3, 40, 1), True),
        ((3, 44, 5), True),
        ((3, 44, 6), False),
        ((3, 45, 0), True),
        ((3, 50, 6), True),
        ((3, 50, 7), False),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
        ((3, 52, 0), False),
        ((4, 0, 0), False),
    ],
)
def test_the_wal_reset_bug_is_known_by_version(version: tuple[int, ...], cautious: bool) -> None:
    """It was fixed in three lines of releases; a log with its one writer does not meet it."""
    check = check_sqlite(version)
    assert check.status == "ok"
    assert ("do not write to log.db with other programs" in check.message) is cautious


def test_a_simulated_model_is_warned_of_where_the_tasks_are_ones_own(config: Path) -> None:
    """It learns nothing from them."""
    done, checks = examined(config, "--no-calls", "--set", "model.optimizer_backend=simulated")
    assert checks["optimizer"]["status"] == "warning"
    assert "learns nothing from others" in checks["optimizer"]["message"]
    assert done.code == 0
