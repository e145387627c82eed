"""Runs beside each other, and a run under another rule."""

from __future__ import annotations

import asyncio
import re
import shutil
from pathlib import Path

import pytest
from support.asking import Asking
from support.scripted import ScriptedWorld, config

from skillopt_es.sessions.session import start


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Asking:
    """Three small runs: one, its repeat with another seed, and one with other settings."""
    folder = tmp_path_factory.mktemp("three")
    for name, settings in {"one": [], "again": ["train.seed=9"], "other": ["optimizer.learning_rate=1"]}.items():
        made = config(folder / name, ["train.num_epochs=1", *settings])
        asyncio.run(start(made, folder / "runs" / name, ScriptedWorld().session()))
    return Asking(directory=folder / "runs")


def test_settings_that_differ_come_first(three: Asking) -> None:
    """And repeats are said to be repeats."""
    text = three.get("/compare?run=one&run=other").text
    assert text.index("optimizer.learning_rate") < text.index("Score over what was used")
    assert "train.seed" not in text
    repeats = three.get("/compare?run=one&run=again").text
    assert "one and again repeat each other with another seed" in repeats


def test_curves_are_laid_over_each_other_over_what_is_asked(three: Asking) -> None:
    """One line a run; the same numbers stand in a table."""
    for over, words in {"calls": "calls", "tokens": "tokens", "time": "time at work"}.items():
        text = three.get(f"/compare?run=one&run=other&over={over}").text
        assert "line-0" in text
        assert f"score over {words}</title>" in text
    assert "Nothing is known of scores over money" in three.get("/compare?run=one&over=cost").text


def test_best_skills_are_compared_item_by_item(three: Asking) -> None:
    """In the words that the report has for noise."""
    text = three.get("/compare?run=one&run=other").text
    assert "against one</th>" in text
    assert re.search(r"won and \d+ lost of \d+ items: (within|more than) noise", text)
    assert re.search(r">\d\.\d{3} to \d\.\d{3}<", text)
    assert "corrected" not in text
    all_three = three.get("/compare?run=one&run=other&run=again").text
    assert re.search(
        r"Each p is corrected \(Holm\) for (2|all pairs, because the first leads: 3) comparisons", all_three
    )


def test_a_run_that_cannot_be_read_is_said_and_left_out(three: Asking, tmp_path: Path) -> None:
    """The others are compared."""
    shutil.copytree(three.directory, tmp_path / "runs")
    (tmp_path / "runs" / "other" / "log.db").write_bytes(b"no log at all")
    answer = Asking(directory=tmp_path / "runs").get("/compare?run=one&run=other")
    assert answer.status_code == 200
    assert "other cannot be compared: " in answer.text
    assert "best skill of</th>" in answer.text


def test_runs_are_chosen_in_a_form(three: Asking) -> None:
    """One that is not there is said; a run twice is one run."""
    assert three.get("/compare").text.count('type="checkbox"') == 3
    assert three.get("/compare?run=nope").status_code == 404
    assert "differs from nothing" in three.get("/compare?run=one&run=one").text


def test_another_rule_is_asked_and_what_was_refused_is_listed(asking: Asking) -> None:
    """What is no rule is said in its place, and the list stays."""
    assert "Ask this rule" in asking.get("/run/demo/refused").text
    told = asking.get("/run/demo/refused?use_gate=false").text
    assert "verdicts would change" in told
    wrong = asking.get("/run/demo/refused?gate_repeats=zero").text
    assert "gate_repeats" in wrong
    assert "not taken, the last first" in wrong
