"""Where the answers of a config lie."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from support.environments import CONFINED

from skillopt_es.config import load_config
from skillopt_es.errors import ConfigError
from skillopt_es.sessions.hiding import answers_of, check_walls
from skillopt_es.sessions.opening import open_environment


def test_all_that_the_environment_names_is_hidden_and_what_lies_around_it(tmp_path: Path) -> None:
    """Data by any key, this run, other runs, and the repository with its store where it has further working trees."""
    for folder in ("configs", "data", "gold", "runs/old", "elsewhere/.git/worktrees/one"):
        (tmp_path / folder).mkdir(parents=True)
    for file in ("data/tasks.jsonl", "runs/old/log.db", "words.txt"):
        (tmp_path / file).touch()
    (tmp_path / ".git").write_text(f"gitdir: {tmp_path}/elsewhere/.git/worktrees/one\n")
    path = tmp_path / "configs" / "mine.yaml"
    path.write_text(
        "model: {optimizer: o, target: t}\n"
        "env: {name: tasks, data_path: ../data/tasks.jsonl, data_root: ../gold, grader: exact,\n"
        "  grader_files: [../words.txt, ..], system: /}\n"
    )
    found = answers_of(load_config(path, ()), tmp_path / "runs" / "new")
    wanted = ("data/tasks.jsonl", "gold", "words.txt", "runs/new", "runs/old", ".git", "elsewhere/.git")
    assert set(found.places) == {tmp_path / each for each in wanted}
    assert set(found.around) == {tmp_path / "configs", tmp_path / "runs", tmp_path / "data", tmp_path}


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """A folder that can be shown behind walls, which have a `/dev` of their own."""
    with TemporaryDirectory() as folder:
        yield Path(folder).resolve()


@pytest.mark.skipif(not CONFINED, reason="this machine has no user namespaces")
@pytest.mark.parametrize(("config", "runs"), [("lib/project", "runs"), ("project", "share/runs")])
def test_code_behind_walls_is_not_run_where_it_would_read_answers(
    on_disk: Path, config: str, runs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Config or runs among the files of this Python; without walls nothing is promised, and other graders have none."""
    path = on_disk / config / "mine.yaml"
    path.parent.mkdir(parents=True)
    (path.parent / "tasks.jsonl").touch()
    path.write_text(
        "model: {optimizer: o, target: t}\nenv: {name: tasks, data_path: tasks.jsonl, grader: 'command:cat'}\n"
    )
    monkeypatch.setattr(sys, "prefix", str(on_disk))

    def checked(*changes: str) -> None:
        found = load_config(path, changes)
        check_walls(open_environment(found), found, on_disk / runs / "new")

    with pytest.raises(ConfigError, match="answers cannot be kept from code behind walls") as caught:
        checked()
    assert "env.sandbox: unconfined" in caught.value.hint
    checked("env.sandbox=unconfined")
    checked("env.grader=exact")
    monkeypatch.setattr(sys, "prefix", str(on_disk / "elsewhere"))
    checked()
