"""`init` writes a project that runs as it is, and never overwrites anybody's work unasked."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support.command import Clerk, command, edit, environment, project
from support.model_server import ModelServer

FILES = [".gitignore", "SKILL.md", "config.yaml", "grader.py", "tasks.jsonl"]


def test_it_writes_its_files_and_says_what_is_next(tmp_path: Path) -> None:
    """Also into a folder that is not there yet, below others that are not."""
    done = command("init", "a/my project", cwd=tmp_path)
    assert done.code == 0
    assert sorted(path.name for path in (tmp_path / "a/my project").iterdir()) == FILES
    assert "skillopt-es doctor 'a/my project/config.yaml'" in done.out
    assert "skillopt-es run 'a/my project/config.yaml'" in done.out


def test_what_runs_write_is_not_for_git(tmp_path: Path) -> None:
    """Runs and evaluations; a .gitignore of one's own stays as it is."""
    assert command("init", "new", cwd=tmp_path).code == 0
    assert {"runs/", "evals/"} <= set((tmp_path / "new" / ".gitignore").read_text().splitlines())
    (tmp_path / ".gitignore").write_text("mine\n")
    assert command("init", ".", cwd=tmp_path).code == 0
    assert (tmp_path / ".gitignore").read_text() == "mine\n"


def test_files_that_are_there_are_named_and_kept(tmp_path: Path) -> None:
    """Without --force nothing is written at all; with it, everything is."""
    mine = tmp_path / "tasks.jsonl"
    mine.write_text("mine")
    done = command("init", ".", cwd=tmp_path)
    assert done.code == 2
    assert "tasks.jsonl" in done.err
    assert "config.yaml" not in done.err
    assert "--force" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["tasks.jsonl"]
    assert mine.read_text() == "mine"
    assert command("init", ".", "--force", cwd=tmp_path).code == 0
    assert "billing-01" in mine.read_text()


@pytest.mark.parametrize("where", ["file", "file/below"])
def test_a_file_is_no_folder(tmp_path: Path, where: str) -> None:
    """One sentence, exit 2."""
    (tmp_path / "file").write_text("")
    done = command("init", where, cwd=tmp_path)
    assert done.code == 2
    assert "file" in done.err


def test_the_tasks_are_what_the_config_says_of_them(tmp_path: Path) -> None:
    """16, 8 and 8 of them, each solved by its own answer and by no other, as the grader sees it."""
    config = project(tmp_path / "p")
    rows = [json.loads(line) for line in (config.parent / "tasks.jsonl").read_text().splitlines()]
    assert [sum(row["split"] == name for row in rows) for name in ("train", "val", "test")] == [16, 8, 8]
    scope: dict[str, object] = {}
    exec((config.parent / "grader.py").read_text(), scope)
    grade = scope["grade"]
    assert callable(grade)
    for row in rows:
        assert grade(f"Thinking...\n{row['expected']}", row) == {"hard": 1, "soft": 1, "note": ""}
        queue = row["expected"].split()[0]
        assert grade(f"{queue} P9", row)["soft"] == 0.5
        assert "priority" in grade(f"{queue} P9", row)["note"]
        assert grade("I do not know", row)["hard"] == grade("", row)["soft"] == 0


@pytest.mark.parametrize("algorithm", ["search", "classic"])
def test_the_project_learns_the_house_rules(algorithm: str, tmp_path: Path) -> None:
    """`init`, then `run` against an endpoint: every validation mail is sorted right in the end."""
    config = project(tmp_path / "p", algorithm=algorithm)
    with ModelServer(Clerk(config.parent / "tasks.jsonl")) as server:
        done = command("run", config, "--set", f"model.base_url={server.base_url}", "--json", cwd=tmp_path)
    assert done.code == 0, done.err
    outcome = done.json
    assert outcome["status"] == "completed"
    assert outcome["baseline"]["hard"] == 0.25
    assert outcome["test_best"]["hard"] == 1
    assert {request.body["model"] for request in server.requests} == {"gpt-4.1", "gpt-4.1-mini"}


@pytest.mark.parametrize("agent", ["python", pytest.param("node", marks=pytest.mark.slow)])
def test_a_project_with_an_agent_learns_them_too(agent: str, tmp_path: Path) -> None:
    """Its agent asks its model through the run, and nothing has to be edited but the endpoint."""
    if agent == "node" and shutil.which("node") is None:
        pytest.skip("node is not installed here")
    assert command("init", "p", "--agent", agent, cwd=tmp_path).code == 0
    config = tmp_path / "p" / "config.yaml"
    with ModelServer(Clerk(config.parent / "tasks.jsonl")) as server:
        edit(config, "https://api.openai.com/v1", server.base_url)
        tried = command("doctor", "p/config.yaml", cwd=tmp_path)
        assert tried.code == 0, tried.out
        done = command("run", "p/config.yaml", "--json", "--set", "budget.max_calls=120", cwd=tmp_path)
    assert done.code == 0, done.err
    assert done.json["test_best"]["hard"] > done.json["test_initial"]["hard"]


def test_the_project_is_a_search_within_its_calls(tmp_path: Path) -> None:
    """What it may cost is told before, and it ends there by itself, its tests made."""
    config = project(tmp_path / "p", algorithm="search")
    told = command("estimate", config, "--json", cwd=tmp_path).json
    assert (told["within"], told["calls"]["high"]) == (300, 300)
    with ModelServer(Clerk(config.parent / "tasks.jsonl")) as server:
        edit(config, "https://api.openai.com/v1", server.base_url)
        assert command("doctor", config, cwd=tmp_path).code == 0
        done = command("run", config, "--run", "r", "--json", "--set", "budget.max_calls=90", cwd=tmp_path)
    assert done.json["status"] == "completed"
    assert done.json["usage"]["calls"] <= 90
    first = json.loads(command("log", "r", "--type", "RunStarted", "--json", cwd=tmp_path).out)["data"]
    assert first["algorithm"] == "search"
    assert first["config"]["evaluation"]["gate_rule"] == "not_worse_retest"
    assert command("install", "r", "--name", "triage", "--to", "./skills", cwd=tmp_path).code == 0
    assert (tmp_path / "skills" / "triage" / "SKILL.md").exists()


def test_the_project_runs_offline_and_without_a_key(tmp_path: Path) -> None:
    """The simulated models know nothing of mails, but every part is exercised."""
    config = project(tmp_path / "p", algorithm="search")
    env = environment()
    del env["OPENAI_API_KEY"]
    done = command("run", config, "--set", "model.backend=simulated", "--json", cwd=tmp_path, env=env)
    assert done.code == 0, done.err
    assert done.json["status"] == "completed"


def test_a_split_by_ratio_works_as_the_config_says(tmp_path: Path) -> None:
    """The comment in the config is tried, too."""
    config = project(tmp_path / "p")
    edit(config, "split_mode: field", 'split_mode: ratio\n  split_ratio: "2:1:1"')
    done = command("doctor", config, "--no-calls", "--json", cwd=tmp_path)
    assert [check["message"] for check in done.json["checks"] if check["name"] == "data"] == [
        "16 train, 8 val, 8 test items",
        "8 validation tasks: fewer than 20 show large gains and losses only",
    ]


def test_force_replaces_a_link_and_not_what_it_leads_to(tmp_path: Path) -> None:
    """The file outside stays as it is, and so does one that a link to nothing would make."""
    outside, inside = tmp_path / "v", tmp_path / "p"
    outside.write_text("theirs")
    inside.mkdir()
    (inside / "config.yaml").symlink_to("../v")
    (inside / "tasks.jsonl").symlink_to("../new")
    (inside / ".gitignore").symlink_to("../ignored")
    assert "config.yaml, tasks.jsonl already" in command("init", "p", cwd=tmp_path).err
    assert command("init", "p", "--force", cwd=tmp_path).code == 0
    assert outside.read_text() == "theirs"
    assert not (inside / "config.yaml").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p", "v"]
