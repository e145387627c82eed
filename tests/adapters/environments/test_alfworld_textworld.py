"""Real TextWorld games, made by us: solved through the environment, and the built-in world agrees with them."""

from __future__ import annotations

import asyncio
import random
from importlib.util import find_spec
from pathlib import Path

import pytest
from support import appendix_world
from support.alfworld_planner import plan
from support.environments import SKILL, Target, attempt, data_settings, open_on, write_lines
from support.made_alfworld import TYPES, made_game, write_games

from skillopt_es.adapters.environments.alfworld.commands import BuiltinWorld
from skillopt_es.adapters.environments.alfworld.games import Game, GameText, game_text
from skillopt_es.adapters.environments.alfworld.household import household
from skillopt_es.adapters.environments.alfworld.problem import read_problem
from skillopt_es.adapters.environments.alfworld.textworld_process import TextWorldProcess, textworld_is_installed
from skillopt_es.events.values import Failed, Measured

pytestmark = pytest.mark.skipif(
    not textworld_is_installed(), reason="TextWorld is not installed: pip install '.[alfworld]' runs these"
)


def says(command: str) -> str:
    return f"<think>So.</think><action>{command}</action>"


@pytest.mark.parametrize("task_type", appendix_world.TASK_TYPES)
def test_every_type_of_task_is_solved_in_textworld(tmp_path: Path, task_type: str) -> None:
    """The plan that wins in the built-in household wins in TextWorld, in as many turns."""
    game = appendix_world.game(task_type)
    commands = plan(game_text(game))
    rows = [{"id": each, "task_type": task_type, "split": each, "game": game} for each in ("train", "val")]
    data = data_settings(split_mode="field", data_path=str(write_lines(tmp_path / "items.jsonl", rows)))
    environment = open_on(tmp_path, "alfworld", data, world="textworld")
    episode = attempt(environment, environment.load().train[0], Target([says(each) for each in commands]))
    assert (episode.outcome, episode.turns) == (Measured(1.0, 1.0), len(commands))


@pytest.mark.parametrize("task_type", TYPES)
def test_the_built_in_world_answers_as_textworld_does(task_type: str) -> None:
    """Observations, commands and verdicts, along a random walk through a made household."""
    text = game_text(made_game(task_type, "parity"))

    async def walk() -> None:
        real, built_in = TextWorldProcess(Game(text=text), seconds=60), built(text)
        dice = random.Random(task_type)
        try:
            here, there = await real.reset(), await built_in.reset()
            for _ in range(40):
                assert there == here
                commands = [each for each in here.commands if each != "help"]
                acts = [each for each in commands if not each.startswith(("go to", "examine", "inventory", "look"))]
                command = dice.choice([*commands, *acts * 3, "dance"])
                here, there = await real.step(command), await built_in.step(command)
        finally:
            await real.aclose()

    asyncio.run(walk())


def built(text: GameText) -> BuiltinWorld:
    return BuiltinWorld(household(read_problem(text.problem), text.task))


def test_games_at_once_do_not_disturb_each_other_and_game_files_load(tmp_path: Path) -> None:
    """Six games from files with their own domain and grammar, all at the same time."""
    spec = find_spec("alfworld")
    assert spec is not None
    assert spec.submodule_search_locations
    shipped = Path(spec.submodule_search_locations[0], "data")
    write_games(tmp_path, (shipped / "alfred.pddl").read_text(), (shipped / "alfred.twl2").read_text())
    data = data_settings(split_mode="split_dir", split_dir=str(tmp_path), limit=6)
    environment = open_on(tmp_path, "alfworld", data, world="textworld", data_root=".", max_steps=3)
    items = environment.load().train
    assert len(items) == 6

    async def main() -> None:
        target = Target([says("look")])
        episodes = await asyncio.gather(*(environment.attempt(each, SKILL, target, seed=1) for each in items))
        assert {(episode.outcome, episode.failure) for episode in episodes} == {(Measured(0.0, 0.0), "step_limit")}

    asyncio.run(main())


def test_a_game_that_textworld_cannot_load_is_a_failed_sandbox(tmp_path: Path) -> None:
    """Nothing was measured, and the last line that was said names the reason."""
    game = {"task": "wait.", "pddl_problem": "(define (problem broken))"}
    rows = [{"id": each, "split": each, "game": game} for each in ("train", "val")]
    data = data_settings(split_mode="field", data_path=str(write_lines(tmp_path / "items.jsonl", rows)))
    environment = open_on(tmp_path, "alfworld", data, world="textworld")
    episode = attempt(environment, environment.load().train[0], Target([says("look")]))
    assert isinstance(episode.outcome, Failed)
    assert episode.failure == "sandbox"
    assert "the game's process died: " in episode.detail
