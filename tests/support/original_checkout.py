"""A checkout of the original as its README supposes it: configs, a skill for each benchmark, and small made data."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from support.made_searchqa import made_searchqa, write_split_dir

VERSIONS = ("0.2.0", "2026-08")
CONFIGS = Path(__file__).parent.parent / "config" / "original"
_DEMO = Path(__file__).parents[2] / "configs" / "demo"
SPLITS = ("train", "val", "test")


def checkout(folder: Path, version: str, benchmark: str, *, whole: bool = True) -> Path:
    """The folder, now with the configs of a version and what one benchmark needs; of workbooks a few may do."""
    shutil.copytree(CONFIGS / version / "configs", folder / "configs")
    skill = folder / "skillopt" / "envs" / benchmark / "skills" / "initial.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("# Skill\n\n- Answer briefly.\n")
    if benchmark == "spreadsheetbench":
        _spreadsheetbench(folder / "data", 80 if whole else 2)
    else:
        _DATA[benchmark](folder / "data")
    return folder


def _items(benchmark: str, most: int = 2) -> dict[str, list[dict[str, Any]]]:
    """The first items of each split of a demo."""
    rows = [json.loads(line) for line in (_DEMO / benchmark / "items.jsonl").read_text().splitlines()]
    return {split: [row for row in rows if row["split"] == split][:most] for split in SPLITS}


def _searchqa(data: Path) -> None:
    """As many training items as the shipped config says there are."""
    items = made_searchqa(404, size=200)
    splits = {"train": items[:400], "val": items[400:402], "test": items[402:]}
    write_split_dir(data / "searchqa_split", splits)


def _docvqa(data: Path) -> None:
    write_split_dir(data / "docvqa" / "splits", _items("docvqa"))
    shutil.copytree(_DEMO / "docvqa" / "images", data / "docvqa" / "splits" / "images")


def _officeqa(data: Path) -> None:
    write_split_dir(data / "officeqa_split", _items("officeqa"))
    shutil.copytree(_DEMO / "officeqa" / "docs", data / "officeqa_docs_official")


def _livemath(data: Path) -> None:
    write_split_dir(data / "livemathematicianbench_split", _items("livemathematicianbench"))


def _alfworld(data: Path) -> None:
    write_split_dir(data / "alfworld_path_split", _items("alfworld"))


def _spreadsheetbench(data: Path, train: int) -> None:
    """So many training tasks (the shipped config says eighty): one workbook under many names."""
    root = data / "spreadsheetbench_verified_400"
    known = json.loads((_DEMO / "spreadsheetbench" / "dataset.json").read_text())[0]
    source = _DEMO / "spreadsheetbench" / known["spreadsheet_path"]
    rows: list[dict[str, Any]] = []
    for number in range(train + 2):
        name = f"made-{number}"
        place = root / "spreadsheet" / name
        place.mkdir(parents=True)
        for file in source.iterdir():
            (place / file.name.replace(known["id"], name)).hardlink_to(_copy(file, data))
        row = {key: value for key, value in known.items() if key != "split"}
        rows.append({**row, "id": name, "spreadsheet_path": f"spreadsheet/{name}"})
    (root / "dataset.json").write_text(json.dumps(rows))
    ids: Mapping[str, Sequence[dict[str, Any]]] = {"train": rows[:-2], "val": rows[-2:-1], "test": rows[-1:]}
    write_split_dir(data / "spreadsheetbench_split", dict(ids))


def _copy(file: Path, data: Path) -> Path:
    """A file on the same disk, which may be linked to."""
    kept = data / file.name
    if not kept.exists():
        shutil.copyfile(file, kept)
    return kept


_DATA: Mapping[str, Callable[[Path], None]] = {
    "searchqa": _searchqa,
    "docvqa": _docvqa,
    "officeqa": _officeqa,
    "livemathematicianbench": _livemath,
    "alfworld": _alfworld,
}
BENCHMARKS = (*_DATA, "spreadsheetbench")
