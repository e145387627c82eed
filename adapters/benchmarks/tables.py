"""Rows of downloaded tables: JSON, JSON Lines, CSV, Parquet where pyarrow is installed; and the rows of wanted ids."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import cast

from skillopt_es.adapters.benchmarks.plan import Fields
from skillopt_es.adapters.environments.csv_rows import read_csv_rows, texts_of
from skillopt_es.adapters.environments.data import RawItem, read_rows
from skillopt_es.errors import DataError, extra_hint
from skillopt_es.events.plain import open_plain
from skillopt_es.events.values import Json

SUFFIXES = (".parquet", ".jsonl", ".json", ".csv")
_BATCH = 256  # rows at once in memory: with pictures of a megabyte in each, a file read whole would be gigabytes
Row = Mapping[str, object]


def table_files(folder: Path, *, suffixes: Iterable[str] = SUFFIXES) -> list[Path]:
    """The tables in a folder and below it, by path; raises DataError when there is none."""
    if not folder.exists():
        raise DataError(f"there is no folder {folder}", hint="name the folder that you downloaded into with --from")
    known = tuple(suffixes)
    inside = [folder] if folder.is_file() else sorted(folder.rglob("*"))
    files = [path for path in inside if path.suffix in known and path.is_file() and not path.name.startswith(".")]
    if not files:
        raise DataError(
            f"{folder}: no {', '.join(known)} file in it or below",
            hint="`skillopt-es data fetch-plan` says what to download",
        )
    return files


def table_rows(file: Path) -> Iterator[tuple[str, Row]]:
    """The rows of a table in order, each with its `file:number`; rows that are no objects are an error."""
    for where, row in _READERS.get(file.suffix, read_rows)(file):
        if not isinstance(row, dict):
            raise DataError(f"{where}: a row must be an object", hint="write it as {…}")
        yield where, cast(Row, row)


def _lines(file: Path) -> Iterator[tuple[str, object]]:
    with io.TextIOWrapper(open_plain(file, follow=True), encoding="utf-8-sig", newline="\n") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                try:
                    yield f"{file}:{number}", json.loads(line)
                except json.JSONDecodeError as error:
                    raise DataError(f"{file}:{number}: not JSON: {error.msg}", hint="download the file again") from None
                except RecursionError:
                    raise DataError(f"{file}:{number}: nested too deep", hint="download the file again") from None


def _parquet(file: Path) -> Iterator[tuple[str, object]]:
    try:
        parquet = import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        raise DataError(
            f"{file} is Parquet, which needs pyarrow",
            hint=f"{extra_hint('materialize')}; or export the table as JSON Lines",
        ) from None
    try:
        number = 0
        with open_plain(file, follow=True) as data:
            for batch in parquet.ParquetFile(data).iter_batches(batch_size=_BATCH):
                for row in batch.to_pylist():
                    number += 1
                    yield f"{file}: row {number}", row
    except (OSError, ValueError) as error:  # pyarrow's own errors derive from these
        raise DataError(f"{file}: cannot be read as Parquet: {error}", hint="download the file again") from None


_READERS: Mapping[str, Callable[[Path], Iterable[tuple[str, object]]]] = {
    ".parquet": _parquet,
    ".jsonl": _lines,
    ".csv": read_csv_rows,
}


def text_of(row: Row, key: str, where: str) -> str:
    """A text cell; raises DataError when it is missing, blank or no text."""
    value = row.get(key)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise DataError(f"{where}: `{key}` is missing or blank", hint="download the file again")
    return value


def lines_of(value: object) -> list[Json]:
    """The names in a cell: a list, or text with one on each line or commas between them."""
    if isinstance(value, list):
        return [str(each).strip() for each in value if str(each).strip()]
    text = value if isinstance(value, str) else ""
    listed = texts_of(text)
    if listed is not None:
        return [each.strip() for each in listed]
    separator = "," if "\n" not in text.strip() else None
    parts = text.split(separator) if separator else text.splitlines()
    return [part.strip() for part in parts if part.strip()]


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
