"""SpreadsheetBench: tasks by id, each with pairs of workbooks, from the unpacked archive or the archive itself."""

from __future__ import annotations

import re
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from attrs import evolve

from skillopt_es.adapters.benchmarks.plan import Fields, Found
from skillopt_es.adapters.environments.data import RawItem, read_items
from skillopt_es.adapters.environments.text import named
from skillopt_es.errors import DataError
from skillopt_es.events.values import digest_of

RECORDS = "dataset.json"
_GIVEN = re.compile(r"(?:(?P<number>\d+)_.+_)?(?:input|init|initial)\.xlsx")
_GOLD = re.compile(r"(?:(?P<number>\d+)_(?P<owner>.+)_)?(?:answer|golden)\.xlsx")
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,60}")
# Bytes: a small archive may unpack to gigabytes that fill the disk.
_LARGEST = 512 * 1024 * 1024


def unpacked(archive: Path, into: Path) -> Path:
    """The folder that a tar archive was unpacked into; files and folders only, none of them outside."""
    total = 0
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                place = PurePosixPath(member.name)
                if place.is_absolute() or ".." in place.parts or not (member.isfile() or member.isdir()):
                    raise DataError(
                        f"{archive}: {member.name!r} is a link or points outside of the archive",
                        hint="do not trust this archive; download it from its source",
                    )
                total += member.size
                if total > _LARGEST:
                    raise DataError(f"{archive} unpacks to more than {_LARGEST >> 20} MB", hint="unpack it yourself")
                if member.isfile():
                    data = tar.extractfile(member)
                    assert data is not None
                    target = into / place
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(data.read())
    except (tarfile.TarError, EOFError, OSError) as error:
        raise DataError(f"{archive}: cannot be unpacked: {error}", hint="download it again") from error
    return into


def read(folder: Path, wanted: Mapping[str, RawItem]) -> Found:
    """What a folder of downloads holds of the wanted items."""
    archives = [folder] if folder.is_file() else sorted(folder.rglob("*.tar.gz"))
    if not archives or any(folder.rglob(RECORDS)):
        return _read_folder(folder, wanted)
    if len(archives) > 1:
        raise DataError(f"{folder} has {len(archives)} archives: {named(map(str, archives))}", hint="name one of them")
    with tempfile.TemporaryDirectory() as into:
        found = _read_folder(unpacked(archives[0], Path(into)), wanted)
        held = {place: book if isinstance(book, bytes) else book.read_bytes() for place, book in found.copies.items()}
    return evolve(found, inputs=archives, copies=held)


def _read_folder(folder: Path, wanted: Mapping[str, RawItem]) -> Found:
    records = sorted(folder.rglob(RECORDS))
    if len(records) != 1:
        where = named(map(str, records)) if records else "none"
        raise DataError(f"{folder}: one {RECORDS} is needed, found: {where}", hint="name the unpacked archive")
    root = records[0].parent
    rows = {item.id: item for item in read_items(records[0])}
    items: dict[str, Fields] = {}
    copies: dict[str, Path | bytes] = {}
    notes: list[str] = []
    unpaired: list[str] = []
    for name in wanted:
        if name not in rows:
            continue
        books = _books(rows[name], root)
        why = _pairing(name, books, notes)
        if why:
            unpaired.append(f"{name} ({why})")
        own = f"spreadsheet/{name if _PLAIN.fullmatch(name) else digest_of(name.encode())[:16]}"
        copies |= {f"{own}/{book.name}": book for book in books}
        items[name] = {**rows[name].fields, "id": name, "spreadsheet_path": own}
    if unpaired:
        raise DataError(f"{len(unpaired)} tasks have no pair of workbooks: {named(unpaired)}", hint="unpack it again")
    inputs = [records[0], *(book for book in copies.values() if isinstance(book, Path))]
    return Found(items=items, inputs=inputs, copies=copies, notes=notes)


def _books(raw: RawItem, root: Path) -> list[Path]:
    given = raw.fields.get("spreadsheet_path")
    folder = (root / (given if isinstance(given, str) and given else f"spreadsheet/{raw.id}")).resolve()
    if not folder.is_relative_to(root.resolve()):
        raise raw.refusal(
            "`spreadsheet_path` points outside of the data", "name a folder below the one with the records"
        )
    return sorted(file for file in folder.glob("*.xlsx") if file.is_file()) if folder.is_dir() else []


def _pairing(name: str, books: list[Path], notes: list[str]) -> str:
    """Why a task's workbooks are no pairs; empty when they are. Odd names are noted."""
    given = sorted(found["number"] or "1" for book in books if (found := _GIVEN.fullmatch(book.name)))
    golds = [found for book in books if (found := _GOLD.fullmatch(book.name))]
    if not given:
        return "no workbook to change"
    if given != sorted(found["number"] or "1" for found in golds):
        return "a workbook lacks its expected one"
    notes += [f"{name}: {found.string} has another id" for found in golds if found["owner"] not in (None, name)]
    return ""
