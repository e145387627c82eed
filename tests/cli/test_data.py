"""`data`: plans, splits and checks on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.command import command
from support.downloads import MADE

from skillopt_es.adapters.benchmarks.registry import BENCHMARKS


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_plan_says_what_from_where_on_what_terms(tmp_path: Path, name: str) -> None:
    """For people and for programs."""
    plan = command("data", "fetch-plan", name, "--json", cwd=tmp_path).json
    said = command("data", "fetch-plan", name, cwd=tmp_path)
    assert said.code == 0
    for source in plan["sources"]:
        assert source["where"].startswith("https://")
        for key in ("what", "where", "licence", "get"):
            assert source[key] in said.out
    assert plan["build"] in said.out
    assert (plan["warning"] or "") in said.out


def test_without_a_name_the_benchmarks_are_listed(tmp_path: Path) -> None:
    """And an unknown one gets the nearest."""
    done = command("data", "fetch-plan", cwd=tmp_path)
    assert [line.split()[0] for line in done.out.splitlines()] == list(BENCHMARKS)
    wrong = command("data", "fetch-plan", "serchqa", cwd=tmp_path)
    assert (wrong.code, wrong.out) == (2, "")
    assert "did you mean searchqa?" in wrong.err


def test_what_is_built_can_be_checked_and_trained_on(tmp_path: Path) -> None:
    """From downloads to a config's own check, and damage is told."""
    source, ids = MADE["searchqa"](tmp_path)
    words = ("data", "build", "searchqa", "--from", source, "--ids", ids, "--out", "data/searchqa_split")
    done = command(*words, cwd=tmp_path)
    assert done.code == 0, done.err
    assert done.out.startswith("built  data/searchqa_split  train 3, val 1, test 2\n")
    assert command(*words, cwd=tmp_path).code == 2
    assert command("data", "check", "data/searchqa_split", cwd=tmp_path).out.startswith("ok       searchqa  train 3")
    (tmp_path / "mine.yaml").write_text("_base_: searchqa\nmodel: {backend: simulated, target: a, optimizer: b}\n")
    checked = command("data", "check", "mine.yaml", "--json", cwd=tmp_path)
    assert (checked.code, checked.json["counts"]) == (0, {"train": 3, "val": 1, "test": 2})
    (tmp_path / "data" / "searchqa_split" / "val" / "items.json").write_text("[]")
    broken = command("data", "check", "data/searchqa_split", "--json", cwd=tmp_path)
    assert (broken.code, broken.json["ok"]) == (1, False)
    assert "val/items.json is not what was built" in broken.json["problems"]
    assert command("data", "check", "mine.yaml", cwd=tmp_path).code == 1
