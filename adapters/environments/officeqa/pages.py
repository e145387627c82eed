"""The pages that hold an answer: which ones they are, and their text out of the parsed bulletins."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from attrs import define, field, frozen

from skillopt_es.adapters.environments.officeqa.documents import PARSED, UnreadableError
from skillopt_es.events.values import Json

MOST_OF_A_PAGE = 24_000  # the original's, as the next one: scores compare only where the same text is seen
MOST_OF_ALL = 80_000  # the original's
_CUT = "[… the page is cut here …]"
_LEFT_OUT = "[… further pages are left out …]"


@frozen
class Page:
    """A page of a bulletin: the text file it belongs to, its number, and where it was published."""

    file: str
    number: int
    source: str


def wanted_pages(files: Sequence[str], sources: Sequence[str]) -> tuple[Page, ...]:
    """The pages that the sources name: paired with the files in order, or all with the only file."""
    pairs = [(files[0], source) for source in sources] if len(files) == 1 else list(zip(files, sources, strict=False))
    found = ((file, source, _page_number(source)) for file, source in pairs)
    pages: dict[tuple[str, int], Page] = {}
    for file, source, number in found:
        if number is not None:
            pages.setdefault((file, number), Page(file, number, source))
    return tuple(pages.values())


def parsed_file(roots: Sequence[Path], file: str) -> Path | None:
    """The parsed JSON of a text file, in `jsons/` under or beside the folders with texts."""
    for root in roots:
        for place in (root, root.parent, root / PARSED, root.parent / PARSED):
            folder = place / "jsons"
            path = folder / f"{Path(file).stem}.json"
            if path.is_file() and path.resolve().is_relative_to(folder.resolve()):
                return path
    return None


def oracle_text(roots: Sequence[Path], pages: Sequence[Page]) -> str:
    """The text of the pages that there are, within bounds; raises UnreadableError for a file that cannot be read."""
    blocks: list[str] = []
    room = MOST_OF_ALL
    for page in pages:
        path = parsed_file(roots, page.file)
        text = page_text(path, page.number) if path else ""
        if not text:
            continue
        block = f"### {page.file}, page {page.number}\nSource: {page.source}\n\n{_cut(text, MOST_OF_A_PAGE, _CUT)}"
        if len(block) > room:
            blocks.append(_cut(block, room, _CUT) if room > len(_CUT) else _LEFT_OUT)
            break
        blocks.append(block)
        room -= len(block)
    return "\n\n".join(dict.fromkeys(blocks))


def page_text(path: Path, number: int) -> str:
    """The elements of one page in their order, tables as pipe tables; empty when the page is not there."""
    try:
        return _page_text(path, number, path.stat().st_mtime_ns)
    except OSError as error:
        raise UnreadableError(f"{path.name} cannot be read: {error.strerror}") from error


@lru_cache(maxsize=512)
def _page_text(path: Path, number: int, _changed: int) -> str:
    texts = (_rendered(element) for element in _elements(path) if number in _page_ids(element))
    return "\n\n".join(text for text in texts if text)


def pipe_table(source: str) -> str:
    """An HTML table as a pipe table whose header is the first row; empty when it has no cell."""
    reader = _TableReader()
    reader.feed(source)
    reader.close()
    rows = [row for row in reader.rows if row]
    if not rows:
        return ""
    width = max(map(len, rows))
    lines = ["| " + " | ".join([*row, *[""] * (width - len(row))]) + " |" for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]])


def _page_number(source: str) -> int | None:
    try:
        query = parse_qs(urlsplit(source).query)
    except ValueError:
        return None
    values = (value for key in ("page", "pagenum", "page_id") for value in query.get(key, ()))
    return next((int(value) for value in values if value.isascii() and value.isdecimal() and len(value) < 7), None)


def _elements(path: Path) -> Iterator[dict[str, Json]]:
    try:
        parsed = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"{path.name} is not JSON") from error
    document = parsed.get("document") if isinstance(parsed, dict) else None
    elements = document.get("elements") if isinstance(document, dict) else None
    if not isinstance(elements, list):
        raise UnreadableError(f"{path.name} has no list `document.elements`")
    yield from (element for element in elements if isinstance(element, dict))


def _page_ids(element: dict[str, Json]) -> set[Json]:
    boxes = element.get("bbox")
    boxes = boxes if isinstance(boxes, list) else [boxes]
    return {box["page_id"] for box in boxes if isinstance(box, dict) and isinstance(box.get("page_id"), int)}


def _rendered(element: dict[str, Json]) -> str:
    content = element.get("content")
    if not isinstance(content, str):
        return ""
    table = pipe_table(content) if "<table" in content.lower() else ""
    return table or re.sub(r"\r\n?", "\n", html.unescape(content)).strip()


def _cut(text: str, limit: int, marker: str) -> str:
    return text if len(text) <= limit else f"{text[: limit - len(marker) - 1]}\n{marker}"


@define
class _TableReader(HTMLParser):
    """Collects the cells of a table, each on one line and without what would end it."""

    rows: list[list[str]] = field(factory=list)
    _cell: list[str] | None = None

    def __attrs_pre_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A row or a cell begins."""
        if tag in ("td", "th", "tr"):
            self._end_cell()
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self._cell = []
        elif tag == "br" and self._cell is not None:
            self._cell.append(" ")

    def handle_endtag(self, tag: str) -> None:
        """A cell ends with itself, its row or its table."""
        if tag in ("td", "th", "tr", "table"):
            self._end_cell()

    def handle_data(self, data: str) -> None:
        """Text outside cells is none of the table's."""
        if self._cell is not None:
            self._cell.append(data)

    def _end_cell(self) -> None:
        if self._cell is None:
            return
        if not self.rows:
            self.rows.append([])
        self.rows[-1].append(" ".join("".join(self._cell).split()).replace("|", "\\|"))
        self._cell = None
