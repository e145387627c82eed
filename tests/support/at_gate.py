"""What a gate looks at, made by hand: texts, their draws, a state in which they were measured, and a run's settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from skillopt_es.config import RunConfig
from skillopt_es.engine.run_config import validation_items
from skillopt_es.engine.work import Contest
from skillopt_es.events.catalog import RunStarted
from skillopt_es.events.values import Measured, Score, SkillTree
from skillopt_es.projections.persistent import Ledger
from skillopt_es.projections.state import AnyState, Drawn, Measurement, RunState, Standing
from skillopt_es.sessions.session import split_ids
from support.scripted import ScriptedEnvironment, config

TEXTS = {name: SkillTree(files={"SKILL.md": f"# {name}\n"}) for name in ("current", "candidate", "best", "old")}
CURRENT, CANDIDATE, BEST, OLD = TEXTS.values()
STARTED = RunStarted(
    software="", algorithm="classic", config={}, folder=".", skill=CURRENT,
    splits=split_ids(ScriptedEnvironment().load()),
    steps_per_epoch=4, total_steps=8,
)  # fmt: skip
"""How the run began in which they were measured; its validation items are v0, v1, …"""
RunOf = Callable[..., RunConfig]


def runs_in(folder: Path) -> RunOf:
    """Makes the config of a run with these settings."""

    def made(*overrides: str) -> RunConfig:
        return config(folder, overrides)

    return made


def contest(config: RunConfig, candidate: SkillTree = CANDIDATE, standing: Standing | None = None) -> Contest:
    """A candidate against the current skill, on the validation items that a config takes."""
    return Contest(
        candidate=candidate,
        standing=Standing(skill=CURRENT) if standing is None else standing,
        items=validation_items(STARTED, config),
        candidate_place="e1/s2/gate",
        current_place="e1/s2/current",
    )


def measured(*draws: str, place: str = "there", unmeasured: int = 0) -> Measurement:
    """`1` for a solved item, `0` for another, `-` for one that was not measured; one text a draw."""

    def items(results: str) -> dict[str, Measured]:
        return {f"v{at}": Measured(float(each), float(each)) for at, each in enumerate(results) if each != "-"}

    def score(results: str) -> Score:
        solved, count = results.count("1"), len(results) - results.count("-")
        return Score(hard=solved / count, soft=solved / count, measured=count, unmeasured=unmeasured)

    places = (place, *(f"{place}/d" for _ in draws[1:]))
    drawn = (Drawn(score=score(each), place=at, items=items(each)) for each, at in zip(draws, places, strict=True))
    return Measurement(drawn=tuple(drawn), value=score(draws[0]).hard)


def state_of(known: Mapping[str, Measurement], *, best: SkillTree = BEST, standing: Standing | None = None) -> AnyState:
    """A state in which these texts were measured."""
    ledger: Ledger[str, Measurement] = Ledger()
    for name, each in known.items():
        ledger = ledger.put(TEXTS[name].hash, each)
    current = Standing(skill=CURRENT, value=0.5) if standing is None else standing
    held = {"current": current, "best": Standing(skill=best), "certified": Standing(skill=best)}
    return RunState(started=STARTED, algorithm=None, measured=ledger, **held)
