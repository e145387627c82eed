"""SearchQA: rows of the re-hosted question set, found by their key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from skillopt_es.adapters.benchmarks.plan import Fields, Found
from skillopt_es.adapters.benchmarks.tables import Row, looked_up, table_files, text_of
from skillopt_es.adapters.environments.csv_rows import texts_of
from skillopt_es.adapters.environments.data import RawItem
from skillopt_es.errors import DataError


def read(folder: Path, wanted: Mapping[str, RawItem]) -> Found:
    """What a folder of downloads holds of the wanted items."""
    files = table_files(folder)
    return Found(items=looked_up(files, wanted, key="key", make=_item), inputs=files)


def _item(row: Row, listed: RawItem, where: str) -> Fields:
    answers = texts_of(row.get("answers"))
    if answers is None:
        raise DataError(f"{where}: `answers` is no list of texts", hint="export the table with its lists kept")
    return {
        "id": listed.id,
        "question": text_of(row, "question", where),
        "context": text_of(row, "context", where),
        "answers": [*answers],
    }
