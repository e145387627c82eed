"""One contract for graders: the examples of the page work, and several graders make one grade."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from support.environments import grade_one

from skillopt_es.errors import ConfigError
from skillopt_es.events.values import Failed, Measured
from skillopt_es.ports import AgentStep, ChatReply

PAGE = Path(__file__).parents[3] / "docs" / "tasks.md"
ITEM: dict[str, Any] = {"input": "When?", "expected": "2026-03-04", "source": "mail"}
TRIED = ChatReply(
    text="March 4",
    finish="stop",
    steps=(AgentStep(kind="command", text="grep delivery", output="none", exit_code=1, ok=False),),
)


def examples() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def example(start: str) -> str:
    return next(code for code in examples() if code.startswith(start))


def test_the_examples_are_short() -> None:
    """Ten lines are enough for each."""
    assert len(examples()) == 3
    assert all(len(code.splitlines()) <= 10 for code in examples())


@pytest.mark.parametrize(("reply", "outcome"), [("2026-03-04", Measured(1, 1)), (TRIED, Measured(0, 0.2))])
def test_the_example_of_a_function_works(tmp_path: Path, reply: str | ChatReply, outcome: Measured) -> None:
    """It sees the item, the answer, and what an agent did."""
    (tmp_path / "graders.py").write_text(example("def grade"))
    assert grade_one(tmp_path, ITEM, reply, grader="python:graders.py:grade").outcome == outcome


@pytest.mark.parametrize(("reply", "outcome"), [("2026-03-04", Measured(1, 1)), ("March 4", Measured(0, 0))])
def test_the_example_of_a_command_works(tmp_path: Path, reply: str, outcome: Measured) -> None:
    """The same object, as JSON."""
    (tmp_path / "grade.py").write_text(example("import json"))
    command = {"command": [sys.executable, "grade.py"]}
    assert grade_one(tmp_path, ITEM, reply, grader=command, sandbox="unconfined").outcome == outcome


def test_the_example_of_an_async_function_works(tmp_path: Path) -> None:
    """With a service that says what is right."""
    service = "async def look_up(question):\n    return question.removesuffix('?')\n\n"
    (tmp_path / "graders.py").write_text(service + example("async def"))
    assert grade_one(tmp_path, ITEM, "When", grader="python:graders.py:grade").outcome == Measured(1, 1)


def test_a_function_and_a_command_get_the_same(tmp_path: Path) -> None:
    """Key by key, with the steps of an agent where there are any."""
    kept = [tmp_path / "by_function.json", tmp_path / "by_command.json"]
    (tmp_path / "graders.py").write_text(
        "import json, pathlib, sys\n"
        f"def keep(row):\n    pathlib.Path({str(kept[0])!r}).write_text(json.dumps(row))\n    return 1\n"
        f"if __name__ == '__main__':\n    pathlib.Path({str(kept[1])!r}).write_text(sys.stdin.read())\n    print(1)\n"
    )
    command = {"command": [sys.executable, "graders.py"]}
    assert grade_one(tmp_path, ITEM, TRIED, grader="python:graders.py:keep").outcome == Measured(1, 1)
    assert grade_one(tmp_path, ITEM, TRIED, grader=command, sandbox="unconfined").outcome == Measured(1, 1)
    rows = [json.loads(file.read_text()) for file in kept]
    assert rows[0] == rows[1]
    assert {"id": "1", "source": "mail", "answer": "March 4"}.items() <= rows[0].items()
    assert [step["kind"] for step in rows[0]["trajectory"]] == ["system", "user", "command", "reply"]
    assert rows[0]["trajectory"][2]["exit_code"] == 1


def test_several_graders_make_one_grade(tmp_path: Path) -> None:
    """Soft is the weighted mean; solved is what all call solved, or what reaches the threshold."""
    (tmp_path / "graders.py").write_text("def half(answer, item):\n    return {'soft': 0.5, 'note': 'so so'}\n")
    several = [{"grader": "exact", "weight": 3}, "python:graders.py:half"]
    episode = grade_one(tmp_path, ITEM, "2026-03-04", grader=several)
    assert episode.outcome == Measured(0, 0.875)
    assert "exact 1.00; python 0.50: so so" in episode.records[-1].text
    assert grade_one(tmp_path, ITEM, "2026-03-04", grader=several, pass_score=0.875).outcome == Measured(1, 0.875)
    assert grade_one(tmp_path, ITEM, "x", grader=several, pass_score=0.875).outcome == Measured(0, 0.125)


def test_a_threshold_counts_for_a_single_grader_too(tmp_path: Path) -> None:
    """Near enough is solved."""
    row = {"expected": "new york city", "grader": "f1"}
    assert grade_one(tmp_path, row, "york city", pass_score=0.7).outcome == Measured(1, 0.8)
    assert grade_one(tmp_path, row, "york city", pass_score=0.9).outcome == Measured(0, 0.8)


def test_one_grader_that_breaks_leaves_no_grade(tmp_path: Path) -> None:
    """The others' grades are not the whole."""
    (tmp_path / "graders.py").write_text("def broken(row):\n    return row['typo']\n")
    episode = grade_one(tmp_path, ITEM, "x", grader=["exact", "python:graders.py:broken"])
    assert isinstance(episode.outcome, Failed)
    assert "python: the grader raised KeyError" in episode.outcome.message


BAD: list[Any] = [[], [{"grader": "exact", "weight": 0}], [{"grader": "exact", "wieght": 1}], ["exakt"], [["exact"]]]


@pytest.mark.parametrize("several", BAD)
def test_a_list_that_cannot_be_graders_is_refused(tmp_path: Path, several: Any) -> None:
    """Before anything is asked."""
    with pytest.raises(ConfigError, match="grader"):
        grade_one(tmp_path, ITEM, "x", grader=several)
