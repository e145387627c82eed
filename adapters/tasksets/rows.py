"""Rows of tables and lists, and which of their fields are the parts of a task."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

from skillopt_es.adapters.environments.csv_rows import read_csv_rows
from skillopt_es.adapters.environments.data import read_rows, text_of
from skillopt_es.errors import DataError, extra_hint
from skillopt_es.events.plain import open_plain
from skillopt_es.events.values import Json
from skillopt_es.ports import SPLIT_WORDS, split_words

Row = dict[str, Json]
USUAL: Mapping[str, tuple[str, ...]] = {
    "input": ("input", "question", "prompt", "query", "instruction", "problem", "text", "goal"),
    "expected": ("expected", "answer", "target", "ideal", "output", "label", "reference", "gold", "gold_answer"),
    "id": ("id", "task_id", "name"),
    "type": ("type", "category", "topic"),
    "split": ("split",),
}


@frozen(kw_only=True)
class Taken:
    """Tasks from a file; `left` says where something was left out, and why; `notes` what else was done."""

    tasks: tuple[Row, ...]
    left: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = field(default=())


ASSERTED = re.compile(r"__expected\d*")
"""A column of promptfoo's tables: its cells hold assertions about an answer, such as `contains: X`."""


def read_table(path: Path) -> list[tuple[str, Row]]:
    """The rows of CSV, TSV, Parquet, Arrow, JSON or JSON Lines, each with where it stands."""
    if path.suffix in (".csv", ".tsv"):
        return read_csv_rows(path, delimiter="\t" if path.suffix == ".tsv" else _delimiter(path))
    if path.suffix in (".parquet", ".arrow"):
        return _numbered(path, _arrow_rows(path))
    found = []
    for where, value in read_rows(path):
        if not isinstance(value, dict):
            raise DataError(f"{where}: not an object", hint="each task is one JSON object")
        found.append((where, value))
    return found


def _delimiter(path: Path) -> str:
    """A comma, or the semicolon that spreadsheets write where a comma stands in numbers."""
    header = text_of(path).lstrip().partition("\n")[0]
    return ";" if ";" in header and "," not in header else ","


def read_dataset(folder: Path) -> list[tuple[str, Row]]:
    """The rows of a HuggingFace dataset as `save_to_disk` writes it; those of several splits say which is theirs."""
    if (folder / "dataset_dict.json").exists():
        names = json.loads(text_of(folder / "dataset_dict.json"))["splits"]
        parts = [(name, folder / name) for name in names]
    else:
        parts = [("", folder)]
    rows: list[tuple[str, Row]] = []
    for name, part in parts:
        for file in sorted(part.glob("*.arrow")):
            own: Row = {"split": name} if name else {}
            rows += [(where, {**row, **own}) for where, row in _numbered(file, _arrow_rows(file))]
    return rows


def _numbered(path: Path, rows: Sequence[Row]) -> list[tuple[str, Row]]:
    return [(f"{path}:row {number}", row) for number, row in enumerate(rows, start=1)]


def _arrow_rows(path: Path) -> list[Row]:
    try:
        import pyarrow as pa  # noqa: PLC0415 -- an extra
        from pyarrow import parquet  # noqa: PLC0415
    except ModuleNotFoundError:
        raise DataError(
            f"{path.name} needs pyarrow to be read", hint=f"{extra_hint('materialize')}; or save it as CSV"
        ) from None
    try:
        with open_plain(path, follow=True) as file:
            table: Any = parquet.read_table(file) if path.suffix == ".parquet" else pa.ipc.open_stream(file).read_all()
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{path} cannot be read: {error}", hint="is it whole, and of the kind its name says?"
        ) from error
    # Dates and bytes become text: items are JSON.
    rows: list[Row] = json.loads(json.dumps(table.to_pylist(), default=str))
    features = _features(path, table.schema.metadata or {})
    return [{name: _named(value, features.get(name)) for name, value in row.items()} for row in rows]


def _features(path: Path, metadata: Mapping[bytes, bytes]) -> Mapping[str, Json]:
    """What a dataset says of its columns: in the file itself, or beside it as `save_to_disk` writes it."""
    beside = path.parent / "dataset_info.json"
    within = (f"{path}: the metadata under the key `huggingface`", metadata.get(b"huggingface", b""))
    for read, raw in (within, (f"{beside}", text_of(beside).encode() if beside.is_file() else b"")):
        if not raw:
            continue
        try:
            value = json.loads(raw)
        except ValueError as error:  # also bytes that are no text
            raise DataError(f"{read}: not JSON: {error}", hint="save the dataset again") from error
        info = value.get("info", value) if isinstance(value, dict) else {}
        features = info.get("features") if isinstance(info, dict) else None
        if isinstance(features, dict):
            return features
    return {}


def _named(value: Json, feature: Json) -> Json:
    """A value with the names of classes in place of their numbers; a number below 0 is no label."""
    if isinstance(value, list):
        within = feature[0] if isinstance(feature, list) and feature else feature
        of_each = within.get("feature", within) if isinstance(within, dict) else None
        return [_named(each, of_each) for each in value]
    if not isinstance(feature, dict):
        return value
    if isinstance(value, dict):
        of_fields = feature.get("feature", feature)
        return (
            {name: _named(each, of_fields.get(name)) for name, each in value.items()}
            if isinstance(of_fields, dict)
            else value
        )
    names = feature.get("names")
    if feature.get("_type") != "ClassLabel" or not isinstance(names, list) or type(value) is not int:
        return value
    return names[value] if 0 <= value < len(names) else None


def tasks_of(rows: Sequence[tuple[str, Row]], mapping: Mapping[str, str], stem: str) -> Taken:
    """The tasks in rows; fields that nobody named are found by their usual names, the others come along."""
    found = placed_tasks(rows, mapping, stem, named="--field {}={}")
    return Taken(tasks=tuple(task for _, task in found.tasks), left=found.left, notes=found.notes)


@frozen(kw_only=True)
class Placed:
    """The same, each task with where it stands."""

    tasks: tuple[tuple[str, Row], ...]
    left: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def placed_tasks(rows: Sequence[tuple[str, Row]], mapping: Mapping[str, str], stem: str, *, named: str) -> Placed:
    """The tasks in rows, with where they stand; `named` is how somebody says which field is which of ours."""
    columns = dict.fromkeys(name for _, row in rows for name in row)
    chosen = {**_guessed(columns, mapping), **mapping}
    wrong = [
        named.format(ours, theirs)
        for ours, theirs in mapping.items()
        if theirs not in columns and all(_value(row, theirs) is None for _, row in rows)
    ]
    if wrong:
        raise DataError(f"there is no such field: {', '.join(wrong)}", hint=f"there are: {', '.join(columns)}")
    if "input" not in chosen and "messages" not in columns:
        how = f"{named.format('input', 'NAME')}, and {named.format('expected', 'NAME')}"
        raise DataError(
            f"none of the fields is the question of a task: {', '.join(columns)}", hint=f"say which one is: {how}"
        )
    tasks: list[tuple[str, Row]] = []
    left: list[tuple[str, str]] = []
    for number, (where, row) in enumerate(rows, start=1):
        parts = {ours: _value(row, theirs) for ours, theirs in chosen.items()}
        task: Row = {ours: value for ours, value in parts.items() if value is not None}
        asked = task.get("input", row.get("messages"))
        if not asked or (isinstance(asked, str) and not asked.strip()):
            left.append((where, "it asks nothing"))
            continue
        others = {name: value for name, value in row.items() if name not in (*chosen.values(), *task)}
        whole = {**task, **{key: value for key, value in others.items() if value is not None}}
        tasks.append((where, settled(whole, stem, number)))
    said = ", ".join(f"{ours} from {chosen[ours]}" for ours in USUAL if chosen.get(ours, ours) != ours)
    return Placed(tasks=tuple(tasks), left=tuple(left), notes=(said,) if said else ())


def _value(row: Row, name: str) -> Json:
    """A field of a row; with dots in its name, also one within another: `answers.text`."""
    found: Json = row
    for part in [name] if name in row else name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def settled(task: Row, stem: str, number: int) -> Row:
    """A task with an id as text."""
    given = task.get("id")
    return {**task, "id": f"{stem}-{number}" if given is None or given == "" else str(given)}


def with_splits(taken: Taken, path: Path) -> Taken:
    """The tasks with our names for their splits; raises DataError for a word that means none of them."""
    said = [(task, task["split"]) for task in taken.tasks if task.get("split") is not None]
    names = split_words(split for _, split in said if isinstance(split, str))
    for task, split in said:
        if not isinstance(split, str) or split.lower() not in names:
            raise DataError(
                f"{path}: task {str(task['id'])!r}: the split {split!r} is none of ours",
                hint=f"these words are understood: {', '.join(SPLIT_WORDS)}; --field split=NAME names another field",
            )
    tasks = [
        {**task, "split": names[str(task["split"]).lower()]} if task.get("split") else task for task in taken.tasks
    ]
    return evolve(taken, tasks=tuple(tasks))


def _guessed(columns: Mapping[str, object], mapping: Mapping[str, str]) -> dict[str, str]:
    lower = {name.lower(): name for name in columns}
    taken = set(mapping.values())
    found: dict[str, str] = {}
    for ours, names in USUAL.items():
        there = [lower[name] for name in names if name in lower and lower[name] not in taken]
        if ours not in mapping and there and not (ours == "input" and "messages" in columns):
            found[ours] = there[0]
    return found


def same_ids(tasks: Sequence[Row]) -> Iterator[str]:
    """The ids that more than one task has."""
    seen: set[Json] = set()
    for task in tasks:
        if task["id"] in seen:
            yield str(task["id"])
        seen.add(task["id"])
