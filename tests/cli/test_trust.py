"""`blame` names lines that only untrusted attempts support, and `replay --check` counts the evidence."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.in_process import Cli
from support.scripted import ScriptedWorld, config

from skillopt_es.sessions.session import start


@pytest.fixture(scope="module")
def doubtful(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run over items that nobody vouches for."""
    folder = tmp_path_factory.mktemp("doubtful")
    settings = ("env.trust=untrusted", "train.num_epochs=1", "evaluation.eval_test=false")
    asyncio.run(start(config(folder, settings), folder / "run", ScriptedWorld().session()))
    return folder / "run"


def test_blame_says_what_a_line_stands_on(doubtful: Path, cli: Cli) -> None:
    """In a column that other runs do not have, behind one line, and for programs."""
    shown = cli("blame", doubtful)
    assert "evidence" in shown.lines[1]
    assert "UNTRUSTED ONLY" in shown.out
    lines = cli("blame", doubtful, "--json").json["lines"]
    number = next(line["line"] for line in lines if line["evidence"] == "untrusted")
    assert all(line["evidence"] == "trusted" for line in lines if line["kind"] == "initial")
    assert "evidence: only attempts whose texts nobody vouches for" in cli("blame", doubtful, "--line", number).out


def test_a_run_without_such_texts_has_no_such_column(demo_run: Path, cli: Cli) -> None:
    """Nor another number of columns than before."""
    assert "evidence" not in cli("blame", demo_run).out


def test_the_check_counts_the_evidence(demo_run: Path, cli: Cli) -> None:
    """For people and for programs."""
    told = cli("replay", demo_run, "--check", "--json").json["check"]
    assert told["evidence"] > 0
    line = f"evidence   {told['evidence']:,} attempts were shown to analysts, all of training items"
    assert line in cli("replay", demo_run, "--check").lines


def test_the_report_says_it_beside_the_line(doubtful: Path, tmp_path: Path, cli: Cli) -> None:
    """And only there."""
    assert cli("report", doubtful, "--out", tmp_path / "page.html").code == 0
    assert "nobody vouches for any of it" in (tmp_path / "page.html").read_text(encoding="utf-8")
