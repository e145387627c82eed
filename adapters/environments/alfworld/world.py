"""What it is to play a game: a world shows a view, takes a command, and shows the next."""

from __future__ import annotations

from typing import Protocol

from attrs import frozen

NOTHING_HAPPENS = "Nothing happens."


@frozen
class View:
    """What the agent sees and may do; `over` is also true of a game that ended without being won."""

    observation: str
    commands: tuple[str, ...]
    won: bool
    over: bool


class WorldError(Exception):
    """The world broke (a dead or silent process, a game that cannot be played): this says nothing about the agent."""


class World(Protocol):
    """One game from its beginning to its end."""

    async def reset(self) -> View:
        """The first view; raises WorldError."""
        ...

    async def step(self, command: str) -> View:
        """The view after a command, whatever the command says; raises WorldError."""
        ...

    async def aclose(self) -> None:
        """Give back processes; safe to call more than once."""
        ...
