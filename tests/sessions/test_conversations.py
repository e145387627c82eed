"""The door to the agents' conversations: all that are asked for, in the order of the names."""

from __future__ import annotations

from pathlib import Path

from skillopt_es.ports import Conversation
from skillopt_es.sessions.conversations import AGENT_NAMES, read_conversations

WRITTEN = Path(__file__).parent.parent / "adapters/conversations/written"


def test_agents_are_read_in_the_order_in_which_they_are_named() -> None:
    """And no other is looked at."""
    assert set(AGENT_NAMES) == {"claude", "codex", "copilot", "cursor", "opencode"}
    found = list(read_conversations(WRITTEN, ("copilot", "claude")))
    assert [each.agent for each in found if isinstance(each, Conversation)] == ["copilot", "claude"]
