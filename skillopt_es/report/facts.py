"""All that the page says of a run, read from its log as far as that can be read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar

from attrs import field, frozen

from skillopt_es.audit.blame import BLAME_TYPES, Blame, blame, slots_behind
from skillopt_es.audit.comparisons import solved_in
from skillopt_es.audit.skill_table import TYPES as TABLE_TYPES
from skillopt_es.audit.skill_table import SkillTable, skill_table
from skillopt_es.events.catalog import (
    BY_NAME,
    SKILL_TYPES,
    CandidateBuilt,
    CandidateGated,
    Recorded,
    RunForked,
    RunResumed,
    RunStarted,
    SkillScored,
    StepSkipped,
    names_of,
    skills_in,
)
from skillopt_es.events.inspection import ODD
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import Head
from skillopt_es.events.values import Json, Purpose, SkillTree
from skillopt_es.projections.chains import CHAIN_TYPES, END_TYPES, Chain, EpochEnd, chains, epoch_ends
from skillopt_es.projections.item_results import ItemResults, item_results
from skillopt_es.projections.lineage import TYPES, Lineage, lineage
from skillopt_es.projections.prices import Prices, recorded_prices
from skillopt_es.projections.summary import DETAILS, OVERVIEW, Summary, summarize
from skillopt_es.projections.trust import Attempts, untrusted_attempts
from skillopt_es.projections.usage import UsageSums, UsageThere, usage_of, usage_there
from skillopt_es.runs.durations import Durations, durations, moments_of
from skillopt_es.runs.folders import Status
from skillopt_es.runs.overview import SESSIONS, Spent, spent_in, status_of
from skillopt_es.runs.reading import Reading

T = TypeVar("T")


@frozen(kw_only=True)
class Session:
    """A writer that began, took over or forked the run: the event, when, with which software, and what it changed."""

    seq: int
    at: str
    software: str
    how: str
    settings: Mapping[str, Json] = field(factory=dict)


@frozen(kw_only=True)
class Facts:
    """
    One run; None is what cannot be read or is not there.

    `problems` says what cannot be read and why; the log was read up to event `read`, and ends at event `end`.
    """

    name: str
    run_id: str
    status: Status
    head: Head
    written: str
    read: int
    end: int
    problems: tuple[str, ...]
    summary: Summary
    started: RunStarted | None
    sessions: tuple[Session, ...]
    tree: Lineage
    chains: Mapping[int, Chain]
    ends: Mapping[int, EpochEnd]
    skills: Mapping[str, SkillTree]
    scored: tuple[SkillScored, ...]
    results: ItemResults
    blame: Blame | None
    line_usage: Mapping[str, UsageSums]
    spent: Spent | None
    there: UsageThere | None
    durations: Durations | None
    untrusted: Attempts
    folder: SkillTable | None = None
    solved: Mapping[str, frozenset[str]] = field(factory=dict)
    """By group of failures, the tasks that the optimizer saw solved, for comparison."""

    @property
    def settings(self) -> Mapping[str, Json]:
        """The settings that forks and resumes have changed, by key, as they stand at the end."""
        return {key: value for session in self.sessions for key, value in session.settings.items()}


@frozen
class _Story:
    """What a log tells, read once: the results of items, and all other events that were wanted."""

    records: tuple[Recorded, ...]
    results: ItemResults

    @classmethod
    def of_run(cls, reading: Reading, types: Collection[str], purposes: tuple[Purpose, ...] | None) -> _Story:
        """All of it up to one and the same event, also where the log stops being whole on the way."""
        while True:
            until = reading.until
            records = tuple(reading.read(types=types))
            found = item_results(() if purposes is None else reading.results(purposes))
            if reading.until == until:
                return cls(records, found)

    def of(self, types: Collection[str]) -> Iterator[Recorded]:
        """The events of these types, none of which are rollouts."""
        return (recorded for recorded in self.records if type(recorded.event).__name__ in types)


Depth = Literal["glance", "times", "scores", "items", "story", "skill", "whole"]
"""
How far a run is read: where it stands, its curve and its tests; that, and where its time went, or its verdicts with
the results that scores are made of, or the results of all items; its steps with what led to them; that, and who wrote
its lines; everything.
"""

_GLANCE = {*OVERVIEW, *TYPES, *SESSIONS}
_STORY = {name for name in BY_NAME if name != "RolloutCompleted"}
_READ: Mapping[Depth, Collection[str]] = {
    "glance": _GLANCE,
    "times": _GLANCE,
    "scores": {*_GLANCE, *names_of((CandidateBuilt, CandidateGated, StepSkipped))},
    "items": _GLANCE,
    "story": _STORY,
    "skill": _STORY,
    "whole": _STORY,
}
_RESULTS: Mapping[Depth, tuple[Purpose, ...]] = {"scores": ("selection", "test"), "items": (), "whole": ()}
"""Which results are read, all where none is named: then each one's hash is checked."""
_TESTED: tuple[Purpose, ...] = ("test",)
_TIMED = ("times", "story", "whole")
_TOLD = ("scores", "story", "skill", "whole")  # with the chains of their steps
_WRITTEN = ("skill", "whole")


def facts_of(reading: Reading, folder: Path, depth: Depth = "whole") -> Facts:
    """The facts of a run, up to the first damage of its log; what is deeper than asked for is left empty."""
    story = _Story.of_run(reading, _READ[depth], _RESULTS.get(depth))
    problems: list[str] = [] if reading.problem is None else [str(reading.problem)]
    sessions = list(story.of(SESSIONS))
    prices = recorded_prices(recorded.event for recorded in sessions)
    summary = summarize(recorded.event for recorded in story.of(DETAILS))
    # Of the many rollouts, those that say so are found without reading the others.
    untrusted = reading.read(types=("RolloutCompleted",), mentioning="untrusted") if depth in _WRITTEN else ()
    found = blame(story.of(BLAME_TYPES)) if depth in _WRITTEN else None
    there = usage_there(recorded.event for recorded in story.of(("RunImported", "StepImported")))
    own = there is None
    spent = _tried(lambda: spent_in(reading, strict=True), "calls and tokens", problems) if own else None
    by_slot = _tried(lambda: _usage_by_slot(found, reading, prices), "what lines cost", problems) if spent else None
    timed = own and depth in _TIMED
    times = (
        _tried(lambda: durations(moments_of(reading.log.reader, reading.until)), "times", problems) if timed else None
    )
    deep = depth in _TOLD
    started = next((row.event for row in sessions if isinstance(row.event, RunStarted)), None)
    # Only such a run is read twice: what was opened has to be seen beside what was there then.
    of_folder = depth in _WRITTEN and started is not None and started.skill.is_folder
    told = found.chains if found is not None else chains(story.of(CHAIN_TYPES)) if deep else {}
    groups = [group for chain in told.values() if chain.groups is not None for group in chain.groups.event.groups]
    return Facts(
        name=reading.run.name,
        run_id=reading.run.run_id,
        status=status_of(summary, folder),
        head=reading.head(),
        written=_last_moment(reading),
        read=reading.until,
        end=reading.end,
        problems=tuple(problem.replace(f"{folder}/", "") for problem in problems),
        summary=summary,
        started=started,
        sessions=tuple(_sessions(sessions)),
        tree=lineage(story.of(TYPES)),
        chains=told,
        ends=epoch_ends(story.of(END_TYPES)) if deep else {},
        skills={skill.hash: skill for recorded in story.of(SKILL_TYPES) for skill in skills_in(recorded.event)},
        scored=tuple(_scored(story.of(("SkillScored",)))),
        results=item_results(reading.results(_TESTED)) if depth == "glance" and summary.tests else story.results,
        blame=found,
        line_usage=by_slot or {},
        spent=spent,
        there=there,
        durations=times,
        untrusted=untrusted_attempts(untrusted),
        folder=skill_table(reading.read(types=TABLE_TYPES)) if of_folder else None,
        solved=solved_in(groups, reading) if started is not None else {},
    )


def _tried(read: Callable[[], T], what: str, problems: list[str]) -> T | None:
    """What can be read beside the events; None, and why, where it cannot."""
    try:
        return read()
    except ODD as error:
        problems.append(f"{what} cannot be read: {error}")
        return None


def _last_moment(reading: Reading) -> str:
    rows = list(reading.read(after=reading.until - 1)) if reading.until else []
    return rows[-1].recorded_at if rows else reading.run.created_at


def _sessions(records: Sequence[Recorded]) -> Iterator[Session]:
    for recorded in records:
        event, how = recorded.event, ""
        settings: Mapping[str, Json] = {}
        match event:
            case RunStarted():
                how = "began"
            case RunForked():
                how = f"forked from {event.parent} after event {event.seq:,}"
            case RunResumed():
                how = "went on"
            case _:
                continue
        if not isinstance(event, RunStarted):
            settings = {setting.key: setting.value for setting in event.overrides}
        yield Session(seq=recorded.seq, at=recorded.recorded_at, software=event.software, how=how, settings=settings)


def _scored(records: Iterable[Recorded]) -> Iterator[SkillScored]:
    yield from (recorded.event for recorded in records if isinstance(recorded.event, SkillScored))


def _usage_by_slot(found: Blame | None, reading: Reading, prices: Prices) -> dict[str, UsageSums]:
    """The cost of the calls of each slot that led to a line."""
    if found is None:
        return {}
    journal = Journal(reading.log.reader)
    return {slot: usage_of(journal.attempts(slot), prices).total for slot in sorted(slots_behind(found))}
