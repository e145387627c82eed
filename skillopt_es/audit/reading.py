"""What can be read of a log that may be damaged: all that comes before the first damage, which is named."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import cast

from attrs import define, field

from skillopt_es.events.anchor import ANCHOR_FILE, read_anchor
from skillopt_es.events.catalog import BY_NAME, Recorded, RunStarted
from skillopt_es.events.errors import LogDamaged, LogError, LogTooNew
from skillopt_es.events.log import EventLog

_GAP = (
    "select before + 1 from (select seq, lag(seq, 1, 0) over (order by seq) as before from events)"
    " where seq <> before + 1 order by seq limit 1"
)
_LONGEST = 500  # characters of a text that every event with it holds itself, not a blob


@define
class Reading:
    """A log up to `until`, where it stops being whole; `problem` is the first damage met, also met while reading."""

    log: EventLog
    until: int = 0
    head: int = 0
    problem: LogError | None = None
    _first: RunStarted | None = field(default=None, alias="first")

    @classmethod
    def of(cls, log: EventLog, folder: Path) -> Reading:
        """A log as it is now, with what is missing from it."""
        reading = cls(log)
        try:
            reading._look(folder)
        except LogError as error:
            reading.until = reading.head = reading.until or log.head().seq
            reading.problem = reading.problem or error
        return reading

    def events(
        self, types: Collection[str] | None = None, *, after: int = 0, until: int | None = None, mentioning: str = ""
    ) -> Iterator[Recorded]:
        """The events as far as they can be read; the log's damage, if any, is then in `problem`."""
        last = self.until if until is None else min(until, self.until)
        part = mentioning if len(mentioning) <= _LONGEST else ""
        try:
            yield from self.log.read(after, last, types, part)
        except (LogDamaged, LogTooNew) as error:
            self.problem = self.problem or error
            seq = getattr(error, "seq", None)
            self.until = self.until if seq is None else min(self.until, seq - 1)

    @property
    def started(self) -> RunStarted:
        """How the run began; raises what is wrong where not even that can be read."""
        if self._first is None:
            for recorded in self.events(until=1):
                assert isinstance(recorded.event, RunStarted)
                self._first = recorded.event
        if self._first is None:
            raise self.problem or LogDamaged(f"{self.log.run.name} has no event yet", hint="the run has not begun")
        return self._first

    def _look(self, folder: Path) -> None:
        """The end of the log, the first gap in it, what its anchor misses, and types that are newer than we are."""
        rows = self.log.reader.rows("select type, count(*), max(seq) from events group by type order by type")
        counts = cast("list[tuple[str, int, int]]", rows)
        self.until = self.head = max((last for _, _, last in counts), default=0)
        if sum(count for _, count, _ in counts) != self.head:
            [(gap,)] = cast("list[tuple[int]]", self.log.reader.rows(_GAP))
            self.until = gap - 1
            self.problem = LogDamaged(f"event {gap} is missing from the log", seq=gap)
        unknown = [str(kind) for kind, _, _ in counts if kind not in BY_NAME]
        if unknown and self.problem is None:
            self.problem = LogTooNew(
                f"the log has events of a type this software does not know ({', '.join(unknown[:3])})",
                hint="a newer version wrote it; what is shown leaves them out",
            )
        anchor = read_anchor(folder)
        if anchor is not None and anchor.seq > self.head and self.problem is None:
            self.problem = LogDamaged(
                f"the log ends at event {self.head}, but {ANCHOR_FILE} says that there were {anchor.seq}"
            )
