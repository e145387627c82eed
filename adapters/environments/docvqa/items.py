"""DocVQA's items: a question, the images of its pages, and the accepted answers; from JSON or CSV."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from attrs import evolve, field, frozen

from skillopt_es.adapters.environments.csv_rows import read_csv_rows, texts_of
from skillopt_es.adapters.environments.data import SUFFIXES as JSON_SUFFIXES
from skillopt_es.adapters.environments.data import RawItem, or_build, read_rows
from skillopt_es.adapters.environments.docvqa.evaluator import Scoring
from skillopt_es.adapters.environments.docvqa.pictures import Picture, UnusableImageError, picture_at
from skillopt_es.adapters.environments.splits import sole_file
from skillopt_es.adapters.environments.text import named
from skillopt_es.errors import DataError
from skillopt_es.events.values import Json

SUFFIXES = (*JSON_SUFFIXES, ".csv")
_PATH_MARK = "document_path:"
_UNTYPED = "docvqa"


@frozen(kw_only=True)
class DocVQAItem:
    """A question about the pages in these pictures."""

    id: str
    task_type: str
    question: str
    answers: tuple[str, ...]
    pictures: tuple[Picture, ...]


@frozen
class Shelf:
    """Reads items whose images lie under `root`; without one, beside the file that lists them."""

    root: Path | None
    most_bytes: int
    scoring: Scoring
    _items: dict[str, DocVQAItem] = field(factory=dict, init=False)

    def read(self, path: Path, notes: list[str]) -> list[RawItem]:
        """The rows of a file, with digests of their images; `extended` leaves out those without an answer."""
        file = sole_file(path, SUFFIXES)
        rows = read_csv_rows(file) if file.suffix == ".csv" else read_rows(file)
        read: list[RawItem] = []
        unanswered: list[str] = []
        seen: dict[str, str] = {}
        for where, row in rows:
            raw = _raw_item(where, row)
            if raw.id in seen:
                raise raw.refusal(f"this id is already used at {seen[raw.id]}", "give every item an id of its own")
            seen[raw.id] = where
            item = _item(raw, self.root or file.parent, self.most_bytes)
            if not any(item.answers):
                unanswered.append(item.id)
                if self.scoring == "extended":
                    continue
            self._items[item.id] = item
            digests: list[Json] = [picture.digest for picture in item.pictures]
            read.append(evolve(raw, fields={**raw.fields, "image_digests": digests}))
        if unanswered:
            notes.append(_unanswered(unanswered, self.scoring))
        return read

    def item(self, raw: RawItem) -> DocVQAItem:
        """The item of a row that was read."""
        return self._items[raw.id]


def _raw_item(where: str, row: Json) -> RawItem:
    if not isinstance(row, Mapping):
        raise DataError(f"{where}: an item must be an object", hint="write it as {…}")
    name = next((row[key] for key in ("questionId", "id") if row.get(key) not in (None, "")), "")
    if isinstance(name, bool) or not isinstance(name, str | int) or not str(name).strip():
        raise DataError(f"{where}: this item has no `id` or `questionId`", hint='add a unique one: "id": "1"')
    return RawItem(id=str(name), fields=row, where=where)


def _item(raw: RawItem, root: Path, most_bytes: int) -> DocVQAItem:
    asked, _, tail = _text(raw, "question").partition(_PATH_MARK)
    if not asked.strip():
        raise raw.refusal("`question` is missing or blank", or_build("docvqa", raw, "question", 'add "question": "…"'))
    names = _image_names(raw, tail.strip())
    if not names:
        raise raw.refusal("`image_path` is missing", "name the image of the page, as a path below the data")
    try:
        answers = accepted(raw.fields)
    except ValueError as error:
        raise raw.refusal(str(error), 'put each accepted answer in quotes: "answers": ["1,000"]') from None
    try:
        pictures = tuple(picture_at(root, name, most=most_bytes) for name in names)
    except UnusableImageError as error:
        raise raw.refusal(
            str(error), f"images are PNG or JPEG files of at most env.max_image_bytes below {root}; see env.data_root"
        ) from error
    return DocVQAItem(
        id=raw.id,
        task_type=_text(raw, "topic").strip() or _text(raw, "category").strip() or _UNTYPED,
        question=asked.strip(),
        answers=answers,
        pictures=pictures,
    )


def _image_names(raw: RawItem, fallback: str) -> list[str]:
    listed = raw.fields.get("image_paths")
    if isinstance(listed, str) and listed.strip():
        return texts_of(listed) or [listed.strip()]
    if isinstance(listed, list) and listed:
        if not all(isinstance(name, str) and name.strip() for name in listed):
            raise raw.refusal("`image_paths` must be a list of paths", 'write "image_paths": ["images/1.png"]')
        return [str(name) for name in listed]
    name = _text(raw, "image_path").strip() or fallback
    return [name] if name else []


def _text(raw: RawItem, key: str) -> str:
    value = raw.fields.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise raw.refusal(f"`{key}` must be text", f'write "{key}": "…"')
    return value


def _unanswered(names: list[str], scoring: Scoring) -> str:
    if scoring == "extended":
        return f"left out for want of an answer: {named(names)}"
    return f"without an accepted answer, so that an empty one is right: {named(names)}"


KEYS = ("answers", "answer", "ground_truth")
_INNER = ("text", "answer", "value")
_BROKEN_LIST = re.compile(r"""\s*\[\s*['"]""")


def accepted(fields: Mapping[str, Json]) -> tuple[str, ...]:
    """The answers in a row; none when it has none. Raises ValueError for what is not text."""
    key = next((key for key in KEYS if fields.get(key) not in (None, "")), None)
    return () if key is None else _texts(key, fields[key])


def _texts_in(cell: str) -> tuple[str, ...]:
    """The texts of a cell that is a list of quoted texts; any other cell is one text, as it stands."""
    listed = [] if cell.strip() == "[]" else texts_of(cell)
    if listed is None and _BROKEN_LIST.match(cell):
        raise ValueError(f"`{cell.strip()}` looks like a list, but its texts are not all in quotes with commas between")
    return tuple(text.strip() for text in ((cell,) if listed is None else listed))


def _texts(key: str, value: Json) -> tuple[str, ...]:
    if isinstance(value, str):
        return _texts_in(value)
    if isinstance(value, Mapping):
        inner = next((name for name in (*KEYS, *_INNER) if name in value), None)
        if inner is None:
            raise ValueError(f"`{key}` is an object without {', '.join((*KEYS, *_INNER))}")
        return _texts(inner, value[inner])
    if isinstance(value, list):
        return tuple(text for each in value for text in _texts(key, each))
    raise ValueError(f"`{key}` holds {json.dumps(value)}, which is not text")
