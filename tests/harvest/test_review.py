"""The harvest's file: it only grows, the last decision holds, and only what was kept becomes a task."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillopt_es.errors import DataError
from skillopt_es.events.values import Json
from skillopt_es.harvest.mining import Candidate, Seen
from skillopt_es.harvest.review import Decision, appended, kept_tasks, read_harvest, task_of

DEEP: Json = [{"check": "contains", "text": "x", "more": [1, {"a": None}]}]
HEEDS = "It heeds what was said of an earlier answer"


def candidate(name: str, **changes: object) -> Candidate:
    """One that was asked once."""
    seen = (Seen(agent="codex", conversation="c", turn=1, when=""),)
    fields = {
        "id": name,
        "kind": "note",
        "asked": f"Write {name}",
        "answered": "Done",
        "accepted": True,
        "checks": (),
        "rubric": (),
        "tools": (),
        "seen": seen,
        "private": {},
    }
    return Candidate(**{**fields, **changes})  # type: ignore[arg-type]


def test_the_last_decision_holds(tmp_path: Path) -> None:
    """Whatever was decided before; what is open becomes no task."""
    file = tmp_path / "harvest.jsonl"
    appended(file, [candidate("a"), candidate("b"), candidate("c")])
    appended(file, [Decision(id="a", decision="left", at=""), Decision(id="b", decision="kept", at="")])
    appended(file, [Decision(id="a", decision="kept", at="", task={"id": "mine", "input": "changed", "checks": DEEP})])
    harvest = read_harvest(file)
    assert {name: each.decision for name, each in harvest.items()} == {"a": "kept", "b": "kept", "c": "open"}
    assert kept_tasks(harvest) == [{"id": "mine", "input": "changed", "checks": DEEP}, task_of(candidate("b"))]


@pytest.mark.parametrize(
    ("changes", "grading"),
    [
        ({}, {"grader": "f1", "expected": "Done"}),
        (
            {"accepted": False, "rubric": ("shorter",)},
            {"grader": "judge", "rubric": {"said-1": f"{HEEDS}: shorter"}},
        ),
        ({"checks": ({"check": "is_json"},)}, {"grader": "checks", "checks": [{"check": "is_json"}]}),
    ],
)
def test_how_a_task_is_graded_follows_from_what_is_known(
    changes: dict[str, object], grading: dict[str, object]
) -> None:
    """Checks first; else an answer that nobody corrected; else the person's own words as a rubric."""
    task = task_of(candidate("a", **changes))
    always = {"id": "harvest-a", "type": "note", "input": "Write a", "trust": "untrusted"}
    assert task == always | grading


@pytest.mark.parametrize("line", ["{broken", '{"id": "a"}', '{"id": "nobody", "decision": "kept", "at": ""}', "[]"])
def test_another_file_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    """And nothing is appended to it."""
    file = tmp_path / "harvest.jsonl"
    appended(file, [candidate("a")])
    with file.open("a", encoding="utf-8") as end:
        end.write(f"{line}\n")
    with pytest.raises(DataError, match=r"harvest\.jsonl:2: neither a candidate nor a decision"):
        read_harvest(file)
