"""Data of benchmarks, built and checked without a run."""

from __future__ import annotations

from pathlib import Path

from support.downloads import MADE

from skillopt_es.sessions.benchmarks import build_data, check_data


def test_what_was_built_passes_its_check_until_it_is_changed(tmp_path: Path) -> None:
    """The problem names the file."""
    source, ids = MADE["searchqa"](tmp_path)
    build_data("searchqa", source=source, out=tmp_path / "split", ids=ids)
    found = check_data(tmp_path / "split")
    assert (found.of, found.counts, found.problems) == ("searchqa", {"train": 3, "val": 1, "test": 2}, ())
    (tmp_path / "split" / "val" / "items.json").write_text("[]")
    assert any("val/items.json" in problem for problem in check_data(tmp_path / "split").problems)


def test_data_that_cannot_be_read_is_a_problem_of_a_config(tmp_path: Path) -> None:
    """No counts, and what to do."""
    file = tmp_path / "mine.yaml"
    file.write_text("_base_: searchqa\nmodel: {backend: simulated, target: a, optimizer: b}\nenv: {split_dir: gone}\n")
    found = check_data(file)
    assert (found.of, dict(found.counts), len(found.problems)) == ("searchqa", {}, 1)
