"""How often a run's test items were looked at, for people and for programs."""

from __future__ import annotations

from skillopt_es.events.catalog import RunStarted, SealedTestOpened
from skillopt_es.events.values import Json
from skillopt_es.projections.seal import Looks


def is_sealed(started: RunStarted) -> bool:
    """Whether each look at the test items of the run has to be recorded."""
    env = started.config.get("env")
    return isinstance(env, dict) and env.get("seal_test") is True


def looks_words(looks: Looks) -> str:
    """One line: closed, or how often it was opened and by whom."""
    if not looks.count:
        return "closed: nobody has looked at the test items"
    times = "once" if looks.count == 1 else f"{looks.count} times"
    return f"the test items were looked at {times}: {', '.join(_by(look) for look in looks.opened)}"


def _by(look: SealedTestOpened) -> str:
    return "final evaluation" if look.by == "final" else f"eval of skill {look.skill[:8]}"


def looks_json(looks: Looks, *, sealed: bool) -> Json:
    """The same for programs."""
    opened: list[Json] = [
        {"look": look.look, "by": look.by, "skill": look.skill or None, "evaluation": look.evaluation or None}
        for look in looks.opened
    ]
    return {"sealed": sealed, "count": looks.count, "opened": opened}
