"""The skill before the target, and replies that hold no answer."""

from __future__ import annotations

import pytest

from skillopt_es.adapters.environments.episodes import SystemPrompts, records_with_tools, skill_section, without_answer
from skillopt_es.events.values import Failed, Measured, SkillTree
from skillopt_es.ports import ChatReply, FinishReason, Message, ToolCall


def test_a_skill_stands_under_its_heading_with_its_further_files() -> None:
    """Nothing where it is blank."""
    tree = SkillTree(files={"SKILL.md": "Be kind.\n", "more/b.md": "Say why.", "more/a.md": " \n"})
    assert skill_section(tree) == "## Skill\nBe kind.\n\n### more/b.md\nSay why."
    assert skill_section(SkillTree(files={"SKILL.md": " \n"})) == ""


def test_a_prompt_is_made_once_for_each_of_the_last_skills() -> None:
    """A skill that was long ago is made again."""
    made: list[str] = []

    def make(section: str) -> str:
        made.append(section)
        return section

    prompts = SystemPrompts(make)
    skills = [SkillTree(files={"SKILL.md": f"rule {number}"}) for number in range(9)]
    for skill in (skills[0], skills[0], *skills[1:]):
        prompts.under(skill)
    assert len(made) == 9
    prompts.under(skills[0])
    assert len(made) == 10


@pytest.mark.parametrize(
    ("finish", "outcome", "failure"),
    [("refused", Measured, "refused"), ("filtered", Measured, "refused"), ("length", Failed, "truncated")],
)
def test_a_reply_without_an_answer_is_an_episode(finish: FinishReason, outcome: type, failure: str) -> None:
    """A refusal measures 0; what was cut measures nothing."""
    episode = without_answer(ChatReply(text="", finish=finish, model="m", latency_ms=0), "task", [])
    assert episode is not None
    assert isinstance(episode.outcome, outcome)
    assert episode.failure == failure


def test_a_reply_that_ended_by_itself_can_be_graded() -> None:
    """There is nothing to say yet."""
    assert without_answer(ChatReply(text="x", finish="stop", model="m", latency_ms=0), "task", []) is None


def test_tools_are_told_in_their_order() -> None:
    """A reply that only calls a tool says nothing itself."""
    call = ToolCall(id="1", name="look", arguments="{}")
    talk = [Message("user", "go"), Message("assistant", "", tool_calls=(call,)), Message("tool", "a door")]
    assert [(each.kind, each.text) for each in records_with_tools(talk)] == [
        ("user", "go"), ("tool", "[look] {}"), ("tool", "a door")
    ]  # fmt: skip
