"""What is known of a benchmark's data before any of it is there: sources, licences, sizes, and how it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from attrs import field, frozen

from skillopt_es.adapters.environments.data import RawItem
from skillopt_es.events.values import Json, Split

SPLITS: tuple[Split, ...] = ("train", "val", "test")
Fields = Mapping[str, Json]
Divided = Mapping[Split, Sequence[RawItem]]


@frozen(kw_only=True)
class Source:
    """One thing to download: where it is, on what terms, and what to do with it."""

    what: str
    where: str
    licence: str
    get: str
    note: str = ""


@frozen(kw_only=True)
class Found:
    """
    What the downloaded files hold of the wanted items, by id; `inputs` are the files that were read.

    `copies` are files that belong to items, by their place below the new folder; a place may come with its bytes.
    """

    items: Mapping[str, Fields]
    inputs: Sequence[Path]
    copies: Mapping[str, Path | bytes] = field(factory=dict)
    notes: Sequence[str] = ()


Read = Callable[[Path, Mapping[str, RawItem]], Found]
Divide = Callable[[Path], Divided]


@frozen(kw_only=True)
class Benchmark:
    """
    A benchmark: `read` looks wanted items up in a folder of downloads.

    `id_folder` is the list of released ids in a checkout of the original, `sizes` how many it has for train, val and
    test. `divide` is the released split as a rule, where one is known. `paths` are fields that name files of the data.
    """

    name: str
    about: str
    sources: tuple[Source, ...]
    id_folder: str
    sizes: tuple[int, int, int]
    required: tuple[str, ...]
    read: Read
    divide: Divide | None = None
    paths: tuple[str, ...] = ()
    warning: str = ""
