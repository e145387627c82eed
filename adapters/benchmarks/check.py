"""Checking a folder of splits: is it what was built, is each id there once, do the files exist that items name?"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from attrs import frozen

from skillopt_es.adapters.benchmarks.build import digest_of_file
from skillopt_es.adapters.benchmarks.id_lists import MANIFEST
from skillopt_es.adapters.benchmarks.plan import SPLITS, Benchmark
from skillopt_es.adapters.benchmarks.registry import BENCHMARKS
from skillopt_es.adapters.environments.data import RawItem, item_files, read_items
from skillopt_es.adapters.environments.text import named
from skillopt_es.errors import DataError
from skillopt_es.events.values import Json, Split


@frozen(kw_only=True)
class Checked:
    """What a folder holds and what is wrong with it; `benchmark` is empty where no manifest names one."""

    benchmark: str
    counts: Mapping[str, int]
    problems: tuple[str, ...]


def check_folder(folder: Path) -> Checked:
    """The state of a folder with train, val and test; raises DataError for files that cannot be read."""
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder}", hint="name a folder with train, val and test, or a config")
    manifest = _manifest(folder)
    name = str(manifest.get("benchmark", ""))
    divided = {split: _items(folder / split) for split in SPLITS}
    problems = [*_changed(folder, manifest), *_twice(divided), *_miscounted(manifest, divided)]
    if name in BENCHMARKS:
        problems += _incomplete(BENCHMARKS[name], folder, divided)
    problems += [f"the {split} split is empty" for split in ("train", "val") if not divided[split]]
    return Checked(
        benchmark=name, counts={split: len(rows) for split, rows in divided.items()}, problems=tuple(problems)
    )


def _manifest(folder: Path) -> Mapping[str, Json]:
    file = folder / MANIFEST
    if not file.is_file():
        return {}
    try:
        manifest = json.loads(file.read_bytes())
    except ValueError as error:
        raise DataError(f"{file}: not JSON: {error}", hint="build the data again") from None
    if not isinstance(manifest, dict):
        raise DataError(f"{file}: must be an object", hint="build the data again")
    return manifest


def _items(folder: Path) -> list[RawItem]:
    files = item_files(folder) if folder.is_dir() else []
    return read_items(files[0]) if files else []


def _changed(folder: Path, manifest: Mapping[str, Json]) -> Iterator[str]:
    listed = manifest.get("files")
    for place, digest in sorted(listed.items() if isinstance(listed, dict) else ()):
        file = folder / place
        if not file.is_file():
            yield f"{place} is missing"
        elif digest_of_file(file) != digest:
            yield f"{place} is not what was built"


def _twice(divided: Mapping[Split, list[RawItem]]) -> Iterator[str]:
    seen: dict[str, str] = {}
    shared = []
    for split, items in divided.items():
        shared += [f"{item.id} ({seen[item.id]} and {split})" for item in items if item.id in seen]
        seen.update((item.id, split) for item in items)
    if shared:
        yield f"{len(shared)} ids are in two splits: {named(shared)}"


def _miscounted(manifest: Mapping[str, Json], divided: Mapping[Split, list[RawItem]]) -> Iterator[str]:
    listed = manifest.get("counts")
    counts = listed if isinstance(listed, dict) else {}
    for split, items in divided.items():
        count = counts.get(split, len(items))
        if len(items) != count:
            yield f"{split} has {len(items)} items, but the manifest counts {count}"


def _incomplete(benchmark: Benchmark, folder: Path, divided: Mapping[Split, list[RawItem]]) -> Iterator[str]:
    items = [item for split in SPLITS for item in divided[split]]
    for key in benchmark.required:
        blank = [item.id for item in items if item.fields.get(key) in (None, "", [])]
        if blank:
            yield f"{len(blank)} items have no `{key}`: {named(blank)}"
    for key in benchmark.paths:
        places = {item.id: item.fields.get(key) for item in items}
        gone = [name for name, place in places.items() if isinstance(place, str) and not _inside(folder, place)]
        if gone:
            yield f"the `{key}` of {len(gone)} items is not in the folder: {named(gone)}"


def _inside(folder: Path, place: str) -> bool:
    target = (folder / place).resolve()
    return target.is_relative_to(folder.resolve()) and target.exists()
