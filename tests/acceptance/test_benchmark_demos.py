"""The demos of the benchmarks: made-up items, simulated models, the real environments."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import make_docvqa_demo, make_livemath_demo, make_officeqa_demo, make_searchqa_demo
from support.command import command
from support.params import parametrized

from skillopt_es.adapters.models.simulated.sight import text_on
from skillopt_es.config.layers import demo_config, demos

MAKERS = {
    "docvqa": make_docvqa_demo,
    "livemathematicianbench": make_livemath_demo,
    "officeqa": make_officeqa_demo,
    "searchqa": make_searchqa_demo,
}


def test_every_benchmark_with_a_demo_is_tested() -> None:
    """Here, or beside its environment; the first demo is the one that needs no name."""
    assert demos() == ("demo", *sorted([*MAKERS, "alfworld", "skills", "spreadsheetbench"]))


@parametrized("name", MAKERS, by_default=1)
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


def test_the_documents_of_a_demo_are_made_by_its_script() -> None:
    """Bulletins letter by letter, pages by what is drawn on them: how it is compressed may differ."""
    folder = demo_config("officeqa").parent
    bulletins = {file.name: file.read_text(encoding="utf-8") for file in (folder / "officeqa" / "docs").iterdir()}
    assert bulletins == make_officeqa_demo.make_documents()
    images = {file.name: text_on(file.read_bytes()) for file in (folder / "docvqa" / "images").iterdir()}
    assert images == {name: "\n".join(lines) for name, lines in make_docvqa_demo.make_pages().items()}


@pytest.mark.parametrize("name", ["docvqa", "officeqa"])
def test_a_demo_can_be_named_by_its_file(tmp_path: Path, name: str) -> None:
    """The same run, whatever folder it is started in."""
    small = ["train.num_epochs=1", "env.limit=3", "optimizer.use_slow_update=false", "optimizer.use_meta_skill=false"]
    done = command(
        "run", demo_config(name), "--json", *(word for each in small for word in ("--set", each)), cwd=tmp_path
    )
    assert (done.code, done.json["status"]) == (0, "completed"), done.err


def test_an_unknown_demo_is_named(tmp_path: Path) -> None:
    """With those that there are; and a config beside it is one too many."""
    done = command("run", "--demo", "serchqa", cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    names = "demo, alfworld, docvqa, livemathematicianbench, officeqa, searchqa, skills, spreadsheetbench"
    assert f"demos: {names}" in done.err
    assert command("run", "config.yaml", "--demo", "searchqa", cwd=tmp_path).code == 2
    assert list(tmp_path.iterdir()) == []
