"""OfficeQA: questions over Treasury bulletins, by uid; the bulletins themselves stay where they were downloaded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from skillopt_es.adapters.benchmarks.plan import Fields, Found
from skillopt_es.adapters.benchmarks.tables import Row, lines_of, looked_up, table_files, text_of
from skillopt_es.adapters.environments.data import RawItem


def read(folder: Path, wanted: Mapping[str, RawItem]) -> Found:
    """What a folder of downloads holds of the wanted items."""
    tables = table_files(folder, suffixes=(".csv",))
    files = [file for file in tables if file.name == "officeqa_full.csv"] or tables
    by_uid = {str(item.fields.get("uid", item.id)): item for item in wanted.values()}
    found = looked_up(files, by_uid, key="uid", make=_item)
    return Found(items={str(fields["id"]): fields for fields in found.values()}, inputs=files)


def _item(row: Row, listed: RawItem, where: str) -> Fields:
    return {
        "id": listed.id,
        "question": text_of(row, "question", where),
        "ground_truth": text_of(row, "answer", where),
        "category": text_of(row, "difficulty", where),
        "source_files": lines_of(row.get("source_files")),
        "source_docs": lines_of(row.get("source_docs")),
    }
