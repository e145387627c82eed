"""Skills are opened while a benchmark's items are attempted: the trainer answers, the environment grades the answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.skills import skill

import skillopt_es as so
from skillopt_es.adapters.environments.alfworld.environment import Alfworld
from skillopt_es.adapters.environments.docvqa.environment import DocVQA
from skillopt_es.adapters.environments.livemath.environment import LiveMath
from skillopt_es.adapters.environments.officeqa.environment import OfficeQA
from skillopt_es.adapters.environments.searchqa.environment import SearchQA
from skillopt_es.adapters.environments.spreadsheetbench.environment import SpreadsheetBench
from skillopt_es.config.layers import demo_config
from skillopt_es.events.catalog import RolloutCompleted
from skillopt_es.ports import ToolCall


@pytest.mark.parametrize(
    ("demo", "own"), [("livemathematicianbench", ()), ("searchqa", ()), ("officeqa", ("glob", "read", "grep"))]
)
def test_a_target_opens_a_skill_before_it_answers(demo: str, own: tuple[str, ...], tmp_path: Path) -> None:
    """Beside the benchmark's own tools, where it has some; a reply that asks for both is answered by both."""
    (tmp_path / "skills" / "house").mkdir(parents=True)
    (tmp_path / "skills" / "house" / "SKILL.md").write_text(skill("house", "For all tasks.", "A secret rule."))
    asked: list[so.ChatRequest] = []

    def target(request: so.ChatRequest) -> str | so.ChatReply:
        asked.append(request)
        told = [message.content for message in request.messages if message.role == "tool"]
        if not told:
            wanted = [("skill_view", {"skill_id": "house"}), *([("glob", {"pattern": "*"})] if own else [])]
            calls = tuple(ToolCall(f"c{n}", name, json.dumps(said)) for n, (name, said) in enumerate(wanted))
            return so.ChatReply(text="", finish="tools", tool_calls=calls)
        assert len(told) == 1 + bool(own)
        assert "A secret rule." in told[0]
        return "<answer>A</answer>"

    found = so.evaluate(
        tmp_path / "skills",
        demo_config(demo),
        splits=["val"],
        limit=2,
        target=so.ChatFunction(target),
        evals=tmp_path / "evals",
    )
    assert tuple(tool.name for tool in asked[0].tools) == (*own, "skills_list", "skill_view")
    assert "- house: For all tasks." in asked[0].messages[0].content
    rows = found.results[0].rows
    assert len(rows) == 2
    for row in rows:
        assert isinstance(row, RolloutCompleted)
        assert (row.viewed, row.prediction, row.turns) == (("house/SKILL.md",), "A", 1 + bool(own))


def test_every_benchmark_says_so_whose_target_is_asked_in_one_conversation() -> None:
    """In ALFWorld each turn is a question of its own: what was opened would be forgotten by the next one."""
    kinds = (LiveMath, SearchQA, OfficeQA, DocVQA, SpreadsheetBench, Alfworld)
    assert [getattr(kind, "opens_skills", False) for kind in kinds] == [True, True, True, True, True, False]
