"""
The door to a run's log: nobody else opens one to read it.

`whole_log` is for whoever uses what it says: it refuses a damaged log. `Reading.of` is for whoever shows it: it gives
what comes before the first damage, which is named in `problem`, and must be looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar, cast

from attrs import define, field

from skillopt_es.errors import NotInRun
from skillopt_es.events.catalog import BY_NAME, Recorded, RunStarted, only
from skillopt_es.events.chain import first_break
from skillopt_es.events.ends import Ends, said_ends
from skillopt_es.events.errors import LogDamaged, LogError, LogTooNew, LogUnreadable
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog, Head, RunInfo
from skillopt_es.events.results import Result, results
from skillopt_es.events.schema import missing_bytes
from skillopt_es.events.values import Purpose

_TYPES = "select distinct type from events order by type"
_GAP = (
    "select before + 1 from (select seq, lag(seq, 1, 0) over (order by seq) as before from events)"
    " where seq <> before + 1 order by seq limit 1"
)
T = TypeVar("T")
_LONGEST = 500  # characters of a text that every event with it holds itself, not a blob


@define
class Reading:
    """A log up to `until`, where it stops being whole; `problem` is the first damage met, also met while reading."""

    log: EventLog
    until: int = 0
    end: int = 0
    cut_short: bool = False  # something was asked for that could be read in part only
    _problem: LogError | None = None
    _seen: bool = False  # somebody has asked whether there is a problem
    _first: RunStarted | None = field(default=None, alias="first")

    @classmethod
    @contextmanager
    def of(cls, folder: Path, *, framed: bool = False) -> Iterator[Reading]:
        """
        A run's log as it is now, to show it; what is asked for in vain then says, too, that the log is damaged.

        At its end it raises a problem that was not asked for. `framed` is for a part of a page that says it elsewhere.
        """
        with EventLog.open(folder) as log:
            reading = cls(log)
            try:
                reading._look(folder)
            except LogUnreadable:
                raise
            except LogError as error:
                reading.meet(error)
            try:
                yield reading
            except NotInRun as error:
                if reading.problem is not None:
                    error.hint = f"the log can be read to event {reading.until} only: {reading.problem}"
                    error.exit_code = 1  # it may have been there
                raise
            if not (reading._seen or framed):
                reading.check()

    @property
    def problem(self) -> LogError | None:
        """What is wrong with the log, as far as it is known by now."""
        self._seen = True
        return self._problem

    @property
    def is_whole(self) -> bool:
        """Whether nothing wrong is known by now; whoever shows the log still has to ask for the problem."""
        return self._problem is None

    def check(self, until: int | None = None) -> None:
        """Raises what is wrong with the log; with `until`, only where events up to that one are missing."""
        if self._problem is not None and (until is None or self.until < until):
            raise self._problem
        self._seen = True

    def meet(self, problem: LogError) -> None:
        """Keeps the first problem: a later one may be its consequence."""
        if self._problem is None:
            self._problem, self._seen = problem, False

    def read(
        self, after: int = 0, until: int | None = None, types: Collection[str] | None = None, mentioning: str = ""
    ) -> Iterator[Recorded]:
        """The events as far as they can be read; the log's damage, if any, is then in `problem`."""
        last = self.until if until is None else min(until, self.until)
        part = mentioning if len(mentioning) <= _LONGEST else ""
        try:
            for recorded in self.log.read(after, last, types, part):
                after = recorded.seq
                yield recorded
        except (LogDamaged, LogTooNew) as error:
            if isinstance(error, LogDamaged) and error.seq is None:
                yield from self._one_by_one(types, after, last, part)
            else:
                self._stop(error, after)

    def results(self, purposes: Collection[Purpose] = ()) -> Iterator[Result]:
        """The results of single items, of these purposes or all, as far as they can be read."""
        last = 0
        try:
            for result in results(self.log, self.until, purposes):
                last = result.seq
                yield result
        except (LogDamaged, LogTooNew) as error:
            self._stop(error, last)

    def _one_by_one(self, types: Collection[str] | None, after: int, last: int, mentioning: str) -> Iterator[Recorded]:
        """Where a page of the file is broken, those before it may be whole, though not all can be asked for at once."""
        for seq in range(after, last):
            try:
                yield from self.log.read(seq, seq + 1, types, mentioning)
            except (LogDamaged, LogTooNew) as error:
                self._stop(error, seq)
                return

    def whole(self, rows: Iterable[T]) -> Iterator[T]:
        """Rows of another table as far as they can be read; what is wrong with the rest is then in `problem`."""
        try:
            yield from rows
        except LogUnreadable:
            raise
        except LogError as error:
            self.cut_short = True
            self.meet(error)

    def _stop(self, error: LogDamaged | LogTooNew, after: int) -> None:
        """Nothing more is to be read: an event that does not say its number comes after those that were."""
        seq = error.seq if isinstance(error, LogDamaged) else None
        self.cut_short = True
        self.meet(error)
        self.until = min(self.until, after if seq is None else seq - 1)

    @property
    def run(self) -> RunInfo:
        """The run that the log belongs to."""
        return self.log.run

    def last_written(self) -> str:
        """When the last event was recorded; when the run was created, where there is none that can be read."""
        try:
            row = self.log.reader.row("select recorded_at from events order by seq desc limit 1")
        except LogDamaged:
            row = None
        return self.run.created_at if row is None else str(row[0])

    def calls(self) -> int:
        """How many calls of the journal asked somebody, as far as it can be told."""
        try:
            return Journal(self.log.reader).asked()
        except LogDamaged as error:
            self.meet(error)
            return 0

    def head(self) -> Head:
        """Where the log ends; without a hash where the last event cannot be read, and only its anchor knows."""
        try:
            return self.log.head()
        except LogDamaged:
            return Head(self.end, "")

    @property
    def started(self) -> RunStarted:
        """How the run began; raises what is wrong where not even that can be read."""
        if self._first is None:
            self._first = next((event for _, event in only(RunStarted, self.read(until=1))), None)
        if self._first is None:
            raise self._problem or LogDamaged(f"{self.log.run.name} has no event yet", hint="the run has not begun")
        return self._first

    def _look(self, folder: Path) -> None:
        """The end of the log, the first gap in it, what is missing at its end, and types that are newer than we are."""
        ends = self.look_at_end(folder)
        self._look_at_calls(ends)
        gap = first_break(self.log.reader.rows, "events", self.run.first_prev_hash)
        if gap is not None and gap <= self.end:
            there = self.log.reader.row("select 1 from events where seq = ?", (gap - 1,)) is not None or gap == 1
            first = gap if there else self._gap()
            self.until = first - 1
            why = "does not follow its predecessor" if there else "is missing from the log"
            self.meet(LogDamaged(f"event {first} {why}", seq=first))
        rows = self.log.reader.rows(_TYPES)  # a writer may be at work
        unknown = [str(kind) for (kind,) in rows if kind not in BY_NAME]
        if unknown:
            self.meet(LogTooNew(f"the log has events of a type this software does not know ({', '.join(unknown[:3])})"))

    def _gap(self) -> int:
        [(gap,)] = cast("list[tuple[int]]", self.log.reader.rows(_GAP))
        return gap

    def look_at_end(self, folder: Path) -> Ends:
        """Where the log ends, and whether that is as its file and the files beside it, whose word is returned, say."""
        ends = said_ends(folder)
        missing = missing_bytes(self.log.path)
        if missing:
            self.meet(LogDamaged(f"{self.log.path} was cut: its last {missing:,} bytes are missing"))
        # Should the log's own end be unreadable, this is what is known of it.
        self.until = self.end = ends.furthest[0]
        self.until = self.end = self.log.head().seq
        last = self.log.reader.row("select coalesce(max(n), 0) from calls")
        here = (self.end, cast("int", last[0]) if last else 0)
        for name, said in ends.said:
            if said.seq > self.end and said.run_id == self.run.run_id:
                self.meet(LogDamaged(f"the log ends at event {self.end}, but {name} says that there were {said.seq}"))
        if ends.furthest[1] > here[1]:
            self._miss_calls(ends.furthest[1] - here[1], ends.furthest[1])
        for wrong in ends.missing(self.run.run_id, self.log.hash_at, here):
            self.meet(LogDamaged(wrong.message))
        return ends

    def _miss_calls(self, missing: int, end: int) -> None:
        self.meet(LogDamaged(f"{missing:,} of {end:,} calls are missing from the journal"))

    def _look_at_calls(self, ends: Ends) -> None:
        """Whether calls are missing from the journal, in the middle or at its end, or do not follow each other."""
        try:
            [(count, last)] = self.log.reader.rows("select count(*), coalesce(max(n), 0) from calls")
            there, end = int(count or 0), max(int(last or 0), ends.furthest[1])
            broken = first_break(self.log.reader.rows, "calls", self.run.first_prev_hash)
        except LogDamaged as error:
            self.meet(error)
            return
        if there < end:
            self._miss_calls(end - there, end)
        elif broken is not None:
            self.meet(LogDamaged(f"call {broken} does not follow call {broken - 1}"))


@contextmanager
def whole_log(folder: Path, until: int | None = None) -> Iterator[EventLog]:
    """
    A run's log, for whoever uses what it says: raises LogError where any of it is missing or not what was written.

    With `until` only what comes after that event may be damaged. A changed row is met when it is read.
    """
    with Reading.of(folder) as reading:
        reading.check(until)
        yield reading.log
