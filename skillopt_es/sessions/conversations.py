"""Conversations with coding agents, for the command: the one module that knows their adapters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from skillopt_es.adapters.conversations.agents import AGENTS, conversations_of
from skillopt_es.ports import Conversation, Unreadable

__all__ = ["AGENT_NAMES", "read_conversations"]

AGENT_NAMES = tuple(AGENTS)


def read_conversations(home: Path, agents: Sequence[str]) -> Iterator[Conversation | Unreadable]:
    """All conversations that these agents keep below a home folder, and the files that cannot be read."""
    for name in agents:
        yield from conversations_of(AGENTS[name], home)
