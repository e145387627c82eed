"""The demos of the benchmarks: made-up items, simulated models, the real environments."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import make_livemath_demo, make_searchqa_demo
from support.command import command

from skillopt_es.config.layers import demo_config, demos

MAKERS = {"searchqa": make_searchqa_demo, "livemathematicianbench": make_livemath_demo}


def test_every_benchmark_with_a_demo_is_tested() -> None:
    """Here, or beside its environment; the first demo is the one that needs no name."""
    assert demos() == ("demo", *sorted([*MAKERS, "alfworld", "spreadsheetbench"]))


@pytest.mark.parametrize("name", MAKERS)
def test_a_demo_trains_to_a_better_skill(tmp_path: Path, name: str) -> None:
    """Its score rises far, every decision follows from the evidence, and the run says what it is."""
    done = command("run", "--demo", name, "--run", "one", "--json", cwd=tmp_path)
    assert done.code == 0, done.err
    assert "offline demo" in done.err
    assert done.json["test_best"]["hard"] > done.json["test_initial"]["hard"] + 0.5
    checked = command("replay", "one", "--check", cwd=tmp_path)
    assert checked.code == 0
    assert "ok:" in checked.out


@pytest.mark.parametrize("name", MAKERS)
def test_the_items_of_a_demo_are_made_by_its_script(name: str) -> None:
    """After a change of the script, run it again."""
    file = demo_config(name).parent / name / "items.jsonl"
    assert [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] == MAKERS[name].make_items()


def test_an_unknown_demo_is_named(tmp_path: Path) -> None:
    """With those that there are; and a config beside it is one too many."""
    done = command("run", "--demo", "serchqa", cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "demos: demo, alfworld, livemathematicianbench, searchqa, spreadsheetbench" in done.err
    assert command("run", "config.yaml", "--demo", "searchqa", cwd=tmp_path).code == 2
    assert list(tmp_path.iterdir()) == []
