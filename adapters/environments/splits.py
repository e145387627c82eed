"""Dividing items into train, val and test: by ratio, by folders, by files or by a field of each item."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from heapq import heapify, heappop, heappush
from itertools import product
from pathlib import Path

from attrs import frozen

from skillopt_es.adapters.environments.data import SUFFIXES, RawItem, canonical_json, item_files, read_items
from skillopt_es.errors import DataError, SettingRefused
from skillopt_es.events.values import Split, digest_of
from skillopt_es.ports import SPLIT_WORDS, DataSettings, Item, Splits, split_words

_SPLITS: tuple[Split, ...] = ("train", "val", "test")
_DEFAULT_RATIO = "2:1:7"

_Divided = dict[Split, list[RawItem]]
Read = Callable[[Path, list[str]], list[RawItem]]
Kind = Callable[[RawItem], str]


def plain_items(path: Path, _notes: list[str]) -> list[RawItem]:
    """The items of a file, or of the only data file in a folder."""
    return read_items(sole_file(path))


@frozen
class _Files:
    """How the files of a benchmark are read, what their names end in, and the type of an item, where that counts."""

    read: Read
    suffixes: Sequence[str]
    kind: Kind | None = None


def load_splits(
    settings: DataSettings,
    parse: Callable[[RawItem], Item],
    *,
    read: Read = plain_items,
    suffixes: Sequence[str] = SUFFIXES,
    kind: Kind | None = None,
) -> Splits:
    """
    The parsed items of the three splits; the same data and settings give the same splits on any machine.

    `read` gives the items of a file or folder and may add notes; the default reads our own formats. `suffixes` are
    those of the files that it reads. With `kind`, the type of an item, a division by ratio divides each type by it;
    the benchmarks of the original are divided as there, whatever their types.
    """
    notes: list[str] = []
    divided = _MODES[settings.split_mode](settings, notes, _Files(read, suffixes, kind))
    _refuse_shared_ids(divided)
    if settings.limit > 0:
        divided = {split: items[: settings.limit] for split, items in divided.items()}
    _refuse_empty(divided, settings)
    if not divided["test"]:
        notes.append("the test split is empty: there will be no test score")
    return Splits(
        train=[parse(item) for item in divided["train"]],
        val=[parse(item) for item in divided["val"]],
        test=[parse(item) for item in divided["test"]],
        digests={split: digest_of(canonical_json([item.fields for item in divided[split]])) for split in _SPLITS},
        notes=tuple(notes),
        untrusted=frozenset(item.id for items in divided.values() for item in items if _is_untrusted(item)),
        inputs={item.id: digest for item, digest in _inputs(divided, settings.split_field) if digest},
    )


# What is asked of the target is the rest: an item's name, its place, its kind and its grading are not.
_NOT_INPUT = frozenset({"id", "type", "task_type", "trust", "split", "grader", "expected", "answer", "answers"})


def _inputs(divided: _Divided, split_field: str) -> Iterator[tuple[RawItem, str]]:
    """Each item with the digest of what it asks; none for an item that says nothing but its name."""
    for item in (item for items in divided.values() for item in items):
        asked = {key: value for key, value in item.fields.items() if key not in _NOT_INPUT and key != split_field}
        yield item, digest_of(canonical_json(asked)) if asked else ""


def _is_untrusted(item: RawItem) -> bool:
    value = item.fields.get("trust", "trusted")
    if value not in ("trusted", "untrusted"):
        raise item.refusal(f"`trust` is {value!r}", "write trusted or untrusted, or leave it out")
    return value == "untrusted"


def ratio_counts(total: int, ratio: str) -> tuple[int, int, int]:
    """How many of `total` items each split gets, by largest remainder (ties: larger weight, then earlier split)."""
    weights = _weights(ratio)
    # Float shares, as in the original: their rounding decides ties (2 items at 2:1:7 give 1, 0, 1).
    shares = [total * weight / sum(weights) for weight in weights]
    counts = [int(share) for share in shares]
    order = sorted(range(3), key=lambda index: (shares[index] - counts[index], weights[index]), reverse=True)
    for index in order[: total - sum(counts)]:
        counts[index] += 1
    return counts[0], counts[1], counts[2]


def _weights(ratio: str) -> tuple[int, int, int]:
    parts = (ratio or _DEFAULT_RATIO).split(":")
    numbers = [int(part) for part in parts if part.strip().isdecimal()]
    if len(parts) != 3 or len(numbers) != 3 or min(numbers) < 1:
        raise SettingRefused(
            "env.split_ratio",
            f": {ratio!r} is not three positive whole numbers",
            hint="write train:val:test, as in 2:1:7",
        )
    return numbers[0], numbers[1], numbers[2]


def _by_ratio(settings: DataSettings, notes: list[str], files: _Files) -> _Divided:
    items = files.read(_data_path(settings, files), notes)
    counts = dict(zip(_SPLITS, ratio_counts(len(items), settings.split_ratio), strict=True))
    random.Random(settings.split_seed).shuffle(items)  # noqa: S311 - a reproducible order is the point
    named = ["" if files.kind is None else files.kind(item) for item in items]
    sizes = Counter(named)
    kinds = [kind if sizes[kind] >= len(_SPLITS) else "" for kind in named]  # a rarer type cannot be in each split
    places = _places(Counter(kinds), counts)
    divided: _Divided = {split: [] for split in _SPLITS}
    for kind, item in zip(kinds, items, strict=True):
        divided[next(places[kind])].append(item)
    return divided


def _places(sizes: Mapping[str, int], counts: Mapping[Split, int]) -> Mapping[str, Iterator[Split]]:
    """
    For each type the splits of its items, in their order; `counts` are the sizes of the splits.

    Each type is in each split, the largest types first where a split has fewer places than that. What is left goes
    where the most is missing of a type's share.
    """
    left, held = dict(counts), {(kind, split): 0 for kind in sizes for split in _SPLITS}
    free = dict(sizes)
    total = sum(sizes.values())
    largest = sorted(sizes, key=lambda kind: -sizes[kind])  # of equal ones the first in the drawn order

    def put(kind: str, split: Split) -> None:
        held[kind, split] += 1
        left[split] -= 1
        free[kind] -= 1

    def missing(rank: int, at: int) -> tuple[float, int, int]:
        kind, split = largest[rank], _SPLITS[at]
        return held[kind, split] - sizes[kind] * counts[split] / total, rank, at

    for kind, split in product(filter(None, largest), _SPLITS):
        if left[split]:
            put(kind, split)
    waiting = [missing(rank, at) for rank in range(len(largest)) for at in range(len(_SPLITS))]
    heapify(waiting)
    while waiting:
        _, rank, at = heappop(waiting)
        if left[_SPLITS[at]] and free[largest[rank]]:
            put(largest[rank], _SPLITS[at])
            heappush(waiting, missing(rank, at))
    return {kind: iter([split for split in _SPLITS for _ in range(held[kind, split])]) for kind in sizes}


def _by_field(settings: DataSettings, notes: list[str], files: _Files) -> _Divided:
    key = settings.split_field or "split"
    items = files.read(_data_path(settings, files), notes)
    said = [item.fields.get(key) for item in items]
    names = split_words(name for name in said if isinstance(name, str))
    divided: _Divided = {split: [] for split in _SPLITS}
    for item, name in zip(items, said, strict=True):
        split = names.get(name.lower()) if isinstance(name, str) else None
        if split is None:
            raise _no_split(item, key)
        divided[split].append(item)
    return divided


def _no_split(item: RawItem, key: str) -> DataError:
    name = item.fields.get(key)
    if isinstance(name, str) and name.lower() in SPLIT_WORDS:
        return item.refusal(
            f"{name!r} in `{key}` may be what validates or what tests, and other items have that already",
            "write val or test",
        )
    near = get_close_matches(str(name), SPLIT_WORDS, n=1)
    what = f"unknown split {name!r} in `{key}`" if key in item.fields else f"no `{key}` field"
    return item.refusal(what, f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(SPLIT_WORDS)}")


def _by_folders(settings: DataSettings, notes: list[str], files: _Files) -> _Divided:
    folder = _split_folder(settings)
    return {split: _read_split_folder(folder, split, notes, files) for split in _SPLITS}


def _read_split_folder(folder: Path, split: Split, notes: list[str], files: _Files) -> list[RawItem]:
    found = item_files(folder / split, files.suffixes) if (folder / split).is_dir() else []
    if not found:
        what = f"no {_either(files.suffixes)} file in it" if (folder / split).is_dir() else "no such folder"
        return _missing(split, f"{folder / split}: {what}", folder)
    if len(found) > 1:
        notes.append(f"{split}: read {found[0].name}, ignored {', '.join(file.name for file in found[1:])}")
    return files.read(found[0], notes)


def _by_files(settings: DataSettings, notes: list[str], files: _Files) -> _Divided:
    folder = _split_folder(settings)
    return {split: _read_split_file(folder, split, notes, files) for split in _SPLITS}


def _read_split_file(folder: Path, split: Split, notes: list[str], files: _Files) -> list[RawItem]:
    names = [f"{split}{suffix}" for suffix in reversed(files.suffixes)]
    found = [folder / name for name in names if (folder / name).is_file()]
    if not found:
        return _missing(split, f"{folder}: no {_either(names)} in it", folder)
    if len(found) > 1:
        raise DataError(f"{folder}: both {found[0].name} and {found[1].name} are there", hint="keep the one to use")
    return files.read(found[0], notes)


def _missing(split: Split, what: str, folder: Path) -> list[RawItem]:
    """No items for test; an error for the splits that training needs."""
    if split == "test":
        return []
    held = ", ".join(sorted(path.name for path in folder.iterdir())[:10]) or "nothing"
    raise DataError(
        what,
        hint="split_mode split_dir reads train/, val/ and test/, split_mode file reads train.jsonl, val.jsonl and "
        f"test.jsonl; {folder.name} holds: {held}",
    )


def _data_path(settings: DataSettings, files: _Files) -> Path:
    if not settings.data_path:
        raise SettingRefused(
            "env.data_path",
            f" is not set, but split_mode {settings.split_mode} needs it",
            hint=f"name the {_either(files.suffixes)} file that holds the items",
        )
    return Path(settings.data_path)


def sole_file(path: Path, suffixes: Sequence[str] = SUFFIXES) -> Path:
    """The file, or the only one with such a suffix in a folder; raises DataError when there is not exactly one."""
    if not path.is_dir():
        return path
    files = item_files(path, suffixes)
    if len(files) == 1:
        return files[0]
    if any((path / split).is_dir() for split in _SPLITS):
        raise DataError(
            f"{path} is a folder that is split already", hint="set env.split_mode: split_dir and env.split_dir"
        )
    found = ", ".join(file.name for file in files) or "none"
    raise DataError(
        f"{path} is a folder, not a file, and not one {_either(suffixes)} file is in it but: {found}",
        hint="set env.data_path to the file that holds the items",
    )


def _either(names: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _split_folder(settings: DataSettings) -> Path:
    if not settings.split_dir:
        raise SettingRefused(
            "env.split_dir",
            f" is not set, but split_mode {settings.split_mode} needs it",
            hint="name the folder that holds train, val and test",
        )
    folder = Path(settings.split_dir)
    if not folder.is_dir():
        what = "is a file, not a folder" if folder.exists() else "does not exist"
        raise DataError(f"{folder} {what}", hint="set env.split_dir to the folder that holds train, val and test")
    return folder


_MODES: Mapping[str, Callable[[DataSettings, list[str], _Files], _Divided]] = {
    "ratio": _by_ratio,
    "field": _by_field,
    "split_dir": _by_folders,
    "file": _by_files,
}


def _refuse_shared_ids(divided: _Divided) -> None:
    seen: dict[str, tuple[Split, str]] = {}
    for split in _SPLITS:
        for item in divided[split]:
            if item.id in seen:
                other, where = seen[item.id]
                raise item.refusal(
                    f"also in the {other} split ({where})",
                    "keep it in one split: what was trained on must not be scored",
                )
        seen.update((item.id, (split, item.where)) for item in divided[split])


def _refuse_empty(divided: _Divided, settings: DataSettings) -> None:
    empty = [split for split in _SPLITS if split != "test" and not divided[split]]
    if not empty:
        return
    sizes = ", ".join(f"{split} {len(divided[split])}" for split in _SPLITS)
    fixes = {
        "ratio": f"add items, or give {empty[0]} a larger share in env.split_ratio (now "
        f"{settings.split_ratio or _DEFAULT_RATIO})",
        "field": f'mark some items with "{settings.split_field or "split"}": "{empty[0]}"',
    }
    raise DataError(
        f"the {empty[0]} split is empty ({sizes})", hint=fixes.get(settings.split_mode, f"put items into {empty[0]}")
    )
