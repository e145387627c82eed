"""LiveMathematicianBench's items: the public monthly files, or items that were normalised before."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

from skillopt_es.adapters.environments.data import RawItem, or_build, read_rows
from skillopt_es.adapters.environments.livemath.choices import Choices, read_choices
from skillopt_es.adapters.environments.text import named
from skillopt_es.errors import DataError
from skillopt_es.events.values import Json

MONTHLY_FILES = "qa_*_final.json"
_UNTYPED = "math_mcq"


@frozen
class LiveMathItem:
    """A question with its choices; the theorem and its proof sketch are there for those who show them."""

    id: str
    task_type: str
    question: str
    choices: Choices
    theorem: str
    sketch: str
    told: bool = False  # whether analysts are shown both


def read_months(path: Path, notes: list[str]) -> list[RawItem]:
    """The entries of one file or of all monthly files under a folder; a note names those that cannot be asked."""
    files = sorted(path.rglob(MONTHLY_FILES)) if path.is_dir() else [path]
    if not files:
        raise DataError(f"{path}: no {MONTHLY_FILES} file in it or below", hint="unpack the public data there")
    items: list[RawItem] = []
    left_out: list[str] = []
    seen: dict[str, str] = {}
    for file in files:
        for place, (where, row) in enumerate(read_rows(file)):
            item = _raw_item(where, row, place)
            if item.id in seen:
                raise DataError(f"{where}: id {item.id!r} is already used at {seen[item.id]}", hint="keep one of them")
            seen[item.id] = where
            try:
                _parts(item)
            except ValueError as error:
                left_out.append(f"{item.id} ({error})")
            else:
                items.append(item)
    if not items:
        raise DataError(f"{path}: no entry that can be asked", hint=f"the first: {left_out[0]}" if left_out else "")
    if left_out:
        notes.append(f"left out {len(left_out)} entries: {named(left_out)}")
    return items


def livemath_item(raw: RawItem) -> LiveMathItem:
    """The item of an entry; raises DataError for one that cannot be asked."""
    try:
        question, choices = _parts(raw)
    except ValueError as error:
        asked = "mcq" if "mcq" in raw.fields else "question"
        hint = or_build("livemathematicianbench", raw, asked, 'write "question", "choices" and "correct_choice"')
        raise raw.refusal(str(error), hint) from None
    return LiveMathItem(
        id=raw.id,
        task_type=_first_type(raw.fields.get("theorem_type")),
        question=question,
        choices=choices,
        theorem=_text(raw.fields.get("theorem")),
        sketch=_text(raw.fields.get("sketch")),
    )


def _raw_item(where: str, row: Json, place: int) -> RawItem:
    if not isinstance(row, dict):
        raise DataError(f"{where}: an entry must be an object", hint="write it as {…}")
    number = row.get("no", place + 1)
    month = row.get("month")
    name = row.get("id") or (f"{month}:{number}" if month else str(number))
    return RawItem(id=str(name), fields=row, where=where)


def _parts(raw: RawItem) -> tuple[str, Choices]:
    asked = raw.fields.get("mcq", raw.fields)
    if not isinstance(asked, Mapping):
        raise ValueError("`mcq` must be an object")
    question = _text(asked.get("question")).strip()
    if not question:
        raise ValueError("`question` is missing or blank")
    return question, read_choices(asked.get("choices"), asked.get("correct_choice"))


def _text(value: Json | None) -> str:
    return value if isinstance(value, str) else ""


def _first_type(value: Json | None) -> str:
    kinds = value if isinstance(value, list) else [value]
    return next((kind.strip() for kind in kinds if isinstance(kind, str) and kind.strip()), _UNTYPED)
