"""Tables as the data of a run: fields by their usual names or by those the user gives, and what is said of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.environments import data_settings, open_on

from skillopt_es.adapters.environments.tasks.items import TaskItem
from skillopt_es.errors import DataError
from skillopt_es.ports import Splits

ROWS = [("What is 1+1?", "2", "sum"), ("", "3", "sum"), *((f"What is {n}+9?", str(n + 9), "sum") for n in range(9))]


def loaded(file: Path, **options: Any) -> Splits:
    """The splits of a file."""
    data = data_settings(data_path=str(file), split_mode="ratio", split_ratio="1:1:1")
    return open_on(Path("/"), "tasks", data, **options).load()


def tasks(splits: Splits) -> dict[str, TaskItem]:
    """All tasks by their ids."""
    found = {}
    for item in (*splits.train, *splits.val, *splits.test):
        assert isinstance(item, TaskItem)
        found[item.id] = item
    return found


@pytest.fixture(params=[",", ";", "\t"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A table with a question that asks nothing."""
    rows = [("question", "answer", "category"), *ROWS]
    file = tmp_path / f"q.{'tsv' if request.param == chr(9) else 'csv'}"
    file.write_text("".join(request.param.join(row) + "\n" for row in rows), encoding="utf-8")
    return file


def test_a_table_is_data_as_it_is(table: Path) -> None:
    """Its usual names are found; what was taken and what was left is told."""
    splits = loaded(table)
    found = tasks(splits)
    assert len(found) == 10
    assert (found["q-1"].task, found["q-1"].expected, found["q-1"].task_type) == ("What is 1+1?", "2", "sum")
    assert splits.told == (f"{table.name}: input from question, expected from answer, type from category",)
    assert splits.notes == (f"{table.name}: 1 row left out: it asks nothing (first: {table}:3)",)


def test_fields_go_by_the_names_that_the_user_gives(table: Path) -> None:
    """A name that is not there is an error that lists what is."""
    found = tasks(loaded(table, input_field="category", id_field="question", expected_field="answer"))
    assert found["What is 1+1?"].task == "sum"
    with pytest.raises(DataError, match=r"no such field: env\.input_field: frage"):
        loaded(table, input_field="frage")
    with pytest.raises(DataError, match="id 'sum' is already used"):
        loaded(table, id_field="category")


def test_rows_of_json_lines_are_read_that_way_where_fields_are_named(tmp_path: Path) -> None:
    """Otherwise they are items, which have ids."""
    file = tmp_path / "q.jsonl"
    file.write_text("".join(json.dumps({"q": f"say {n}", "gold": n}) + "\n" for n in range(6)), encoding="utf-8")
    assert tasks(loaded(file, input_field="q", grader="number"))["q-1"].expected == 0
    with pytest.raises(DataError, match="has no `id`") as refused:
        loaded(file)
    assert "env.input_field" in refused.value.hint


def test_parquet_and_datasets_on_disk_are_tables(tmp_path: Path) -> None:
    """The splits of a dataset are those of its tasks."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = pa.table({"question": [f"say {n}" for n in range(6)], "answer": [str(n) for n in range(6)]})
    parquet.write_table(rows, tmp_path / "q.parquet")
    assert len(tasks(loaded(tmp_path / "q.parquet"))) == 6
    for name in ("train", "validation", "test"):
        (tmp_path / "set" / name).mkdir(parents=True)
        with pa.ipc.new_stream(str(tmp_path / "set" / name / "data.arrow"), rows.schema) as out:
            out.write_table(rows.slice(0, 2) if name == "train" else rows.slice(2, 2))
    (tmp_path / "set" / "dataset_dict.json").write_text('{"splits": ["train", "validation", "test"]}')
    data = data_settings(data_path=str(tmp_path / "set"), split_mode="field")
    splits = open_on(Path("/"), "tasks", data).load()
    assert (len(splits.train), len(splits.val), len(splits.test)) == (2, 2, 2)
