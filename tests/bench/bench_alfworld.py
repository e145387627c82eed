"""
Steps per second of an ALFWorld game, in the built-in household and, where it is installed, in TextWorld.

    python tests/bench/bench_alfworld.py

Random walks through made households: one like the demo's, and one with four times as many receptacles and objects,
about the size of a real game's. A step of TextWorld goes through its child process and back.
"""

from __future__ import annotations

import asyncio
import random
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.made_alfworld import made_game

from skillopt_es.adapters.environments.alfworld.commands import BuiltinWorld
from skillopt_es.adapters.environments.alfworld.games import Game, GameText, game_text
from skillopt_es.adapters.environments.alfworld.household import household
from skillopt_es.adapters.environments.alfworld.problem import read_problem
from skillopt_es.adapters.environments.alfworld.textworld_process import TextWorldProcess, textworld_is_installed
from skillopt_es.adapters.environments.alfworld.world import World

STEPS = 400
SIZES = {"demo size": 1, "real size": 4}


def processor_seconds() -> float:
    """Of this process and of the children that ended."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in usage)


async def walk(world: World) -> tuple[float, float]:
    """Seconds to start and seconds for all steps."""
    dice = random.Random(0)
    began = time.perf_counter()
    view = await world.reset()
    started = time.perf_counter()
    for _ in range(STEPS):
        view = await world.step(dice.choice([each for each in view.commands if each != "help"]))
        if view.over:
            view = await world.reset()
    ended = time.perf_counter()
    await world.aclose()
    return started - began, ended - started


def measure(name: str, world: World) -> None:
    """Prints one line."""
    before = processor_seconds()
    start, steps = asyncio.run(walk(world))
    used = processor_seconds() - before
    print(
        f"{name:<24} start {start:6.2f} s   {STEPS / steps:7.0f} steps/s   {STEPS / used:7.0f} steps/CPU s with start"
    )


def built_in(text: GameText) -> World:
    return BuiltinWorld(household(read_problem(text.problem), text.task))


def main() -> None:
    for label, size in SIZES.items():
        text = game_text(made_game("pick_heat_then_place_in_recep", "bench", size=size))
        measure(f"built-in, {label}", built_in(text))
        if textworld_is_installed():
            measure(f"TextWorld, {label}", TextWorldProcess(Game(text=text), seconds=120))
    if not textworld_is_installed():
        print("TextWorld is not installed: pip install '.[alfworld]'")


if __name__ == "__main__":
    main()
