"""The simulated target with SpreadsheetBench's tools, on the workbooks of its demo."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from support.chat import settings
from support.environments import CONFINED, data_settings, open_on

from skillopt_es.adapters.models.simulated import open_model
from skillopt_es.adapters.models.simulated.worlds import worlds
from skillopt_es.config.layers import demo_config
from skillopt_es.events.values import Measured, SkillTree
from skillopt_es.ports import ChatReply, ChatRequest, Message, Tool

RULES = SkillTree(
    {
        "SKILL.md": "\n".join(
            f"- {topic.rule.wording}" for topic in worlds()["house"].topics if topic.script and topic.rule
        )
    }
)


async def _ask(
    messages: Sequence[Message],
    *,
    max_tokens: int | None = None,
    tools: Sequence[Tool] = (),
    tool_choice: str = "",
) -> ChatReply:
    request = ChatRequest(
        slot="s", stage="rollout", messages=tuple(messages), max_tokens=max_tokens or 1000, tools=tuple(tools)
    )
    return await open_model(settings("", role="target", backend="simulated"), {}).complete(request)


@pytest.mark.skipif(not CONFINED, reason="this machine has no user namespaces")
def test_it_leaves_its_script_in_a_file_and_runs_it() -> None:
    """With the rule it is right, without it is wrong, as in the mode without tools."""
    pytest.importorskip("openpyxl")
    folder = demo_config("spreadsheetbench").parent
    data = data_settings(split_mode="field", data_path=str(folder / "spreadsheetbench" / "dataset.json"), limit=1)
    environment = open_on(folder, "spreadsheetbench", data, mode="react")
    item = environment.load().train[0]
    with_rules = asyncio.run(environment.attempt(item, RULES, _ask, seed=1))
    without = asyncio.run(environment.attempt(item, SkillTree({"SKILL.md": "# Skill\n"}), _ask, seed=1))
    assert (with_rules.outcome, without.outcome) == (Measured(1, 1), Measured(0, 0))
    assert with_rules.turns == 3
    assert "output.xlsx is there" in "".join(record.text for record in with_rules.records if record.kind == "tool")
