"""Runs at a glance: where each one of a directory stands, read from the few events that say so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from attrs import evolve, frozen

from skillopt_es.events.catalog import CandidateGated, Recorded, RunForked, RunStarted
from skillopt_es.events.errors import LogError
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import NOT_TAKEN
from skillopt_es.liveness import Status, status_now
from skillopt_es.projections.ahead import Ahead, AheadTally
from skillopt_es.projections.prices import recorded_prices
from skillopt_es.projections.summary import DETAILS, OVERVIEW, Summary, summarize
from skillopt_es.projections.usage import RunUsage, crashes, usage_of
from skillopt_es.runs import run_folders


@frozen(kw_only=True)
class Overview:
    """One run: what its log says, and whether somebody is writing it."""

    folder: Path
    status: Status
    summary: Summary
    events: int
    calls: int
    written: str


@frozen
class Unreadable:
    """A folder with a log that cannot be read, and why."""

    folder: Path
    why: str


def overview(folder: Path) -> Overview:
    """Where a run stands; raises LogError for one that cannot be read."""
    with EventLog.open(folder) as log:
        last = log.reader.row("select seq, recorded_at from events order by seq desc limit 1")
        summary = summarize(recorded.event for recorded in log.read(types=OVERVIEW))
        return Overview(
            folder=folder,
            status=status_of(summary, folder),
            summary=summary,
            events=0 if last is None else int(str(last[0])),
            calls=len(Journal(log.reader)),
            written=log.run.created_at if last is None else str(last[1]),
        )


def status_of(summary: Summary, folder: Path) -> Status:
    """Where a run stands now; an evaluation that nobody is writing and that has a score is done."""
    status = status_now(summary.status, folder)
    return "scored" if status == "stopped" and summary.is_evaluation and summary.tests else status


def overviews(directory: Path) -> list[Overview | Unreadable]:
    """All runs of a directory, the most recently written last."""
    found: list[Overview | Unreadable] = []
    for folder in run_folders(directory):
        try:
            found.append(overview(folder))
        except LogError as error:
            found.append(Unreadable(folder, error.message))
    return found


@frozen(kw_only=True)
class Spent:
    """
    What a run has used so far: calls and tokens, and money in a currency (empty when no prices are known).

    Of a fork only what it used itself; `inherited` is how many calls came along from its parent.
    """

    usage: RunUsage
    ahead: Ahead
    currency: str
    crashes: int
    inherited: int = 0


SESSIONS = ("RunStarted", "RunForked", "RunPaused", "RunResumed")
"""The events that say who wrote a log, and at which prices."""


def spent(folder: Path) -> Spent:
    """The usage of a run, from its journal and the prices it has recorded; raises LogError for one it cannot read."""
    with EventLog.open(folder) as log:
        gates = log.read(types=("CandidateGated",))
        return spent_of(Journal(log.reader), list(log.read(types=SESSIONS)), gates)


def spent_of(journal: Journal, sessions: Sequence[Recorded], gates: Iterable[Recorded]) -> Spent:
    """The same from a journal and the events of SESSIONS and the gates; raises LogError for what cannot be read."""
    prices = recorded_prices(recorded.event for recorded in sessions)
    forks = [recorded.event for recorded in sessions if isinstance(recorded.event, RunForked)]
    inherited = forks[-1].inherited if forks else 0
    tally = AheadTally()
    usage = usage_of(tally.passing(journal.read(after=inherited)), prices)
    verdicts = [recorded.event for recorded in gates]
    taken = {gate.step for gate in verdicts if isinstance(gate, CandidateGated) and gate.action not in NOT_TAKEN}
    return Spent(
        usage=usage,
        ahead=tally.result(taken, prices),
        currency=prices.currency,
        crashes=crashes(sessions),
        inherited=inherited,
    )


@frozen(kw_only=True)
class Detailed:
    """One run in full: its summary from all events, and its first one."""

    overview: Overview
    started: RunStarted | None
    spent: Spent

    @property
    def drawn_again(self) -> bool:
        """Whether texts were drawn more than once for the gate, so that it can be told how much items flip."""
        summary = self.overview.summary
        again = any(line.purpose == "selection" and line.draw != 1 for line in summary.evaluations)
        return again and summary.imported is None


def detailed(folder: Path) -> Detailed:
    """A run with every number of every line; raises LogError for one that cannot be read."""
    with EventLog.open(folder) as log:
        first = next(log.read(until=1), None)
        full = summarize(recorded.event for recorded in log.read(types=DETAILS))
    short = overview(folder)
    started = first.event if first is not None and isinstance(first.event, RunStarted) else None
    return Detailed(overview=evolve(short, summary=full), started=started, spent=spent(folder))
