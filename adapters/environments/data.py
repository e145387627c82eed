"""Reading items from JSON and JSON Lines files: every error names file, line and what to do."""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from json import JSONDecodeError
from pathlib import Path
from typing import NoReturn

from attrs import frozen

from skillopt_es.adapters.strict_json import STRICT
from skillopt_es.errors import DataError
from skillopt_es.events.plain import NotPlainError, TooLargeError, read_plain, similar_file
from skillopt_es.events.values import Json

# JSON's own white space, which is less than Python's.
_SPACE = re.compile(r"[ \t\r\n]*")
# Half of a pair. It is also found in whole ones, which come out as they were.
_LONE_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
SUFFIXES = (".json", ".jsonl")
MOST_BYTES = 500_000_000
"""Items are held in memory, which has to be enough for some times as much."""


@frozen
class RawItem:
    """One item as its file holds it; `where` is `file:line`."""

    id: str
    fields: Mapping[str, Json]
    where: str

    def refusal(self, what: str, hint: str) -> DataError:
        """The error that says what is wrong with this item."""
        return DataError(f"{self.where}: item {self.id!r}: {what}", hint=hint)


def or_build(benchmark: str, raw: RawItem, asked: str, hint: str) -> str:
    """The hint for an item that asks nothing; one without the field itself may be of a released list of ids."""
    if asked in raw.fields:
        return hint
    return f"{hint}; where this is a list of ids, `skillopt-es data build {benchmark}` writes the items that it names"


_ADD_IDS = 'add a unique one: {"id": "1", …}'


def read_items(path: Path, *, without_ids: str = _ADD_IDS) -> list[RawItem]:
    """The items of one file in file order, each with an id of its own; `without_ids` is the hint where one has none."""
    text = text_of(path)
    broken = _LONE_SURROGATE_ESCAPE.search(text) is not None
    items: list[RawItem] = []
    lines: dict[str, int] = {}
    for line, value in _values(path, text):
        item = _item(path, line, _without_lone_surrogates(value) if broken else value, without_ids)
        if item.id in lines:
            raise DataError(
                f"{item.where}: id {item.id!r} is already used on line {lines[item.id]}",
                hint="give every item an id of its own",
            )
        lines[item.id] = line
        items.append(item)
    return items


def read_rows(path: Path) -> list[tuple[str, Json]]:
    """The values of one file as they are, each with its `file:line`; for data whose items have no ids yet."""
    text = text_of(path)
    broken = _LONE_SURROGATE_ESCAPE.search(text) is not None
    return [
        (f"{path}:{line}", _without_lone_surrogates(value) if broken else value) for line, value in _values(path, text)
    ]


def item_files(folder: Path, suffixes: Sequence[str] = SUFFIXES) -> list[Path]:
    """The item files directly in a folder, alphabetically; hidden files do not count."""
    return sorted(
        path
        for path in folder.iterdir()
        if path.suffix in suffixes and not path.name.startswith(".") and path.is_file()
    )


def canonical_json(value: object) -> bytes:
    """The same bytes for the same JSON value, whatever its key order or spacing was."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def unread_hint(error: OSError) -> str:
    """What to do about a file that the system does not read."""
    if error.errno == errno.ELOOP:
        return "its symbolic links lead back to itself: name the file that they should lead to"
    return "check the file's permissions"


def text_of(path: Path) -> str:
    """What a file with items holds; raises DataError when it is not there, not text or blank."""
    if path.is_dir():
        raise DataError(f"{path} is a folder, not a file", hint="name the .json or .jsonl file that holds the items")
    try:
        data = read_plain(path, follow=True, most=MOST_BYTES)
    except FileNotFoundError:
        raise DataError(f"there is no file {path}", hint=similar_file(path) or "check the path in the config") from None
    except NotPlainError:  # a device may have no end, a pipe no writer
        raise DataError(f"{path} is not a plain file", hint="save what it gives as a file") from None
    except TooLargeError as error:
        raise DataError(f"{path} {error.strerror}", hint="keep the items that are needed") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}", hint=unread_hint(error)) from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}:{line}: not UTF-8 (byte 0x{data[error.start]:02x})", hint="save the file as UTF-8"
        ) from error
    if not text.strip():
        raise DataError(f"{path} is empty", hint="put one item on each line, or a JSON array of items")
    return text


def _values(path: Path, text: str) -> Iterator[tuple[int, Json]]:
    start = _skip_space(text, 0)
    if text[start] == "[":
        return _array(path, text, start, whole=True)
    if text[start] == "{":
        whole = _sole_object(path, text, start)
        if whole is not None:
            return _of_object(path, text, start, whole)
        return _lines(path, text)
    raise DataError(
        f"{path}:{_line_at(text, start)}: not JSON: expected `[` or `{{`, not {text[start]!r}",
        hint="put one JSON object on each line, or all of them into one JSON array; "
        "`skillopt-es import-tasks` reads other kinds of files",
    )


def _sole_object(path: Path, text: str, start: int) -> dict[str, Json] | None:
    """The object that is the whole text, or None when there are more lines after it."""
    try:
        value, end = _decode(path, text, start)
    except DataError:
        if path.suffix == ".jsonl":
            return None  # reading by lines names the broken line more exactly
        raise
    return value if isinstance(value, dict) and _skip_space(text, end) == len(text) else None


def _of_object(path: Path, text: str, start: int, whole: dict[str, Json]) -> Iterator[tuple[int, Json]]:
    if "id" in whole and not isinstance(whole["id"], dict):
        return iter([(_line_at(text, start), whole)])
    if isinstance(whole.get("data"), list):
        place = next(place for key, _, place in _members(path, text, start) if key == "data")
        return _array(path, text, place, whole=False)
    if whole and all(isinstance(value, dict) for value in whole.values()):
        return ((_line_at(text, place), value) for _, value, place in _members(path, text, start))
    raise DataError(
        f"{path}:{_line_at(text, start)}: one JSON object that is neither an item (no `id`), "
        "nor has a `data` list, nor holds only items",
        hint='give the item an `id`, or write the items as an array: [{"id": …}, …]',
    )


def _array(path: Path, text: str, start: int, *, whole: bool) -> Iterator[tuple[int, Json]]:
    """The elements of the array at `start`, each with its line."""
    line, counted = _line_at(text, start), start
    place = _skip_space(text, start + 1)
    while text[place : place + 1] != "]":
        value, end = _decode(path, text, place)
        line, counted = line + text.count("\n", counted, place), place
        yield line, value
        place = _after_comma(path, text, _skip_space(text, end), "]")
    rest = _skip_space(text, place + 1)
    if whole and rest < len(text):
        _not_json(path, JSONDecodeError("more text after the array", text, rest))


def _members(path: Path, text: str, start: int) -> Iterator[tuple[str, Json, int]]:
    """The members of the object at `start`, already known to be valid: key, value, place of the value."""
    place = _skip_space(text, start + 1)
    while text[place] != "}":
        key, end = _decode(path, text, place)
        place = _skip_space(text, _skip_space(text, end) + 1)
        value, end = _decode(path, text, place)
        yield str(key), value, place
        place = _after_comma(path, text, _skip_space(text, end), "}")


def _after_comma(path: Path, text: str, place: int, closing: str) -> int:
    """Where the next element starts, or where the closing bracket is."""
    found = text[place : place + 1]
    if found == closing:
        return place
    if found != ",":
        _not_json(path, JSONDecodeError(f"expected `,` or `{closing}`", text, place))
    following = _skip_space(text, place + 1)
    if text[following : following + 1] == closing:
        _not_json(path, JSONDecodeError(f"a comma before `{closing}`", text, place))
    return following


def _lines(path: Path, text: str) -> Iterator[tuple[int, Json]]:
    # Not splitlines(): U+2028 and its like are legal inside JSON strings.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        start = _skip_space(line, 0)
        value, end = _decode(path, line, start, first_line=number)
        rest = _skip_space(line, end)
        if rest < len(line):
            _not_json(path, JSONDecodeError("more text after the object", line, rest), first_line=number)
        yield number, value


def _decode(path: Path, text: str, start: int, *, first_line: int = 1) -> tuple[Json, int]:
    try:
        value: Json
        value, end = STRICT.raw_decode(text, start)
    except JSONDecodeError as error:
        _not_json(path, error, first_line=first_line)
    except (ValueError, RecursionError) as error:
        what = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        _not_json(path, JSONDecodeError(what, text, start), first_line=first_line)
    return value, end


def _not_json(path: Path, error: JSONDecodeError, *, first_line: int = 1) -> NoReturn:
    raise DataError(
        f"{path}:{error.lineno + first_line - 1}: not JSON: {error.msg} (column {error.colno})",
        hint="put one JSON object on each line (.jsonl), or all of them into one JSON array (.json)",
    ) from None


def _item(path: Path, line: int, value: Json, without_ids: str) -> RawItem:
    where = f"{path}:{line}"
    if not isinstance(value, dict):
        raise DataError(f"{where}: an item must be an object, not {_kind(value)}", hint='write it as {"id": …, …}')
    if "id" not in value:
        raise DataError(f"{where}: this item has no `id`", hint=without_ids)
    name = value["id"]
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise DataError(f"{where}: an id must be text or a whole number, not {_kind(name)}", hint='use "id": "1"')
    if not str(name).strip():
        raise DataError(f"{where}: the id of this item is empty", hint='give it a unique one: {"id": "1", …}')
    return RawItem(id=str(name), fields=value, where=where)


def _kind(value: Json) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    names = {str: "text", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return names[type(value)]


def _without_lone_surrogates(value: Json) -> Json:
    """The same value with each half of a broken surrogate pair replaced, so that it can be sent and stored."""
    text = json.dumps(value, ensure_ascii=False)
    whole: Json = json.loads(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return whole


def _skip_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    return found.end() if found else place


def _line_at(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1
