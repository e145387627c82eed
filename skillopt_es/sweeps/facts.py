"""
What happened in a sweep, and the state that follows from it. Pure: facts are applied, decisions are made in `next.py`.

A sweep's log says what only a sweep knows: what was planned, which runs were launched and what they came to, and which
settings were dropped. Everything about a run is in the run's own log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, get_args

from attrs import evolve, field, frozen

from skillopt_es.events.errors import LogDamaged

Outcome = Literal["completed", "paused", "failed", "killed"]


@frozen(kw_only=True)
class RunEntry:
    """A run as it was planned when the sweep began."""

    name: str
    setting: str
    seed: int
    digest: str


@frozen(kw_only=True)
class SweepBegan:
    """What the sweep is about; it stays so to its end. `file` is the plan's, as it was named then."""

    software: str
    file: str
    score: str
    runs: tuple[RunEntry, ...]


@frozen(kw_only=True)
class SweepContinued:
    """Another process took it up."""

    software: str


@frozen(kw_only=True)
class RunLaunched:
    """A process was started for a run, to begin it or to continue it."""

    run: str
    resumes: bool


@frozen(kw_only=True)
class RunEnded:
    """
    What a process left behind: of a completed run its scores and what it used, of any other why it stands still.

    `reason` is that of a pause, `key` the limit that was reached, where that is why.
    """

    run: str
    outcome: Outcome
    message: str = ""
    reason: str = ""
    key: str = ""
    validation: float | None = None
    test: float | None = None
    calls: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: str | None = None
    currency: str = ""
    cost_is_whole: bool = True
    seconds: float | None = None


@frozen(kw_only=True)
class SettingDropped:
    """No run of the setting begins any more: with 1 for each that is left its mean would still be below the other's."""

    setting: str
    highest: float
    by: str
    lowest: float


@frozen(kw_only=True)
class SettingRestored:
    """Somebody wants to see it to its end: it is not dropped again."""

    setting: str


@frozen(kw_only=True)
class SweepPaused:
    """The process ended before the sweep did."""

    reason: Literal["interrupt", "budget", "handoff", "error"]
    message: str


@frozen(kw_only=True)
class SweepCompleted:
    """Every run has completed, or belongs to a setting that was dropped."""


Fact = (
    SweepBegan
    | SweepContinued
    | RunLaunched
    | RunEnded
    | SettingDropped
    | SettingRestored
    | SweepPaused
    | SweepCompleted
)
KINDS: Mapping[str, type[Fact]] = {kind.__name__: kind for kind in get_args(Fact)}


@frozen(kw_only=True)
class SweepState:
    """Where a sweep stands; `ended` has what the last process of each run left, `launches` how many there were."""

    began: SweepBegan | None = None
    ended: Mapping[str, RunEnded] = field(factory=dict)
    launches: Mapping[str, int] = field(factory=dict)
    dropped: Mapping[str, SettingDropped] = field(factory=dict)
    restored: frozenset[str] = frozenset()
    paused: SweepPaused | None = None
    completed: bool = False

    @property
    def runs(self) -> tuple[RunEntry, ...]:
        """The planned runs, in the order in which they begin."""
        return () if self.began is None else self.began.runs

    @property
    def settings(self) -> tuple[str, ...]:
        """The settings, in the order of the file."""
        return tuple(dict.fromkeys(run.setting for run in self.runs))

    def done(self, run: str) -> bool:
        """Whether a run has completed."""
        return run in self.ended and self.ended[run].outcome == "completed"

    def scores(self) -> dict[str, dict[int, float]]:
        """The score of each completed run that has one, by setting and seed."""
        found: dict[str, dict[int, float]] = {setting: {} for setting in self.settings}
        for run in self.runs:
            ended = self.ended.get(run.name)
            score = None if ended is None else ended.test if self.scored_by == "test" else ended.validation
            if score is not None and self.done(run.name):
                found[run.setting][run.seed] = score
        return found

    @property
    def scored_by(self) -> str:
        """What settings are compared by: test or validation."""
        return "" if self.began is None else self.began.score


def evolved(state: SweepState, fact: Fact) -> SweepState:
    """The state after a fact; raises LogDamaged for one that cannot follow."""
    if isinstance(fact, SweepBegan) != (state.began is None):
        raise LogDamaged("the sweep's log does not begin with what was planned, or does so twice")
    if isinstance(fact, RunLaunched | RunEnded):
        return _of_run(state, fact)
    if isinstance(fact, SettingDropped | SettingRestored):
        return _of_setting(state, fact)
    return _of_sweep(state, fact)


def _of_sweep(state: SweepState, fact: SweepBegan | SweepContinued | SweepPaused | SweepCompleted) -> SweepState:
    match fact:
        case SweepBegan():
            return evolve(state, began=fact)
        case SweepContinued():
            return evolve(state, paused=None)
        case SweepPaused():
            return evolve(state, paused=fact)
        case SweepCompleted():
            return evolve(state, completed=True)


def _of_run(state: SweepState, fact: RunLaunched | RunEnded) -> SweepState:
    if state.done(fact.run):
        raise LogDamaged(f"the sweep's log goes on with {fact.run} after it has completed")
    if isinstance(fact, RunEnded):
        return evolve(state, ended={**state.ended, fact.run: fact})
    return evolve(state, launches={**state.launches, fact.run: state.launches.get(fact.run, 0) + 1})


def _of_setting(state: SweepState, fact: SettingDropped | SettingRestored) -> SweepState:
    if isinstance(fact, SettingDropped):
        return evolve(state, dropped={**state.dropped, fact.setting: fact})
    left = {name: drop for name, drop in state.dropped.items() if name != fact.setting}
    return evolve(state, dropped=left, restored=state.restored | {fact.setting}, completed=False)


def folded(facts: Iterable[Fact]) -> SweepState:
    """The state after all of them."""
    state = SweepState()
    for fact in facts:
        state = evolved(state, fact)
    return state
