"""Tasks read from tables as they are: CSV, TSV, Parquet, a dataset on disk, or rows whose fields the user names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from attrs import define, field

from skillopt_es.adapters.environments.data import SUFFIXES, RawItem, read_items
from skillopt_es.adapters.environments.splits import sole_file
from skillopt_es.adapters.tasksets.rows import ASSERTED, Row, placed_tasks, read_dataset, read_table
from skillopt_es.errors import DataError

TABLES = (".csv", ".tsv", ".parquet", ".arrow")
_WITHOUT_IDS = (
    'add a unique one: {"id": "1", …}; or say which field is the question (env.input_field: NAME), and a task without '
    "an id is called after its row"
)
_DATASET = ("dataset_dict.json", "dataset_info.json")


@define
class TableReader:
    """Reads the files of a run's tasks; `mapping` has the fields that the user named, `told` what was understood."""

    mapping: Mapping[str, str]
    told: list[str] = field(factory=list)

    def read(self, path: Path, notes: list[str]) -> list[RawItem]:
        """The items of a file; of a table, of a dataset, and where fields are named, those of its rows."""
        if path.is_dir() and any((path / name).exists() for name in _DATASET):
            return self._items(path, read_dataset(path), notes)
        file = sole_file(path, (*SUFFIXES, *TABLES))
        if file.suffix in TABLES or self.mapping:
            return self._items(file, read_table(file), notes)
        return read_items(file, without_ids=_WITHOUT_IDS)

    def _items(self, path: Path, rows: list[tuple[str, Row]], notes: list[str]) -> list[RawItem]:
        if any(ASSERTED.fullmatch(name) for _, row in rows[:1] for name in row):
            raise DataError(
                f"{path}: these are tests of promptfoo, whose column __expected holds assertions, not answers",
                hint=f"`skillopt-es import-tasks {path} --to tasks.jsonl` makes tasks of them",
            )
        found = placed_tasks(rows, self.mapping, path.stem, named="env.{}_field: {}")
        self.told += [f"{path.name}: {note}" for note in found.notes]
        for why, count in Counter(why for _, why in found.left).items():
            first = next(where for where, each in found.left if each == why)
            notes.append(f"{path.name}: {count} row{'s'[: count > 1]} left out: {why} (first: {first})")
        items: dict[str, RawItem] = {}
        for where, task in found.tasks:
            item = RawItem(id=str(task["id"]), fields=task, where=where)
            if item.id in items:
                raise DataError(
                    f"{where}: id {item.id!r} is already used ({items[item.id].where})",
                    hint="name the field that has ids of its own: env.id_field",
                )
            items[item.id] = item
        if not items:
            raise DataError(f"{path}: it has no tasks", hint="each row is one task")
        return [*items.values()]
