"""SpreadsheetBench's items: an instruction, the cells that are graded, and pairs of workbooks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from attrs import evolve, field, frozen

from skillopt_es.adapters.environments.data import RawItem, read_items
from skillopt_es.adapters.environments.splits import plain_items
from skillopt_es.adapters.environments.spreadsheetbench.cells import Scoring
from skillopt_es.adapters.environments.spreadsheetbench.ranges import Range, read_ranges
from skillopt_es.adapters.environments.text import named
from skillopt_es.errors import DataError
from skillopt_es.events.values import Json, digest_of

RECORDS = "dataset.json"
_PAIRS = {"input": "answer", "init": "golden", "initial": "golden"}
_NUMBERED = re.compile(r"(?P<number>[^_]+)_(?P<name>.+)_(?P<kind>input|init|initial|answer|golden)\.xlsx")
_BARE = re.compile(r"(?P<kind>input|init|initial|answer|golden)\.xlsx")


@frozen(kw_only=True)
class Case:
    """One workbook to change, and what should come of it."""

    number: str
    given: Path
    gold: Path


@frozen(kw_only=True)
class SheetItem:
    """One task with its cases; `helped` says that its target may be told which cells are wrong."""

    id: str
    task_type: str
    instruction: str
    instruction_type: str
    position: str
    ranges: tuple[Range, ...]
    cases: tuple[Case, ...]
    helped: bool = False


@frozen
class Shelf:
    """Reads items whose workbooks lie under `root`; without one, beside the file that lists them."""

    root: Path | None
    scoring: Scoring
    _items: dict[str, SheetItem] = field(factory=dict, init=False)

    def read(self, path: Path, notes: list[str]) -> list[RawItem]:
        """The entries of a file or an unpacked archive that can be asked, with digests of their workbooks."""
        file = path / RECORDS if (path / RECORDS).is_file() else path
        listed = plain_items(file, notes)
        root = self.root or (file if file.is_dir() else file.parent)
        left_out: list[str] = []
        kept: list[RawItem] = []
        for raw in _completed(listed, root):
            try:
                item = _item(raw, root, self.scoring, notes)
            except ValueError as error:
                left_out.append(f"{raw.id} ({error})")
            else:
                self._items[raw.id] = item
                kept.append(evolve(raw, fields={**raw.fields, "workbooks": [*_digests(item.cases)]}))
        if not kept:
            hint = f"the first: {left_out[0]}; workbooks are looked for in {root} (env.data_root)" if left_out else ""
            raise DataError(f"{file}: no entry that can be asked", hint=hint)
        if left_out:
            notes.append(f"left out {len(left_out)} entries: {named(left_out)}")
        return kept

    def item(self, raw: RawItem) -> SheetItem:
        """The item of an entry that was read."""
        return self._items[raw.id]


def cases_in(folder: Path, notes: list[str]) -> tuple[Case, ...]:
    """The pairs of workbooks in a folder, by number; raises ValueError when there is none or one lacks its partner."""
    files = sorted(file for file in folder.glob("*.xlsx") if file.is_file()) if folder.is_dir() else []
    if not files:
        raise ValueError(f"no workbook in {folder.name}" if folder.is_dir() else f"there is no folder {folder.name}")
    named = [(found, file) for file in files if (found := _NUMBERED.fullmatch(file.name))]
    if not named:
        return (_bare_case({found["kind"]: file for file in files if (found := _BARE.fullmatch(file.name))}),)
    golds = {(found["number"], found["name"], found["kind"]): file for found, file in named}
    cases = []
    for found, file in named:
        if found["kind"] in _PAIRS:
            number, partner = found["number"], _PAIRS[found["kind"]]
            gold = golds.get((number, found["name"], partner)) or _misnamed(number, partner, golds, named)
            if gold is None:
                raise ValueError(f"{file.name} has no {number}_{found['name']}_{partner}.xlsx")
            if gold.name != f"{number}_{found['name']}_{partner}.xlsx":
                notes.append(f"{file.name} is paired with {gold.name}: the only one of its number")
            cases.append(Case(number=number, given=file, gold=gold))
    if not cases:
        raise ValueError(f"no workbook to change in {folder.name}")
    return tuple(sorted(cases, key=lambda case: (not case.number.isdecimal(), len(case.number), case.number)))


def _misnamed(
    number: str, kind: str, golds: Mapping[tuple[str, str, str], Path], named: Iterable[tuple[re.Match[str], Path]]
) -> Path | None:
    """The expected workbook of a case whose name has another id, when there is no doubt that it is the one."""
    inputs = [found for found, _ in named if found["number"] == number and found["kind"] in _PAIRS]
    same = [file for (owner, _, what), file in golds.items() if (owner, what) == (number, kind)]
    return same[0] if len(inputs) == len(same) == 1 else None


def _bare_case(files: Mapping[str, Path]) -> Case:
    for kind, partner in _PAIRS.items():
        if kind in files and partner in files:
            return Case(number="1", given=files[kind], gold=files[partner])
    raise ValueError("no pair of workbooks with names as in 1_ID_input.xlsx and 1_ID_answer.xlsx")


def _completed(listed: list[RawItem], root: Path) -> list[RawItem]:
    """The entries; those that are ids only are looked up in the records that lie beside the workbooks."""
    if all("instruction" in raw.fields for raw in listed) or not (root / RECORDS).is_file():
        return listed
    records = {raw.id: raw.fields for raw in read_items(root / RECORDS)}
    return [evolve(raw, fields={**records.get(raw.id, {}), **raw.fields}) for raw in listed]


def _item(raw: RawItem, root: Path, scoring: Scoring, notes: list[str]) -> SheetItem:
    instruction = _text(raw.fields.get("instruction"))
    if not instruction:
        raise ValueError("`instruction` is missing or blank")
    kind = _text(raw.fields.get("instruction_type"))
    position, sheet = _text(raw.fields.get("answer_position")), _text(raw.fields.get("answer_sheet"))
    return SheetItem(
        id=raw.id,
        task_type=_task_type(kind),
        instruction=instruction,
        instruction_type=kind,
        position=position if "!" in position or not sheet else f"{position} (sheet {sheet})",
        ranges=read_ranges(position, sheet=sheet, scoring=scoring),
        cases=cases_in(_folder(raw, root), notes),
    )


def _folder(raw: RawItem, root: Path) -> Path:
    """Where the workbooks are; raises DataError for a place outside the data."""
    named = _text(raw.fields.get("spreadsheet_path")) or f"spreadsheet/{raw.id}"
    folder = (root / named).resolve()
    if not folder.is_relative_to(root.resolve()):
        raise raw.refusal(f"`spreadsheet_path` points outside of the data: {named!r}", f"name a folder below {root}")
    return folder


def _digests(cases: Iterable[Case]) -> Iterable[Json]:
    """What the workbooks hold, so that a run is not resumed on others."""
    for case in cases:
        yield [case.number, digest_of(case.given.read_bytes()), digest_of(case.gold.read_bytes())]


def _task_type(kind: str) -> str:
    lower = kind.lower()
    return "cell_level" if "cell" in lower else "sheet_level" if "sheet" in lower else "other"


def _text(value: Json | None) -> str:
    return str(value).strip() if isinstance(value, str | int) and not isinstance(value, bool) else ""
