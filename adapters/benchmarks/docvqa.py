"""DocVQA: questions by id, each with the image of its page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from skillopt_es.adapters.benchmarks.plan import Fields, Found
from skillopt_es.adapters.benchmarks.tables import Row, looked_up, table_files, text_of
from skillopt_es.adapters.environments.csv_rows import texts_of
from skillopt_es.adapters.environments.data import RawItem
from skillopt_es.adapters.environments.text import named
from skillopt_es.errors import DataError

_IMAGES = {b"\x89PNG\r\n\x1a\n": ".png", b"\xff\xd8\xff": ".jpg"}
_LISTED = ("topic", "ucsf_document_id", "ucsf_document_page_no", "source_split")


def read(folder: Path, wanted: Mapping[str, RawItem]) -> Found:
    """What a folder of downloads holds of the wanted items."""
    files = table_files(folder, suffixes=(".parquet", ".csv", ".jsonl"))
    by_question = {str(item.fields.get("questionId", item.id)): item for item in wanted.values()}
    copies: dict[str, Path | bytes] = {}
    used: list[Path] = []

    def make(row: Row, listed: RawItem, where: str) -> Fields:
        answers = texts_of(row.get("answers"))
        if answers is None:
            raise DataError(
                f"{where}: `answers` is no list of texts in quotes",
                hint='write the cell as a JSON list of texts: ["1,000"]; anything else loses digits',
            )
        question, document = text_of(row, "questionId", where), text_of(row, "docId", where)
        image = _image(row, folder)
        if isinstance(image, Path):
            used.append(image)
        place = f"images/q{question}_d{document}{_suffix(image, where)}"
        copies[place] = image
        return {
            "id": listed.id,
            "questionId": question,
            "docId": document,
            "question": text_of(row, "question", where),
            "answers": [*answers],
            "image_path": place,
            **{key: listed.fields[key] for key in _LISTED if key in listed.fields},
        }

    found = looked_up(files, by_question, key="questionId", make=make)
    items = {str(fields["id"]): fields for fields in found.values()}
    return Found(items=items, inputs=[*files, *used], copies=copies)


def _image(row: Row, folder: Path) -> Path | bytes:
    """The bytes in the table, or the file with the name that the row gives, wherever below the folder it lies."""
    held = row.get("image")
    if isinstance(held, Mapping) and isinstance(held.get("bytes"), bytes):
        return bytes(held["bytes"])
    given = row.get("image_path") or (held.get("path") if isinstance(held, Mapping) else held)
    name = PurePosixPath(given.replace("\\", "/")).name if isinstance(given, str) else ""
    places = sorted(folder.rglob(name)) if name else []
    if not places:
        raise DataError(
            f"question {row.get('questionId')}: no image {name or 'is named'} in {folder}",
            hint="download the images, too; `image_path` names the file",
        )
    if len(places) > 1:
        raise DataError(f"{name} is there {len(places)} times: {named(map(str, places))}", hint="keep one of them")
    return places[0]


def _suffix(image: Path | bytes, where: str) -> str:
    data = image if isinstance(image, bytes) else image.read_bytes()
    for head, suffix in _IMAGES.items():
        if data.startswith(head):
            return suffix
    raise DataError(f"{where}: its image is neither PNG nor JPEG", hint="download the images again")
