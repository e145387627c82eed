"""A planner for the built-in household: the shortest way to win a game, by searching breadth first."""

from __future__ import annotations

from collections import deque

from skillopt_es.adapters.environments.alfworld.commands import after, commands
from skillopt_es.adapters.environments.alfworld.games import GameText
from skillopt_es.adapters.environments.alfworld.household import Moment, household
from skillopt_es.adapters.environments.alfworld.problem import read_problem

_IDLE = ("help", "inventory", "look", "examine", "slice", "close")


def plan(game: GameText, *, most: int = 100_000) -> list[str]:
    """The shortest list of commands that wins; an AssertionError when none is found among so many moments."""
    first = household(read_problem(game.problem), game.task).begin()
    waiting: deque[tuple[Moment, tuple[str, ...]]] = deque([(first, ())])
    seen = {first.facts}
    while waiting and len(seen) < most:
        now, done = waiting.popleft()
        if now.won:
            return list(done)
        for command in commands(now):
            if _may_help(command.text, game.task):
                then = after(now, command)
                if then.facts not in seen:
                    seen.add(then.facts)
                    waiting.append((then, (*done, command.text)))
    raise AssertionError(f"no plan for: {game.task}")


def _may_help(command: str, task: str) -> bool:
    """Whether a command can belong to a shortest plan: only what the task names has to be taken."""
    if command.startswith("take "):
        return command.split()[1] in task
    return not command.startswith(_IDLE)
