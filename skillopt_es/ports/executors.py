"""Executors: who makes attempts, here or on other machines."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from attrs import frozen

from skillopt_es.events.values import Json, SkillTree
from skillopt_es.ports.chat import Elsewhere
from skillopt_es.ports.environments import Ask, Environment, Episode, Item
from skillopt_es.ports.settings import EnvironmentSettings, ModelSettings

T = TypeVar("T")

AsyncCall = Callable[[], Awaitable[T]]
Asking = Callable[[Elsewhere | None], Ask]
"""
The target for one try of an attempt, counting from its first question; what an earlier try was answered is known.

It is given the worker that makes this try, where the target's agent is to work there.
"""


@frozen(kw_only=True)
class TravellingAgent:
    """What opens the target's agent on a worker: its adapter, what this is given, and whether it asks a model."""

    kind: str
    settings: ModelSettings
    gateway: bool


class Hands(Protocol):
    """Whoever makes attempts: this process, or workers elsewhere."""

    async def attempt(self, item: Item, skill: SkillTree, asking: Asking, *, seed: int, slot: str) -> Episode:
        """
        What `Environment.attempt` gives, made wherever; `slot` names the attempt among all of the run.

        `asking` gives the target, anew for each try. It is asked in this process alone, which has keys, limits, journal
        and budget. What it raises, an environment elsewhere meets, too, and what an attempt raises is raised here.
        """
        ...


@frozen(kw_only=True)
class Workplace:
    """
    What attempts are made with: the `environment` that is open here, and what opens the same one elsewhere.

    `digests` are those of the items of each split; `software` is what this process runs. `agent` is the target's, where
    it can do its work wherever an attempt is made.
    """

    environment: Environment
    settings: EnvironmentSettings
    digests: Mapping[str, str]
    software: str
    agent: TravellingAgent | None = None


class Executor(Protocol):
    """Runs many jobs at once and hands results back in the order of the plan; knows who makes the attempts in them."""

    def stream(self, jobs: Sequence[AsyncCall[T]], *, workers: int) -> AsyncGenerator[list[T], None]:
        """Results in the jobs' order, in lists as the next ones become ready; at most `workers` run at once."""
        ...

    def hands(self, workplace: Workplace) -> Hands:
        """Who makes attempts in this environment; nothing is started before the first one."""
        ...

    async def aclose(self) -> None:
        """Give back whoever works elsewhere; what is under way there is lost."""
        ...


@runtime_checkable
class ChecksFirst(Protocol):
    """An executor that can tell, before a run begins, that nobody could ever make its attempts."""

    async def check(self) -> None:
        """Raises ConfigError or BackendError where that is so."""
        ...


@frozen(kw_only=True)
class ExecutorSettings:
    """
    What an executor is given.

    Once `stopping` answers true no further job begins. `workers` is how many attempts may be made at once; `options`
    are those of the config's section with the executor's name. `secrets` names the environment variables that hold
    the models' keys, which nobody elsewhere may see. `warn` tells the user something that is worth knowing.
    """

    stopping: Callable[[], bool]
    workers: int
    options: Mapping[str, Json]
    secrets: frozenset[str] = frozenset()
    warn: Callable[[str], None] = lambda message: None
