"""
Train the skill a frozen agent reads, as an event-sourced state machine.

What is named in `__all__` is the public door (docs/python.md); all other modules are the house behind it.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skillopt_es.config import RunConfig
    from skillopt_es.door.given import ChatFunction
    from skillopt_es.door.offered import (
        aestimate,
        aevaluate,
        aresume,
        atrain,
        atrain_on,
        estimate,
        evaluate,
        resume,
        train,
        train_on,
    )
    from skillopt_es.door.run import Run, compare, open_run
    from skillopt_es.door.work import Watch
    from skillopt_es.engine.algorithm import Algorithm
    from skillopt_es.errors import (
        AwaitingAnswers,
        BackendError,
        BudgetReached,
        ConfigError,
        DataError,
        Interrupted,
        NotInRun,
        SkillOptError,
    )
    from skillopt_es.events.catalog import Event, Recorded
    from skillopt_es.events.errors import LogDamaged, LogError, RunBusy, RunNotFound
    from skillopt_es.events.values import Failed, Measured, Score, SkillTree
    from skillopt_es.ports import (
        AgentTask,
        Ask,
        CallFailed,
        ChatModel,
        ChatReply,
        ChatRequest,
        Environment,
        Episode,
        Executor,
        Item,
        Message,
        Splits,
        TrajectoryRecord,
        Usage,
    )
    from skillopt_es.runs.now import Now

    __version__: str

# In a clone the packages inside this one lie beside it (`events/` is `skillopt_es.events`): so `python -m skillopt_es`
# works from its root, too, where Python takes this folder for the whole package.
_clone = Path(__file__).parent.parent
if not (Path(__file__).parent / "events").exists() and (_clone / "events" / "catalog.py").exists():
    __path__.append(str(_clone))

_ROOMS = {
    "config": ("RunConfig",),
    "door.given": ("ChatFunction",),
    "door.offered": (
        "aestimate",
        "aevaluate",
        "aresume",
        "atrain",
        "atrain_on",
        "estimate",
        "evaluate",
        "resume",
        "train",
        "train_on",
    ),
    "door.run": ("Run", "compare", "open_run"),
    "door.work": ("Watch",),
    "engine.algorithms": ("Algorithm",),
    "errors": (
        "AwaitingAnswers",
        "BackendError",
        "BudgetReached",
        "ConfigError",
        "DataError",
        "Interrupted",
        "NotInRun",
        "SkillOptError",
    ),
    "events.catalog": ("Event", "Recorded"),
    "events.errors": ("LogDamaged", "LogError", "RunBusy", "RunNotFound"),
    "events.values": ("Failed", "Measured", "Score", "SkillTree"),
    "runs.now": ("Now",),
    "ports": (
        "AgentTask",
        "Ask",
        "CallFailed",
        "ChatModel",
        "ChatReply",
        "ChatRequest",
        "Environment",
        "Episode",
        "Executor",
        "Item",
        "Message",
        "Splits",
        "TrajectoryRecord",
        "Usage",
    ),
}
_WHERE = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "AgentTask",
    "Algorithm",
    "Ask",
    "AwaitingAnswers",
    "BackendError",
    "BudgetReached",
    "CallFailed",
    "ChatFunction",
    "ChatModel",
    "ChatReply",
    "ChatRequest",
    "ConfigError",
    "DataError",
    "Environment",
    "Episode",
    "Event",
    "Executor",
    "Failed",
    "Interrupted",
    "Item",
    "LogDamaged",
    "LogError",
    "Measured",
    "Message",
    "NotInRun",
    "Now",
    "Recorded",
    "Run",
    "RunBusy",
    "RunConfig",
    "RunNotFound",
    "Score",
    "SkillOptError",
    "SkillTree",
    "Splits",
    "TrajectoryRecord",
    "Usage",
    "Watch",
    "aestimate",
    "aevaluate",
    "aresume",
    "atrain",
    "atrain_on",
    "compare",
    "estimate",
    "evaluate",
    "open_run",
    "resume",
    "train",
    "train_on",
]


def __getattr__(name: str) -> object:
    """Opens a room when something of it is first asked for: `--help` must not wait for all of them."""
    if name == "__version__":
        return import_module(f"{__name__}.version").software_version().partition(" ")[2]
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
