"""What an installed package may bring: the functions that its entry points name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, ParamSpec, Protocol

from attrs import frozen

from skillopt_es.events.values import Json
from skillopt_es.ports.chat import ChatModel
from skillopt_es.ports.environments import Environment
from skillopt_es.ports.executors import Executor, ExecutorSettings
from skillopt_es.ports.settings import EnvironmentSettings, ModelSettings

P = ParamSpec("P")

HANDED_OVER = "python"
"""The backend of a model that a Python caller handed over: a log has its name, and no config can name it."""


class Notifier(Protocol):
    """A way to tell somebody outside that a run or a sweep has paused or ended."""

    def tell(self, notice: Mapping[str, Json]) -> str:
        """Hands the notice over; why that failed, or nothing. It never raises: the run has ended already."""
        ...


MODELS = "skillopt_es.models"
"""The entry points of providers."""

OpenModel = Callable[[ModelSettings, Mapping[str, str]], ChatModel]


@frozen(kw_only=True)
class Provider(Generic[P]):
    """
    What an entry point of `skillopt_es.models` names: a function that opens a model, and what is special about it.

    `takes` are the settings that other backends refuse, such as `thinking`. `may_think` says that it is up to the
    server whether a model thinks, where nobody says so. `system` is its name in traces, if it is not the backend's; an
    `agent` is asked once and asks its model as often as it likes. A bare function is a provider without any of these.
    """

    open: Callable[P, ChatModel]
    takes: frozenset[str] = frozenset()
    may_think: bool = False
    system: str = ""
    agent: bool = False

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> ChatModel:
        """The model, ready to be asked."""
        return self.open(*args, **kwargs)


def provider(
    *, takes: Iterable[str] = (), may_think: bool = False, system: str = "", agent: bool = False
) -> Callable[[Callable[P, ChatModel]], Provider[P]]:
    """Makes a provider of the function that opens its models."""

    def made(opener: Callable[P, ChatModel]) -> Provider[P]:
        return Provider(open=opener, takes=frozenset(takes), may_think=may_think, system=system, agent=agent)

    return made


OpenEnvironment = Callable[[EnvironmentSettings], Environment]
OpenExecutor = Callable[[ExecutorSettings], Executor]
