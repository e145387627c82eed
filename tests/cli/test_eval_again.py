"""`eval` of everything, under a budget, and again: a recorded score stays until somebody asks for a new draw."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from support.command import KEY, Clerk, command, edit, project, start, unsealed
from support.in_process import Cli, called
from support.model_server import Answer, ModelServer
from support.ready import PATIENCE

from skillopt_es.sessions.skills import origin_of


class Endpoint:
    """The clerk of a project; items that it is told to lose are answered with an error."""

    def __init__(self, config: Path) -> None:
        self.lost = ""
        self._clerk = Clerk(config.parent / "tasks.jsonl")

    def __call__(self, body: Any, headers: Mapping[str, str]) -> Answer:
        """What it says to a request."""
        if self.lost and self.lost in body["messages"][-1]["content"]:
            return Answer(status=500, error={"message": "it broke"})
        return self._clerk(body, headers)


@pytest.fixture
def endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    """What answers the project in the working folder, whose config is `config.yaml`."""
    config = unsealed(project(tmp_path / "p"))
    monkeypatch.chdir(config.parent)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return Endpoint(config)


@pytest.fixture
def server(endpoint: Endpoint) -> Any:
    """The endpoint, up."""
    with ModelServer(endpoint) as up:
        edit(Path("config.yaml"), "https://api.openai.com/v1", up.base_url)
        yield up


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command in this process."""
    return called(capsys)


def test_everything_is_scored_unless_a_split_is_named(cli: Cli, server: ModelServer) -> None:
    """Each split, and all of their items together; exported as the original's evaluation."""
    done = cli("eval", "config.yaml", "--json")
    assert (done.code, len(server.requests)) == (0, 32)
    by_split = {row["split"]: (row["hard"], row["measured"]) for row in done.json["splits"]}
    assert by_split == {"train": (0.375, 16), "val": (0.25, 8), "test": (0.375, 8)}
    assert done.json["all"] == {"hard": 0.34375, "soft": done.json["all"]["soft"], "measured": 32, "unmeasured": 0}
    assert "all: hard 0.3438, soft " in cli("eval", "config.yaml").out
    assert "all: " not in cli("eval", "config.yaml", "--split", "val").out
    folder = Path(done.json["folder"])
    assert cli("export", folder, "out", "--format", "skillopt").code == 0
    summary = json.loads(Path("out/eval_summary.json").read_text())
    assert list(summary) == ["skill", "split", "n_items", "hard", "soft"]
    assert (summary["split"], summary["n_items"], summary["hard"]) == ("all", 32, 0.34375)
    assert Path(summary["skill"]).read_text() == Path("SKILL.md").read_text()
    rows = [json.loads(line) for line in Path("out/results.jsonl").read_text().splitlines()]
    assert sum(row["hard"] for row in rows) == 11
    assert Path(f"out/predictions/{rows[0]['id']}/conversation.json").exists()
    assert len(server.requests) == 32


def test_a_budget_pauses_it_and_more_of_it_goes_on(cli: Cli, server: ModelServer) -> None:
    """Exit 3 before a request too many; nothing is asked twice, and what is finished needs no budget."""
    words = ("eval", "config.yaml", "--split", "test")
    paused = cli(*words, "--set", "budget.max_calls=2")
    assert (paused.code, len(server.requests)) == (3, 2)
    assert "budget.max_calls is 2, with 2 requests sent so far" in paused.err
    assert "the same command with a higher `--max-calls` continues" in paused.err
    [folder] = Path("evals").iterdir()
    assert "paused" in cli("status", folder).out
    assert cli("export", folder, "out", "--format", "skillopt").code == 2
    assert cli(*words, "--max-calls", "5").code == 3
    assert len(server.requests) == 5
    done = cli(*words, "--max-calls", "8", "--json")
    assert (done.code, done.json["splits"][0]["hard"], len(server.requests)) == (0, 0.375, 8)
    assert cli(*words, "--max-calls", "1").code == 0
    checked = cli("replay", folder, "--check")
    assert (checked.code, len(server.requests)) == (0, 8), checked.err


def test_a_score_that_stands_is_not_drawn_again(cli: Cli, endpoint: Endpoint, server: ModelServer) -> None:
    """Not even what could not be measured then; `--again` asks for everything, and goes on where it was stopped."""
    words = ("eval", "config.yaml", "--split", "test", "--set", "model.attempts=1")
    tolerant = (*words, "--set", "rollout.max_failed_share=0.2", "--json")
    endpoint.lost = "None of us"
    first = cli(*tolerant).json["splits"][0]
    assert (first["measured"], first["unmeasured"], first["repeat"]) == (7, 1, 1)
    endpoint.lost = ""
    same = cli(*tolerant).json["splits"][0]
    assert {**same, "usage": {}} == {**first, "calls_made_now": 0, "usage": {}}  # a call that failed is told once
    assert len(server.requests) == 8
    stopped = cli(*tolerant, "--again", "--max-calls", "11")
    assert (stopped.code, len(server.requests)) == (3, 11)
    again = cli(*tolerant, "--again").json["splits"][0]
    assert (again["measured"], again["repeat"], again["calls_made_now"]) == (8, 2, 5)
    assert "test, draw 2: hard 0.3750" not in cli(*words, "--set", "rollout.max_failed_share=0.2").out
    assert cli(*tolerant).json["splits"][0]["measured"] == 7
    assert len(server.requests) == 16
    [folder] = Path("evals").iterdir()
    assert cli("replay", folder, "--check").code == 0
    assert cli(*words, "--json").json["splits"][0]["measured"] == 8  # 7 of 8 is no score by these settings
    assert len(server.requests) == 17


def test_a_skill_of_the_original_is_told_as_such(cli: Cli, server: ModelServer, tmp_path: Path) -> None:
    """Loaded by its path, with a line on where it comes from."""
    released = tmp_path / "ckpt/searchqa/gpt5.5_skill.md"
    released.parent.mkdir(parents=True)
    released.write_text("# Skill\n")
    done = cli("eval", "config.yaml", "--skill", released, "--split", "val", "--limit", "1")
    assert done.code == 0
    assert "note      gpt5.5_skill.md was released with SkillOpt for searchqa, trained with gpt5.5\n" in done.out


def test_a_result_folder_says_what_its_skills_are(tmp_path: Path) -> None:
    """The best one, the one after a step, the first one; nothing is said of any other file."""
    (tmp_path / "qa/skills").mkdir(parents=True)
    (tmp_path / "qa/history.json").write_text("[]")
    assert origin_of(tmp_path / "qa/best_skill.md") == "best_skill.md is the best skill of the SkillOpt results in qa"
    assert origin_of(tmp_path / "qa/skills/skill_v0012.md").startswith("skill_v0012.md is the skill after step 12 of")
    assert origin_of(tmp_path / "qa/skills/skill_v0000.md").startswith(
        "skill_v0000.md is the skill at the beginning of"
    )
    assert origin_of(tmp_path / "best_skill.md") == origin_of(tmp_path / "qa/SKILL.md") == ""


@pytest.mark.slow
def test_a_killed_evaluation_keeps_to_its_budget(endpoint: Endpoint, tmp_path: Path) -> None:
    """What was in flight counts as paid for, and the same command goes on."""
    with ModelServer(lambda body, headers: evolve(endpoint(body, headers), delay=0.4)) as up:
        edit(Path("config.yaml"), "https://api.openai.com/v1", up.base_url)
        edit(Path("config.yaml"), "workers: 8", "workers: 2")
        words = ("eval", "config.yaml", "--split", "test", "--max-calls")
        with start(*words, "6", cwd=Path.cwd()) as child:
            assert up.wait_until(lambda server: len(server.requests) >= 3)
            child.send_signal(signal.SIGKILL)
            child.communicate(timeout=PATIENCE)
        assert command(*words, "6", cwd=Path.cwd()).code == 3
        assert len(up.requests) <= 6
        done = command(*words, "20", "--json", cwd=Path.cwd())
        assert done.json["splits"][0]["hard"] == 0.375
