"""OfficeQA's items: rows of the published CSV, or JSON with the same fields."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from attrs import evolve, field, frozen

from skillopt_es.adapters.environments.csv_rows import read_csv_rows
from skillopt_es.adapters.environments.data import SUFFIXES as JSON_SUFFIXES
from skillopt_es.adapters.environments.data import RawItem, or_build, read_rows
from skillopt_es.adapters.environments.officeqa.documents import Corpus, Document, digest_of_file
from skillopt_es.adapters.environments.officeqa.pages import Page, parsed_file, wanted_pages
from skillopt_es.adapters.environments.splits import sole_file
from skillopt_es.adapters.environments.text import named
from skillopt_es.errors import DataError
from skillopt_es.events.values import Json, digest_of

SUFFIXES = (".csv", *JSON_SUFFIXES)
_UNTYPED = "officeqa"
# A comma inside an address is part of it.
_BEFORE_URL = re.compile(r",(?=\s*https?://)")


@frozen(kw_only=True)
class OfficeItem:
    """A question with its answer, where that stands, and the documents that may be read to find it."""

    id: str
    task_type: str
    question: str
    answer: str
    files: tuple[str, ...]
    sources: tuple[str, ...]
    documents: tuple[Document, ...]
    pages: tuple[Page, ...]


@frozen
class Library:
    """Reads items and finds their documents; without a corpus there are none. `oracle` adds the pages of the answer."""

    corpus: Corpus | None
    oracle: bool = False
    _digests: dict[Path, str] = field(factory=dict, init=False, repr=False)

    def read(self, path: Path, notes: list[str]) -> list[RawItem]:
        """The items of a file, with digests of the documents that they are answered from."""
        file = sole_file(path, SUFFIXES)
        items: list[RawItem] = []
        seen: dict[str, str] = {}
        for where, row in _rows(file):
            item = _raw_item(where, row)
            if item.id in seen:
                raise DataError(f"{where}: id {item.id!r} is already used at {seen[item.id]}", hint="keep one of them")
            seen[item.id] = where
            items.append(item)
        if not items:
            raise DataError(f"{file} holds no item", hint="put one question into each row")
        return self._completed(items, notes)

    def item(self, raw: RawItem) -> OfficeItem:
        """The item of a row; raises DataError for one that cannot be asked or graded."""
        files = tuple(name.replace("\\", "/").rpartition("/")[2] for name in list_cell(raw.fields.get("source_files")))
        sources = list_cell(raw.fields.get("source_docs"))
        question, answer = _text(raw, "question"), _text(raw, "ground_truth") or _text(raw, "answer")
        if not question:
            raise raw.refusal("`question` is missing or blank", or_build("officeqa", raw, "question", "fill it"))
        if not answer:
            raise raw.refusal("there is neither `ground_truth` nor `answer`", "write the expected answer into one")
        return OfficeItem(
            id=raw.id,
            task_type=_text(raw, "category") or _text(raw, "difficulty") or _UNTYPED,
            question=question,
            answer=answer,
            files=files,
            sources=sources,
            documents=self.corpus.named(files) if self.corpus else (),
            pages=wanted_pages(files, sources) if self.oracle else (),
        )

    def _completed(self, raws: list[RawItem], notes: list[str]) -> list[RawItem]:
        if self.corpus is None:
            return raws
        completed: list[RawItem] = []
        without_documents: list[str] = []
        without_pages: list[str] = []
        for raw in raws:
            item = self.item(raw)
            files = [parsed_file(self.corpus.roots, page.file) for page in item.pages]
            there = [file for file in files if file]
            without_documents += [] if item.documents else [item.id]
            without_pages += [item.id] if self.oracle and not there else []
            digests: list[Json] = [[each.name, self._digest(each.path)] for each in item.documents]
            digests += [[file.name, self._digest(file)] for file in dict.fromkeys(there)]
            completed.append(evolve(raw, fields={**raw.fields, "documents": digest_of(json.dumps(digests).encode())}))
        _note(notes, without_documents, "name documents that are not there: their targets have nothing to read")
        _note(notes, without_pages, "have no oracle page: their targets are asked without one")
        return completed

    def _digest(self, path: Path) -> str:
        if path not in self._digests:
            self._digests[path] = digest_of_file(path)
        return self._digests[path]


def list_cell(value: Json | None) -> tuple[str, ...]:
    """The entries of a cell: a list, JSON of one, a line each, or with commas between them."""
    if isinstance(value, str) and value.strip().startswith("["):
        with suppress(ValueError, RecursionError):  # a text that only looks like JSON
            value = json.loads(value)
    if isinstance(value, str):
        text = value.strip()
        if "\n" in text or "\r" in text:
            parts = text.splitlines()
        else:
            parts = _BEFORE_URL.split(text) if "://" in text else text.split(",")
    else:
        parts = [entry for entry in value if isinstance(entry, str)] if isinstance(value, list) else []
    return tuple(part.strip() for part in parts if part.strip())


def _note(notes: list[str], names: list[str], what: str) -> None:
    if names:
        notes.append(f"{len(names)} items {what}: {named(names)}")


def _rows(file: Path) -> Iterator[tuple[str, Json]]:
    yield from read_csv_rows(file) if file.suffix == ".csv" else read_rows(file)


def _raw_item(where: str, row: Json) -> RawItem:
    if not isinstance(row, dict):
        raise DataError(f"{where}: an item must be an object", hint='write it as {"uid": …}')
    name = next((row[key] for key in ("uid", "id") if row.get(key) not in (None, "")), None)
    if isinstance(name, bool) or not isinstance(name, str | int) or not str(name).strip():
        raise DataError(f"{where}: this item has no `uid` and no `id`", hint='add one: "uid": "UID0001"')
    return RawItem(id=str(name).strip(), fields=row, where=where)


def _text(raw: RawItem, key: str) -> str:
    value = raw.fields.get(key)
    if value is None:
        return ""
    if isinstance(value, bool | list | dict):
        raise raw.refusal(f"`{key}` must be text or a number", f'write "{key}": "…"')
    return str(value).strip()
