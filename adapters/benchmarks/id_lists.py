"""The released ids of a benchmark: those that are part of this software, and those in a checkout of the original."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path

from attrs import frozen

from skillopt_es.adapters.benchmarks.plan import SPLITS, Benchmark, Divided
from skillopt_es.adapters.environments.data import RawItem, read_items
from skillopt_es.adapters.environments.text import named
from skillopt_es.errors import DataError
from skillopt_es.events.values import Split

MANIFEST = "split_manifest.json"


@frozen
class IdLists:
    """The ids of each split in their order, the files that list them, and what is odd about them."""

    divided: Divided
    files: tuple[Path, ...]
    notes: tuple[str, ...]


def read_id_lists(benchmark: Benchmark, given: Path) -> IdLists:
    """The lists in a checkout, in its `data` folder, or in the very folder; raises DataError for what is wrong."""
    folder = _folder(benchmark, given)
    files = tuple(folder / split / "items.json" for split in SPLITS)
    for file in files:
        if not file.is_file():
            raise DataError(f"{file}: no such file", hint=f"name a checkout that has data/{benchmark.id_folder}")
    divided = {split: read_items(file) for split, file in zip(SPLITS, files, strict=True)}
    _refuse_shared(divided)
    sizes = tuple(len(divided[split]) for split in SPLITS)
    manifest = folder / MANIFEST
    counted = _counts(manifest) if manifest.is_file() else {}
    for split, size in zip(SPLITS, sizes, strict=True):
        if counted.get(split, size) != size:
            raise DataError(
                f"{manifest} counts {counted[split]} {split} ids, but its list has {size}",
                hint="check the lists out again",
            )
    notes = [] if sizes == benchmark.sizes else [
        f"the lists have {_shown(sizes)} ids, the released ones {_shown(benchmark.sizes)}: this is another split"
    ]  # fmt: skip
    return IdLists(divided, (*files, *([manifest] if manifest.is_file() else [])), tuple(notes))


def _folder(benchmark: Benchmark, given: Path) -> Path:
    for folder in (given / "data" / benchmark.id_folder, given / benchmark.id_folder, given):
        if (folder / "train").is_dir():
            return folder
    raise DataError(
        f"{given}: no {benchmark.id_folder} with train, val and test in it",
        hint="name a checkout of the original SkillOpt, its data folder, or the folder with the lists",
    )


def _refuse_shared(divided: Mapping[Split, list[RawItem]]) -> None:
    seen: dict[str, str] = {}
    twice: list[str] = []
    for split, items in divided.items():
        for item in items:
            if item.id in seen:
                twice.append(f"{item.id} ({seen[item.id]} and {split})")
            seen[item.id] = split
    if twice:
        raise DataError(f"{len(twice)} ids are in two splits: {named(twice)}", hint="keep each in one split")


def _counts(manifest: Path) -> Mapping[str, int]:
    try:
        counts = json.loads(manifest.read_bytes())["counts"]
        return {split: int(counts[split]) for split in SPLITS}
    except (ValueError, KeyError, TypeError):
        raise DataError(f"{manifest}: no `counts` of train, val and test", hint="check the lists out again") from None


def _shown(sizes: tuple[int, ...]) -> str:
    return "/".join(map(str, sizes))


_WHERE = "the released list"


def released_names(benchmark: str) -> Mapping[Split, Sequence[str]]:
    """What the list of a benchmark holds, by split."""
    file = resources.files(__package__) / "released" / f"{benchmark}.json"
    lists = json.loads(file.read_text(encoding="utf-8"))
    return {split: [str(name) for name in lists[split]] for split in SPLITS if split in lists}


def released_ids(benchmark: str) -> Divided:
    """The released split of a benchmark whose list holds ids."""
    return {
        split: [RawItem(id=name, fields={"id": name}, where=_WHERE) for name in names]
        for split, names in released_names(benchmark).items()
    }


def released_games(paths: Mapping[Split, Sequence[str]]) -> Divided:
    """The split of games at these paths: numbered in their order, the type of the task as the path says it."""
    return {
        split: [_game(f"{split}:{number:04}", path) for number, path in enumerate(paths[split])] for split in SPLITS
    }


def _game(name: str, path: str) -> RawItem:
    kind = path.split("/")[2].partition("-")[0]
    return RawItem(id=name, fields={"id": name, "gamefile": path, "task_type": kind}, where=_WHERE)
