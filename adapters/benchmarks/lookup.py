"""Looking wanted ids up in downloaded tables, with an error for what is there twice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from skillopt_es.adapters.benchmarks.plan import Fields
from skillopt_es.adapters.benchmarks.tables import Row, table_rows
from skillopt_es.adapters.environments.data import RawItem
from skillopt_es.errors import DataError

FIRST = 5


def named(ids: Iterable[str]) -> str:
    """How many, and the first few."""
    listed = [*ids]
    more = f" and {len(listed) - FIRST} more" if len(listed) > FIRST else ""
    return f"{', '.join(listed[:FIRST])}{more}"


def looked_up(
    files: Iterable[Path],
    wanted: Mapping[str, RawItem],
    *,
    key: str,
    make: Callable[[Row, RawItem, str], Fields],
) -> dict[str, Fields]:
    """The wanted items that the tables have, by id; `make` gets a row, the entry of the id list and the row's place."""
    found: dict[str, Fields] = {}
    places: dict[str, str] = {}
    seen: set[str] = set()
    for file in files:
        for where, row in table_rows(file):
            seen.update(row)
            name = row.get(key)
            if isinstance(name, bool) or not isinstance(name, str | int) or str(name) not in wanted:
                continue
            item = str(name)
            if item in found:
                raise DataError(
                    f"{where}: {key} {item} is already at {places[item]}",
                    hint="keep one copy of the data in the folder",
                )
            found[item], places[item] = make(row, wanted[item], where), where
    if wanted and not found and key not in seen:
        columns = ", ".join(sorted(seen)) or "none"
        raise DataError(f"no table has the column `{key}`", hint=f"columns that were found: {columns}")
    return found
