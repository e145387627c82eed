"""The page's facts as one JSON document: the same numbers, null for what is not known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from report.conftest import facts
from support.in_process import called

from skillopt_es.report.document import document


def test_it_is_what_the_command_prints(capsys: pytest.CaptureFixture[str], demo_run: Path) -> None:
    """And it is JSON."""
    ours = json.loads(json.dumps(document(facts(demo_run))))
    printed = called(capsys)("report", demo_run, "--json").json
    assert {key: printed[key] for key in ours} == ours


def test_it_says_what_the_run_came_to(demo_run: Path) -> None:
    """Steps, lineage, items and calls."""
    ours = json.loads(json.dumps(document(facts(demo_run))))
    assert (ours["run"], ours["status"], ours["problems"]) == ("demo", "completed", [])
    assert len(ours["steps"]) == 12
    assert len(ours["lineage"]["nodes"]) > len(ours["steps"])
    assert ours["usage"]["calls"] == sum(each["calls"] for each in ours["by_stage"].values())
