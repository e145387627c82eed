"""Which world a game is played in: TextWorld where it is installed, else the built-in household."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from functools import lru_cache
from typing import Literal

from skillopt_es.adapters.environments.alfworld.commands import BuiltinWorld
from skillopt_es.adapters.environments.alfworld.games import Game
from skillopt_es.adapters.environments.alfworld.household import Household, household
from skillopt_es.adapters.environments.alfworld.problem import read_problem
from skillopt_es.adapters.environments.alfworld.textworld_process import TextWorldProcess, textworld_is_installed
from skillopt_es.adapters.environments.alfworld.world import World, WorldError
from skillopt_es.errors import SettingRefused, extra_hint

WorldChoice = Literal["auto", "textworld", "builtin"]
_REMEMBERED = 512  # houses: the released test split has 134; each is read once and not at every attempt


class Worlds:
    """Opens games; of TextWorld's, so many at once as are allowed, each in a process of its own."""

    def __init__(self, choice: WorldChoice, *, at_once: int, seconds: float) -> None:
        installed = choice != "builtin" and textworld_is_installed()
        if choice == "textworld" and not installed:
            raise SettingRefused(
                "env.world",
                ": 'textworld' is asked for, but TextWorld is not installed",
                hint=f"{extra_hint('alfworld')}; or set env.world: builtin",
            )
        self.real = installed
        self._choice = choice
        self._seconds = seconds
        self._free = asyncio.Semaphore(at_once)
        self._open: set[TextWorldProcess] = set()

    def notes(self) -> tuple[str, ...]:
        """What the log has to say of the choice: only a world that nobody asked for by its name."""
        missed = self._choice == "auto" and not self.real
        return ("TextWorld is not installed: games are played in the built-in household",) if missed else ()

    def check(self, game: Game) -> None:
        """Raises ValueError for a game that the built-in household cannot play; TextWorld says so when it plays."""
        if not self.real:
            text = game.read()
            _house(text.problem, text.task)

    @contextlib.asynccontextmanager
    async def open(self, game: Game) -> AsyncGenerator[World]:
        """A world with that game in it, closed on the way out, whatever happened."""
        if not self.real:
            text = game.read()
            try:
                house = _house(text.problem, text.task)
            except ValueError as error:
                raise WorldError(f"the game cannot be played: {error}") from error
            yield BuiltinWorld(house)
            return
        async with self._free:
            world = TextWorldProcess(game, seconds=self._seconds)
            self._open.add(world)
            try:
                yield world
            finally:
                self._open.discard(world)
                await world.aclose()

    async def aclose(self) -> None:
        """End every game that is still open."""
        for world in [*self._open]:
            await world.aclose()


@lru_cache(maxsize=_REMEMBERED)
def _house(problem: str, task: str) -> Household:
    return household(read_problem(problem), task)
