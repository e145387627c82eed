"""SearchQA: rows of the re-hosted question set, found by their key."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from skillopt_es.adapters.benchmarks.plan import Benchmark, Fields, Found, Source
from skillopt_es.adapters.benchmarks.tables import Row, looked_up, table_files, text_of
from skillopt_es.adapters.environments.csv_rows import texts_of
from skillopt_es.adapters.environments.data import RawItem
from skillopt_es.errors import DataError, extra_hint


def _read(folder: Path, wanted: Mapping[str, RawItem]) -> Found:
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


SEARCHQA = Benchmark(
    name="searchqa",
    about="short questions over web snippets, graded by exact match and token F1",
    sources=(
        Source(
            what="the question set, 117,384 training and 16,980 validation rows (Parquet, or exported as JSON Lines)",
            where="https://huggingface.co/datasets/lucadiliello/searchqa",
            licence="none stated on the card; questions from J! Archive, snippets from web pages: research use only",
            get="hf download lucadiliello/searchqa --repo-type dataset --local-dir DOWNLOADS/searchqa",
            note=f"Parquet needs pyarrow: {extra_hint('materialize')}",
        ),
    ),
    id_folder="searchqa_id_split",
    sizes=(400, 200, 1400),
    required=("question", "context", "answers"),
    read=_read,
)
