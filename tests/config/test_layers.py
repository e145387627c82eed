"""Layers: defaults, presets by name, files and `--set`, each over the last."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from skillopt_es.config import load_config
from skillopt_es.config.layers import presets
from skillopt_es.sessions.opening import open_environment

MODELS = {"optimizer": "o", "target": "t"}


@pytest.mark.parametrize("name", ["paper", "safe", "skillopt"])
def test_a_preset_is_found_from_anywhere(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its bare name, whatever folder the file and the user are in."""
    (tmp_path / "deep" / "er").mkdir(parents=True)
    file = tmp_path / "deep" / "er" / "mine.yaml"
    file.write_text(yaml.safe_dump({"_base_": name, "model": MODELS, "train": {"seed": 7}}))
    monkeypatch.chdir(tmp_path)
    config = load_config(file)
    assert config.train.seed == 7
    assert config.optimizer.slow_update_gate_with_selection == (name != "skillopt")
    assert bool(config.skillopt.follow) == (name == "skillopt")
    assert not config.notices
    assert name in presets()


def test_a_chain_goes_over_files_to_a_preset(tmp_path: Path) -> None:
    """Each file's base is looked for beside that file."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "base.yaml").write_text(yaml.safe_dump({"_base_": "skillopt", "model": MODELS}))
    (tmp_path / "mine.yaml").write_text("_base_: shared/base.yaml\nevaluation: {eval_test: false}\n")
    config = load_config(tmp_path / "mine.yaml", ["optimizer.ask_again=true"])
    assert (config.evaluation.eval_test, config.follows("stale_scores")) == (False, True)
    assert (config.optimizer.ask_again, config.optimizer.leak_span) == (True, 0)


def test_a_file_without_an_ending_is_named_by_its_path(tmp_path: Path) -> None:
    """A bare word is a preset's."""
    (tmp_path / "safe").write_text("train: {seed: 9}\n")
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"_base_": "./safe", "model": MODELS}))
    assert load_config(tmp_path / "mine.yaml").train.seed == 9


def test_mappings_are_merged_and_lists_replaced(tmp_path: Path) -> None:
    """At any depth."""
    below = {"model": {**MODELS, "extra_body": {"a": {"x": 1, "y": 2}, "b": [1, 2]}}}
    (tmp_path / "below.yaml").write_text(yaml.safe_dump(below))
    above = {"_base_": "below.yaml", "model": {"extra_body": {"a": {"y": 3}, "b": [4]}}}
    (tmp_path / "above.yaml").write_text(yaml.safe_dump(above))
    config = load_config(tmp_path / "above.yaml")
    assert config.target_model.extra_body == {"a": {"x": 1, "y": 3}, "b": [4]}


def test_the_paper_preset_says_every_default_that_it_leans_on() -> None:
    """So that a new default of ours would not change it without a word."""
    folder = Path(__file__).parents[2] / "configs"
    base, paper = (yaml.safe_load((folder / name).read_text()) for name in ("base.yaml", "presets/paper.yaml"))
    changed = {
        f"{section}.{key}"
        for section, values in paper.items()
        for key, value in values.items()
        if base[section][key] != value
    }
    assert changed == {"optimizer.slow_update_gate_with_selection"}


SIZES = [("docvqa", 16, 120), ("searchqa", 24, 120), ("livemathematicianbench", 64, 300), ("spreadsheetbench", 24, 120)]


@pytest.mark.parametrize(("name", "workers", "seconds"), SIZES)
def test_a_benchmarks_preset_has_the_originals_sizes(tmp_path: Path, name: str, workers: int, seconds: int) -> None:
    """Its paths start at the file that builds on it, and the environment knows all its keys."""
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"_base_": name, "model": MODELS}))
    config = load_config(tmp_path / "mine.yaml")
    assert (config.env.name, config.env.workers, config.env.exec_timeout) == (name, workers, seconds)
    assert (config.train.batch_size, config.env.max_completion_tokens) == (40, 16384)
    assert config.path(config.env.split_dir) == (tmp_path / "data" / f"{name}_split").resolve()
    assert open_environment(config).name == name


@pytest.mark.parametrize("word", ["auto", "on", "off"])
def test_a_bare_on_or_off_is_a_word_where_words_are_wanted(tmp_path: Path, word: str) -> None:
    """In a file and after `--set`, though YAML reads both as true and false."""
    (tmp_path / "mine.yaml").write_text(f"model: {{optimizer: o, target: t}}\nsearch: {{examples: {word}}}\n")
    assert load_config(tmp_path / "mine.yaml").search.examples == word
    (tmp_path / "plain.yaml").write_text(yaml.safe_dump({"model": MODELS}))
    assert load_config(tmp_path / "plain.yaml", [f"search.examples={word}"]).search.examples == word
