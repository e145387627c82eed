"""Reading a log's tables, with SQLite's complaints turned into errors a user can act on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from skillopt_es.events.faults import QUERY_ERRORS, sqlite_fault
from skillopt_es.events.schema import LOG_FILE, open_reader_connection
from skillopt_es.events.values import Cell

ROWS = 1000
"""Rows of one query: so many events take half a megabyte (507 bytes each, in the mean of 23,112)."""

# What STRICT tables give back; only a damaged file could give anything else, and then no hash matches.
Columns = tuple[Cell, ...]


class Reader:
    """A read-only connection to one log."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / LOG_FILE
        self.lenient = False
        self._connection = open_reader_connection(self.path)

    def take_any_text(self) -> None:
        """From now on gives texts that are no longer UTF-8, too, with marks in them; it costs a call for each text."""
        self.lenient = True
        self._connection.text_factory = lambda raw: raw.decode(errors="surrogateescape")

    def rows(self, sql: str, values: Sequence[Cell] = ()) -> list[Columns]:
        """All rows of a query, at once: a query left open would keep the write-ahead log from being emptied."""
        try:
            return self._connection.execute(sql, values).fetchall()
        except QUERY_ERRORS as error:
            raise sqlite_fault(error, self.path) from error

    def row(self, sql: str, values: Sequence[Cell] = ()) -> Columns | None:
        """The first row of a query, if any."""
        rows = self.rows(sql, values)
        return rows[0] if rows else None

    def define(self, name: str, function: Callable[..., bool]) -> None:
        """Lets queries ask a function of ours about a row, which saves fetching it."""
        self._connection.create_function(name, -1, function, deterministic=True)

    def hold(self) -> None:
        """Sees the log as it is now until it is closed, whatever a writer appends meanwhile."""
        self.rows("begin")
        # A transaction sees nothing before its first query.
        self.rows("select count(*) from sqlite_master")

    def close(self) -> None:
        """Gives the file back."""
        self._connection.close()
