"""Where the answers of a config lie."""

from __future__ import annotations

from pathlib import Path

from skillopt_es.config import load_config
from skillopt_es.hiding import answers_of


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
