"""OfficeQA: questions over Treasury bulletins, by uid; the bulletins themselves stay where they were downloaded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from skillopt_es.adapters.benchmarks.id_lists import released_ids
from skillopt_es.adapters.benchmarks.plan import Benchmark, Fields, Found, Source
from skillopt_es.adapters.benchmarks.tables import Row, lines_of, looked_up, table_files, text_of
from skillopt_es.adapters.environments.data import RawItem


def _read(folder: Path, wanted: Mapping[str, RawItem]) -> Found:
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


OFFICEQA = Benchmark(
    name="officeqa",
    about="questions that are answered from US Treasury bulletins",
    sources=(
        Source(
            what="officeqa_full.csv, 246 questions with answers (gated: accept the terms first)",
            where="https://huggingface.co/datasets/databricks/officeqa",
            licence="data CC BY-SA 4.0, code Apache-2.0",
            get="hf download databricks/officeqa officeqa_full.csv --repo-type dataset --local-dir DOWNLOADS/officeqa",
        ),
        Source(
            what="the bulletins as text, treasury_bulletins_parsed/transformed (about 460 MB)",
            where="https://huggingface.co/datasets/databricks/officeqa",
            licence="data CC BY-SA 4.0",
            get="hf download databricks/officeqa --repo-type dataset --include 'treasury_bulletins_parsed/*' "
            "--local-dir DOWNLOADS/officeqa",
        ),
    ),
    id_folder="officeqa_id_split",
    sizes=(50, 24, 172),
    required=("question", "ground_truth"),
    read=_read,
    divide=lambda _: released_ids("officeqa"),
    warning="the access terms forbid using the answer keys to train models that are evaluated on it, or to inflate "
    "scores; ask yourself whether training a skill on its train split is what you may do, and say so where you publish",
)
