"""Reading somebody else's JSON: a value of the expected type or None, and every other one named as a problem."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from attrs import AttrsInstance, define, field, fields, frozen

from skillopt_es.errors import DataError
from skillopt_es.events.plain import NotPlainError, read_plain
from skillopt_es.events.values import Json, clean_text

T = TypeVar("T", bound=AttrsInstance)
V = TypeVar("V")

_LARGEST = 2**63 - 1  # what every reader of JSON and every table can hold
_PLAIN = "a result folder has plain files only: put a copy of the file there, or remove it"


@frozen
class Problem:
    """A file, or a value in it, that cannot be used, and why."""

    path: str
    why: str


@frozen
class Fields:
    """One JSON object of a file; what does not fit is told and then unknown."""

    path: str
    values: Mapping[str, Json]
    problems: list[Problem]

    def number(self, key: str) -> float | None:
        """A finite number; True and False count as 1 and 0, as they do in Python."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, int | float) and abs(value) <= sys.float_info.max:  # a whole one may have any size
            return float(value)
        self._odd(key, value, "a number of usual size" if isinstance(value, int) else "a finite number")
        return None

    def whole(self, key: str) -> int | None:
        """A whole number."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool):
            self._odd(key, value, "a whole number")
        elif abs(value) > _LARGEST:
            self._odd(key, value, "a number of usual size")
        else:
            return value
        return None

    def text(self, key: str) -> str | None:
        """A text."""
        value = self._of(key, str, "text")
        return None if value is None else clean_text(value)

    def name(self, key: str) -> str:
        """A text, empty where there is none."""
        return self.text(key) or ""

    def shown(self, key: str) -> str:
        """A value of any type as text, empty for none: answers may be numbers and lists."""
        value = self.values.get(key)
        if value is None:
            return ""
        return clean_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))

    def flag(self, key: str) -> bool | None:
        """True or false."""
        return self._of(key, bool, "true or false")

    def inner(self, key: str) -> Fields | None:
        """An object inside."""
        value = self._of(key, dict, "an object")
        return None if value is None else Fields(self.path, value, self.problems)

    def rows(self, key: str) -> list[Fields] | None:
        """A list of objects; the entries that are none are told and left out."""
        value = self._of(key, list, "a list")
        return None if value is None else as_rows(self.path, value, self.problems)

    def texts(self, key: str) -> tuple[str, ...]:
        """The texts of a list; empty when there is none."""
        return tuple(clean_text(each) for each in self._of(key, list, "a list") or () if isinstance(each, str))

    def _of(self, key: str, kind: type[V], wanted: str) -> V | None:
        """A value of a type; any other one is told."""
        value = self.values.get(key)
        if value is None or isinstance(value, kind):
            return value
        self._odd(key, value, wanted)
        return None

    def _odd(self, key: str, value: Json, wanted: str) -> None:
        self.problems.append(Problem(self.path, f"{key} is {value!r:.60}, not {wanted}"))


def said_by(key: str, how: Callable[[Fields, str], object]) -> Mapping[str, Callable[[Fields], object]]:
    """Field metadata that says from which key of an object a value is read, and how."""
    return {"read": lambda row: how(row, key)}


def record(kind: type[T], row: Fields, **others: object) -> T:
    """An object as a record: the fields that say how they are read, and the others."""
    read = {each.name: each.metadata["read"](row) for each in fields(kind) if "read" in each.metadata}
    return kind(**read, **others)


def as_rows(path: str, values: list[Json], problems: list[Problem]) -> list[Fields]:
    """The objects of a list."""
    odd = sum(not isinstance(value, dict) for value in values)
    if odd:
        problems.append(Problem(path, f"{odd} of {len(values)} entries are no objects"))
    return [Fields(path, value, problems) for value in values if isinstance(value, dict)]


@define
class Source:
    """A folder that is read, and what was wrong with it so far."""

    root: Path
    problems: list[Problem] = field(factory=list)

    def exists(self, path: str) -> bool:
        """Whether there is such a file or folder."""
        return (self.root / path).exists()

    def say(self, path: str, why: str) -> None:
        """Remembers something that cannot be used."""
        self.problems.append(Problem(path, why))

    def text(self, path: str) -> str | None:
        """A text file; None for one that is not there or cannot be read, which is told."""
        try:
            return self._bytes(path).decode("utf-8")
        except FileNotFoundError:
            return None
        except UnicodeDecodeError as error:
            self.say(path, f"not UTF-8 text (byte {error.start})")
        except OSError as error:
            self.say(path, f"cannot be read: {error.strerror}")
        return None

    def _bytes(self, path: str) -> bytes:
        """A plain file's bytes; raises DataError for anything else, and for what lies behind a link."""
        at = self.root
        for part in Path(path).parts:
            at /= part
            if at.is_symlink():
                raise DataError(f"{at} is a symbolic link, which an import does not follow", hint=_PLAIN)
        try:
            return read_plain(at)
        except NotPlainError as error:
            raise DataError(f"{at} {error.strerror}", hint=_PLAIN) from error

    def json(self, path: str) -> Json:
        """What a JSON file holds; None for one that is not there or broken, which is told."""
        text = self.text(path)
        if text is None:
            return None
        try:
            return _loads(text)
        except (ValueError, RecursionError) as error:
            self.say(path, f"not valid JSON: {error}")
            return None

    def fields(self, path: str) -> Fields | None:
        """The object that a JSON file holds."""
        value = self.json(path)
        if value is None or isinstance(value, dict):
            return None if value is None else Fields(path, value, self.problems)
        self.say(path, "holds no object")
        return None

    def rows(self, path: str) -> list[Fields] | None:
        """The objects of the list that a JSON file holds."""
        value = self.json(path)
        if value is None or isinstance(value, list):
            return None if value is None else as_rows(path, value, self.problems)
        self.say(path, "holds no list")
        return None

    def lines(self, path: str) -> list[Fields] | None:
        """The objects of a file with one JSON object a line; a broken line is told and left out."""
        text = self.text(path)
        if text is None:
            return None
        found: list[Fields] = []
        for number, line in enumerate(text.split("\n"), start=1):
            if not line.strip():
                continue
            try:
                value = _loads(line)
            except (ValueError, RecursionError):
                value = None
            if isinstance(value, dict):
                found.append(Fields(path, value, self.problems))
            else:
                self.say(path, f"line {number} is not a JSON object")
        return found

    def folders(self, path: str) -> list[str]:
        """The names of the folders in a folder, in order."""
        try:
            return sorted(each.name for each in (self.root / path).iterdir() if each.is_dir())
        except OSError:
            return []

    def files(self, path: str) -> list[str]:
        """The names of all in a folder that is no folder, in order; what cannot be read shows when it is."""
        try:
            return sorted(each.name for each in (self.root / path).iterdir() if not each.is_dir())
        except OSError:
            return []


def _loads(text: str) -> Json:
    """The value of a JSON text; numbers that are none (NaN, 1e999) are as unknown as null."""
    value: Json = json.loads(text, parse_constant=lambda _: None, parse_float=_float)
    return value


def _float(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None
