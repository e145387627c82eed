"""Runs at a glance: where each one of a directory stands, read from the few events that say so."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from attrs import evolve, frozen

from skillopt_es.events.catalog import CandidateGated, Recorded, RunForked, RunStarted, TrainingStopped
from skillopt_es.events.errors import LogDamaged, LogError, LogUnreadable
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.verify import Problem, VerifyReport
from skillopt_es.projections.prices import Prices, recorded_prices
from skillopt_es.projections.summary import DETAILS, OVERVIEW, OpenStep, Summary, summarize
from skillopt_es.projections.usage import Ahead, AheadTally, RunUsage, crashes, usage_of
from skillopt_es.runs.folders import Status, run_folders, status_now
from skillopt_es.runs.kept import (
    MISFITS,
    OVERVIEW_FILE,
    SUMS_FILE,
    WORTH_IT,
    converter,
    is_true,
    keep_overview,
    keep_sums,
    kept_overview,
    kept_sums,
    with_later,
)
from skillopt_es.runs.reading import Reading


@frozen(kw_only=True)
class Overview:
    """
    One run: what its log says, whether somebody is writing it, and what is wrong with it, if anything.

    `cost` is its own, of a run whose config has prices in a `currency`; not whole, it is a lower bound. `bests` is what
    the best skill was worth after each step, thinned out in a long run; `task` is the environment that it names.
    """

    folder: Path
    status: Status
    summary: Summary
    events: int
    calls: int
    written: str
    problem: str
    currency: str = ""
    cost: float | None = None
    cost_is_whole: bool = True
    bests: tuple[float | None, ...] = ()
    task: str = ""


_MOST_BESTS = 60  # of what the best was worth: a line as wide as a word has no room for more


@frozen
class Unreadable:
    """A folder with a log that cannot be read, and why."""

    folder: Path
    why: str


def overview(folder: Path) -> Overview:
    """Where a run stands, as far as its log is whole; raises LogError for one of which nothing can be read."""
    with EventLog.open(folder) as log:
        reading = Reading(log)
        reading.look_at_end(folder)
        events = [recorded.event for recorded in reading.read(types=OVERVIEW)]
        if not events and reading.problem is not None:
            raise reading.problem
        used = spent_in(reading) if recorded_prices(events).currency else None  # only prices are worth all calls
        summary = summarize(events)
        started = next((event for event in events if isinstance(event, RunStarted)), None)
        found = _overview(reading, folder, _slim(summary), used)
        return evolve(found, bests=_bests(summary), task=task_of(started))


def task_of(started: RunStarted | None) -> str:
    """The name of the environment that a run was begun with; empty where it does not say."""
    settings = None if started is None else started.config.get("env")
    name = settings.get("name") if isinstance(settings, dict) else None
    return name if isinstance(name, str) else ""


def _bests(summary: Summary) -> tuple[float | None, ...]:
    """The best skill's value after each step, the last one always among them."""
    values = [line.best for line in summary.step_lines]
    every = -(-len(values) // _MOST_BESTS) or 1
    return tuple(reversed(values[::-1][::every]))


def _slim(summary: Summary) -> Summary:
    """What is shown of one run among many: no steps, and of the evaluations those of the texts that count."""
    texts = (summary.initial, summary.current.skill, summary.best.skill)
    told = (line for line in summary.evaluations if line.purpose == "test" or line.skill in texts)
    lines = tuple(evolve(line, by_type={}) for line in told)
    return evolve(summary, lines=(), evaluations=lines, open=OpenStep(), slow=None, steered=(), splits=None)


def _overview(reading: Reading, folder: Path, summary: Summary, used: Spent | None) -> Overview:
    money = used.usage.total.cost if used is not None and used.currency else None
    return Overview(
        folder=folder,
        status=status_of(summary, folder),
        summary=summary,
        events=reading.end,
        calls=reading.calls(),
        written=reading.last_written(),
        problem="" if reading.problem is None else str(reading.problem),
        currency="" if used is None else used.currency,
        cost=None if money is None or money.known is None else float(money.known),
        cost_is_whole=money is None or not money.unknown,
    )


def status_of(summary: Summary, folder: Path) -> Status:
    """Where a run stands now; an evaluation that nobody is writing and that has a score is done."""
    status = status_now(summary.status, folder)
    return "scored" if status == "stopped" and summary.is_evaluation and summary.tests else status


def overviews(directory: Path) -> list[Overview | Unreadable]:
    """All runs of a directory, the most recently written last."""
    return [_looked_at(folder) for folder in run_folders(directory)]


def _looked_at(folder: Path) -> Overview | Unreadable:
    found = known_overview(folder)
    try:
        return read_and_kept(folder) if found is None else found
    except LogError as error:
        return Unreadable(folder, error.message)


def read_and_kept(folder: Path) -> Overview:
    """Where a run stands, read from its log; kept beside a log that is whole and at rest."""
    found = overview(folder)
    if not found.problem:
        keep_overview(folder, converter.unstructure(evolve(found, folder=Path(folder.name))))
    return found


def known_overview(folder: Path) -> Overview | None:
    """The overview that is kept of a run, with what may have changed since; None where none can be believed."""
    value = kept_overview(folder)
    if value is None:
        return None
    try:
        found: Overview = converter.structure(value, Overview)
    except MISFITS:
        return None
    return evolve(found, folder=folder, status=status_of(found.summary, folder))


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


def inherited_calls(sessions: Iterable[Recorded]) -> int:
    """How many calls came along from the parent of a fork, by the events that say who wrote a log."""
    forks = [recorded.event for recorded in sessions if isinstance(recorded.event, RunForked)]
    return forks[-1].inherited if forks else 0


def spent(folder: Path) -> Spent:
    """The usage of a run, from its journal and the prices it has recorded; raises LogError for one it cannot read."""
    with Reading.of(folder) as reading:
        found = spent_in(reading)
        reading.check()
        return found


def spent_in(reading: Reading, *, strict: bool = False) -> Spent:
    """
    The usage of a run as far as it can be read; what is wrong with its log is in `reading.problem`.

    With `strict` it raises LogError where the journal cannot be read to its end.
    """
    sessions = list(reading.read(types=SESSIONS))
    prices = recorded_prices(recorded.event for recorded in sessions)
    inherited = inherited_calls(sessions)
    tally = AheadTally()
    usage = _used(reading, inherited, tally, prices, strict=strict)
    verdicts = [recorded.event for recorded in reading.read(types=("CandidateGated", "TrainingStopped"))]
    stops = [event.step for event in verdicts if isinstance(event, TrainingStopped)]
    taken = {gate.step for gate in verdicts if isinstance(gate, CandidateGated) and gate.verdict.taken}
    return Spent(
        usage=usage,
        ahead=tally.result(taken, prices, last_step=stops[-1] if stops else None),
        currency=prices.currency,
        crashes=crashes(sessions),
        inherited=inherited,
    )


def _used(reading: Reading, after: int, tally: AheadTally, prices: Prices, *, strict: bool) -> RunUsage:
    """What the calls after number `after` came to, as far as they are what was recorded."""
    log, folder = reading.log, reading.log.path.parent
    journal = Journal(log.reader)
    try:
        kept = kept_sums(folder, log, after)
        changed = journal.first_changed(kept.calls)
        until = len(journal) if changed is None else changed - 1
        if changed is not None:
            damage = LogDamaged(f"call {changed} was changed after it was recorded")
            if strict:
                raise damage
            reading.meet(damage)
        if journal.has_ahead():  # then each call matters, and which one came first
            return usage_of(tally.passing(journal.charges(after, until)), prices)
        known, kept = kept.calls, with_later(kept, log, until)
        if until - known >= WORTH_IT and reading.is_whole:
            keep_sums(folder, kept)
        return usage_of(tally.passing(journal.charges(after, until, plain=False)), prices, kept.sums)
    except LogUnreadable:
        raise
    except LogError as error:
        if strict:
            raise
        reading.meet(error)
        return usage_of(())


@frozen(kw_only=True)
class Detailed:
    """One run in full: its summary from all events, and its first one; of a damaged log, what can be read."""

    overview: Overview
    started: RunStarted | None
    spent: Spent

    @property
    def drawn_again(self) -> bool:
        """Whether texts were drawn more than once for the gate, so that it can be told how much items flip."""
        summary = self.overview.summary
        again = any(line.purpose == "selection" and line.repeat != 1 for line in summary.evaluations)
        return again and summary.imported is None


def detailed(reading: Reading, folder: Path) -> Detailed:
    """A run with every number of every line; what is wrong with its log is in `reading.problem`."""
    full = summarize(recorded.event for recorded in reading.read(types=DETAILS))
    first = next(reading.read(until=1), None)
    if first is None and reading.problem is not None:
        raise reading.problem
    started = first.event if first is not None and isinstance(first.event, RunStarted) else None
    used = spent_in(reading)
    return Detailed(overview=_overview(reading, folder, full, used), started=started, spent=used)


_CHANGED = "it does not say what the log says: it was changed; remove it, and it is rebuilt"


def with_kept(report: VerifyReport, folder: Path) -> VerifyReport:
    """A report on a log, with what is wrong with the files that save reading it; of a damaged log as it is."""
    if not report.ok:
        return report
    # An overview is made with the help of the sums, so with wrong sums nothing can be said of it.
    wrong = SUMS_FILE if _has_wrong_sums(folder) else OVERVIEW_FILE if _has_wrong_overview(folder) else ""
    return evolve(report, ok=False, problems=(Problem(wrong, _CHANGED),)) if wrong else report


def _has_wrong_sums(folder: Path) -> bool:
    with EventLog.open(folder) as log:
        inherited = inherited_calls(log.read(types=SESSIONS))
        return not is_true(kept_sums(folder, log, inherited), log)


def _has_wrong_overview(folder: Path) -> bool:
    known = known_overview(folder)
    return known is not None and overview(folder) != known and known_overview(folder) == known  # no writer came by
