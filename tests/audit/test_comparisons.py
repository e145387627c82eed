"""Solved tasks that a question about failures showed for comparison: nothing counts them as failures."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from algorithms.search.test_search import searched, teacher
from support.asking import Asking
from support.in_process import Cli, called

import skillopt_es as so

PARTS = re.compile(r"## (Failed|Successful) trajectories[^\n]*\n(.*?)(?=\n## |\Z)", re.DOTALL)


class Teacher:
    """Remembers which tasks each question showed failed and which solved."""

    def __init__(self) -> None:
        self.shown: dict[str, dict[str, list[str]]] = {}
        self._answer: Callable[[so.ChatRequest], str] = teacher(claims=True)

    def __call__(self, request: so.ChatRequest) -> str:
        """Answers as any teacher here."""
        parts = PARTS.findall(request.messages[-1].content)
        self.shown[request.slot] = {title: re.findall(r"item: (\S+)\n", text) for title, text in parts}
        return self._answer(request)


@pytest.fixture
def asked(tmp_path: Path) -> Teacher:
    """What the optimizer saw in a search, which is in the folder `search`."""
    teach = Teacher()
    searched(tmp_path, teach=teach, **{"budget.max_calls": 120})
    return teach


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command in this process, over that run."""
    run = called(capsys)
    return lambda *words: run(*words, "--dir", tmp_path)


def test_explain_counts_what_the_optimizer_saw_fail(asked: Teacher, cli: Cli) -> None:
    """And what it saw solved beside that, as the question had it."""
    with_solved = 0
    for step in sorted({int(slot.split("/")[1][1:]) for slot in asked.shown}):
        out = cli("explain", "search", "step", step).out
        solved = cli("explain", "search", "step", step, "--json").json["solved_for_comparison"]
        for group, said in re.findall(r"^  (\S+/(?:failure|anew)-\S+)  (\d+ .*)$", out, re.MULTILINE):
            failed, beside = re.fullmatch(
                r"(?:\d+ failed tasks?: ([^;]*))?(?:; )?(?:\d+ solved tasks? .*: (.*))?", said
            ).groups()
            shown = asked.shown[group]
            assert set((failed or "").split(", ")) - {""} == set(shown["Failed"])
            assert set((beside or "").split(", ")) - {""} <= set(shown.get("Successful", []))
            assert set(solved.get(group, [])) == set((beside or "").split(", ")) - {""}
            with_solved += bool(beside)
    assert with_solved


def test_why_not_names_the_failed_tasks_that_a_proposal_came_from(asked: Teacher, cli: Cli) -> None:
    """Others are named as solved."""
    rows = cli("why-not", "search", "--json").json["not_taken"]
    assert any(row["solved"] for row in rows)
    for row in rows:
        failed = [item for item in row["items"] if item not in row["solved"]]
        if row["patch"] in asked.shown:
            assert set(failed) == set(asked.shown[row["patch"]]["Failed"])
    out = cli("why-not", "search").out
    assert re.search(r"^    with \d+ solved tasks? for comparison: ", out, re.MULTILINE)


def test_the_page_tells_them_apart(asked: Teacher, cli: Cli, tmp_path: Path) -> None:
    """On a step's page, and on that of what was refused."""
    asking = Asking(directory=tmp_path)
    steps = [asking.get(f"/run/search/step/{step}", signed_in=True).text for step in range(1, 3)]
    assert any("Saw solved, for comparison: " in text for text in steps)
    assert "solved, for comparison: " in asking.get("/run/search/refused", signed_in=True).text
