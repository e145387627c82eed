"""Building splits: looked up, checked, written beside their place and moved there whole, with a manifest."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from attrs import frozen

from skillopt_es.adapters.benchmarks.id_lists import MANIFEST, IdLists, read_id_lists
from skillopt_es.adapters.benchmarks.plan import SPLITS, Benchmark, Fields, Found
from skillopt_es.adapters.environments.text import named
from skillopt_es.errors import DataError, OutputRefused
from skillopt_es.events.plain import open_plain
from skillopt_es.events.values import Json, Split


@frozen(kw_only=True)
class Built:
    """What was built: items of each split, and what is worth knowing about them."""

    counts: Mapping[str, int]
    notes: tuple[str, ...]


def build(benchmark: Benchmark, *, source: Path, out: Path, ids: Path | None, software: str) -> Built:
    """Writes the splits into `out`, which must be new; raises DataError naming what is missing and writes nothing."""
    source = source.resolve()  # readers resolve what they find below it
    if out.exists():
        raise OutputRefused(f"{out} is there already", hint="name a new folder with --out, or remove that one")
    lists = _lists(benchmark, source, ids)
    wanted = {item.id: item for split in SPLITS for item in lists.divided[split]}
    found = benchmark.read(source, wanted)
    _refuse_missing(benchmark, lists, found)
    items: dict[Split, list[Fields]] = {
        split: [found.items[item.id] for item in lists.divided[split]] for split in SPLITS
    }
    manifest = _manifest(benchmark, source, lists, found, items, ids, software)
    _write(out, items, found, manifest)
    return Built(counts={split: len(rows) for split, rows in items.items()}, notes=(*lists.notes, *found.notes))


def digest_of_file(file: Path) -> str:
    """The SHA-256 of a file, read in pieces."""
    with open_plain(file, follow=True) as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def _lists(benchmark: Benchmark, source: Path, ids: Path | None) -> IdLists:
    if ids is not None:
        return read_id_lists(benchmark, ids)
    if benchmark.divide is None:
        raise DataError(
            f"the released split of {benchmark.name} is a list of ids, which is not part of this software",
            hint=f"name a checkout of the original with --ids: its data/{benchmark.id_folder} has the list",
        )
    return IdLists(benchmark.divide(source), (), ())


def _refuse_missing(benchmark: Benchmark, lists: IdLists, found: Found) -> None:
    missing = {split: [item.id for item in lists.divided[split] if item.id not in found.items] for split in SPLITS}
    gone = [name for split in SPLITS for name in missing[split]]
    if gone:
        sizes = ", ".join(f"{len(missing[split])} of {len(lists.divided[split])} {split}" for split in SPLITS)
        raise DataError(
            f"{len(gone)} wanted items are not in the data ({sizes}): {named(gone)}",
            hint=f"`skillopt-es data fetch-plan {benchmark.name}` says what has to be there",
        )
    for key in benchmark.required:
        blank = [name for name, fields in found.items.items() if fields.get(key) in (None, "", [])]
        if blank:
            raise DataError(f"{len(blank)} items have no `{key}`: {named(blank)}", hint="download the data again")
    empty = [split for split in ("train", "val") if not any(True for _ in lists.divided[split])]
    if empty:
        raise DataError(f"the {empty[0]} split is empty", hint="a run needs training and validation items")


def _manifest(
    benchmark: Benchmark,
    source: Path,
    lists: IdLists,
    found: Found,
    items: Mapping[Split, Sequence[Fields]],
    ids: Path | None,
    software: str,
) -> dict[str, Json]:
    """What was made of what; names are relative, so that the folder can move and be compared."""
    base = source if source.is_dir() else source.parent
    files: dict[str, Json] = {f"{split}/items.json": _digest(_text(rows)) for split, rows in items.items()}
    files |= {place: _digest(data if isinstance(data, bytes) else data.read_bytes())
              for place, data in sorted(found.copies.items())}  # fmt: skip
    lists_read: list[Json] = [
        {"file": file.relative_to(lists.files[0].parent.parent).as_posix(), "sha256": digest_of_file(file)}
        for file in lists.files
    ]
    inputs: list[Json] = [
        {
            "file": file.relative_to(base).as_posix(),
            "sha256": digest_of_file(file),
            "bytes": file.stat().st_size,
        }
        for file in sorted(found.inputs)
    ]
    keys: list[Json] = [*sorted({key for rows in items.values() for row in rows for key in row})]
    return {
        "benchmark": benchmark.name,
        "manifest_type": "built",
        "software": software,
        "counts": {split: len(rows) for split, rows in items.items()},
        "split": "as released" if ids is None else "id lists",
        "item_fields": keys,
        "sources": [{"where": each.where, "licence": each.licence} for each in benchmark.sources],
        "ids": lists_read,
        "inputs": inputs,
        "files": files,
        "notes": [*lists.notes, *found.notes],
    }


def _write(out: Path, items: Mapping[Split, Sequence[Fields]], found: Found, manifest: Mapping[str, Json]) -> None:
    """Everything into a folder beside `out`, which then gets its name; nothing is left when that fails."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    except OSError as error:
        raise OutputRefused(f"{out.parent} cannot be written: {error.strerror}", hint="name another --out") from error
    try:
        for split, rows in items.items():
            (work / split).mkdir()
            (work / split / "items.json").write_bytes(_text(rows))
        for place, data in found.copies.items():
            target = work / PurePosixPath(place)
            if not target.resolve().is_relative_to(work.resolve()):
                raise DataError(f"{place!r} points outside of the new folder", hint="the data is not what it should be")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data if isinstance(data, bytes) else data.read_bytes())
        (work / MANIFEST).write_bytes(_text(manifest))
        # mkdtemp makes a folder that only its owner may read.
        work.chmod(0o755)
        os.rename(work, out)  # noqa: PTH104 - refuses to replace a folder that has something in it
    except OSError as error:
        raise OutputRefused(f"{out} cannot be written: {error.strerror}", hint="name another --out") from error
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _text(value: object) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n").encode()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
