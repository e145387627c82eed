"""The ALFWorld environment: household games in text, one command a turn."""

from __future__ import annotations

from pathlib import Path

from attrs import evolve, field, frozen

from skillopt_es.adapters.environments.alfworld.episode import Play, Rules
from skillopt_es.adapters.environments.alfworld.items import AlfworldItem, GameReader
from skillopt_es.adapters.environments.alfworld.prompt import GUIDE
from skillopt_es.adapters.environments.alfworld.world import WorldError
from skillopt_es.adapters.environments.alfworld.worlds import WorldChoice, Worlds
from skillopt_es.adapters.environments.data import RawItem
from skillopt_es.adapters.environments.episodes import skill_body
from skillopt_es.adapters.environments.options import (
    non_negative_int,
    one_of,
    parsed_by,
    positive_int,
    text,
    yes_or_no,
)
from skillopt_es.adapters.environments.splits import load_splits
from skillopt_es.events.values import SkillTree
from skillopt_es.ports import Ask, EnvironmentSettings, Episode, Item, Splits


@frozen
class AlfworldOptions:
    """ALFWorld's own keys under `env:`."""

    world: WorldChoice = field(default="auto", metadata=parsed_by(one_of("auto", "textworld", "builtin")))
    data_root: str = field(default="", metadata=parsed_by(text))
    max_steps: int = field(default=50, metadata=parsed_by(positive_int))
    memory_window: int = field(default=2, metadata=parsed_by(non_negative_int))
    max_api_workers: int = field(default=8, metadata=parsed_by(positive_int))
    show_reference: bool = field(default=False, metadata=parsed_by(yes_or_no))


class Alfworld:
    """Games that are won or not: hard and soft are 1 for a task that was solved within its steps, else 0."""

    guide = GUIDE

    def __init__(self, settings: EnvironmentSettings, options: AlfworldOptions) -> None:
        self.name = settings.name
        self._settings = settings
        self._reader = GameReader(options.data_root, Path(settings.folder), options.show_reference)
        self._worlds = Worlds(options.world, at_once=options.max_api_workers, seconds=settings.timeout_seconds)
        self._rules = Rules(
            max_steps=options.max_steps, window=options.memory_window, max_tokens=settings.max_completion_tokens
        )

    def load(self) -> Splits:
        """The items; raises DataError with file, line and what to do."""
        splits = load_splits(self._settings.data, self._item, read=self._reader.rows)
        return evolve(
            splits,
            val=[_without_reference(item) for item in splits.val],
            test=[_without_reference(item) for item in splits.test],
            notes=(*splits.notes, *self._worlds.notes()),
        )

    async def attempt(self, item: Item, skill: SkillTree, ask: Ask, *, seed: int) -> Episode:
        """Play one game under one skill."""
        assert isinstance(item, AlfworldItem)
        play = Play(self._rules, skill_body(skill), item.reference)
        try:
            async with self._worlds.open(item.game) as world:
                return await play.through(world, ask)
        except WorldError as error:
            return play.broken(str(error))

    async def aclose(self) -> None:
        """End the games that are still open."""
        await self._worlds.aclose()

    def _item(self, raw: RawItem) -> AlfworldItem:
        item = self._reader.item(raw)
        try:
            self._worlds.check(item.game)
        except (ValueError, WorldError) as error:
            raise raw.refusal(f"its game cannot be played: {error}", "give it a game of ALFRED's domain") from None
        return item


def _without_reference(item: Item) -> AlfworldItem:
    """The item as it is scored: a reference is for what is learned from, never for what is tested on."""
    assert isinstance(item, AlfworldItem)
    return evolve(item, reference="")
