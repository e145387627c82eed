"""
Many rows by few statements.

sqlite3 gives up the interpreter's lock at every step of a statement, and with a busy event loop in another thread each
step then waits to get it back. A statement of many rows has one step, so a whole group is written in a handful.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain

Cell = str | int | bytes | None
Row = tuple[Cell, ...]

_LARGEST = 64


def insert_rows(connection: sqlite3.Connection, table: str, rows: Sequence[Row]) -> None:
    """Inserts the rows in their order, in statements of 64, 32, 16 … rows so that few have to be prepared."""
    start = 0
    while start < len(rows):
        size = min(_LARGEST, 1 << ((len(rows) - start).bit_length() - 1))
        part = rows[start : start + size]
        connection.execute(_statement(table, len(part[0]), size), tuple(chain.from_iterable(part)))
        start += size


def which_of(connection: sqlite3.Connection, table: str, column: str, keys: Iterable[Cell]) -> set[Cell]:
    """Those of the keys that a column of the table has; some are asked for twice, so that few statements suffice."""
    wanted, found = list(keys), set[Cell]()
    for start in range(0, len(wanted), _LARGEST):
        part = wanted[start : start + _LARGEST]
        size = 1 << (len(part) - 1).bit_length()
        rows = connection.execute(_question(table, column, size), part + part[:1] * (size - len(part)))
        found.update(key for (key,) in rows.fetchall())
    return found


@cache
def _question(table: str, column: str, count: int) -> str:
    marks = ",".join("?" * count)
    return f"select {column} from {table} where {column} in ({marks})"  # noqa: S608 -- our own names, no data


@cache
def _statement(table: str, width: int, count: int) -> str:
    one = f"({','.join('?' * width)})"
    return f"insert into {table} values {','.join([one] * count)}"  # noqa: S608 -- our own table names, no data
