"""What the readers of conversations share: JSON Lines, read-only SQLite, and turns put together from messages."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from attrs import define, field

from skillopt_es.events.plain import NotPlainError, open_plain
from skillopt_es.events.values import Json, clean_text
from skillopt_es.ports import ToolUse, Turn

Record = Mapping[str, Json]
MOST_BYTES = 64 * 2**20
"""A longer file is refused: it is not what people say in a day."""


class CannotRead(Exception):
    """A file that is not what its agent writes, in a few words."""


def records(path: Path) -> list[Record]:
    """The objects of a JSON Lines file; a last line that is still being written is left out."""
    try:
        with open_plain(path, follow=True) as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise CannotRead(f"it has more than {MOST_BYTES // 2**20} MiB")
        lines = content.decode("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise CannotRead(_why(error) if isinstance(error, OSError) else "it is not UTF-8 text") from error
    found: list[Record] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            if number == len(lines):
                break
            raise CannotRead(f"line {number} is not JSON") from error
        if isinstance(value, dict):
            found.append(value)
    return found


@contextmanager
def read_only(path: Path) -> Iterator[sqlite3.Connection]:
    """A copy of a SQLite database, which its agent may be writing: even a reader would touch the files beside it."""
    with TemporaryDirectory() as folder:
        try:
            copy = _copied(path, Path(folder, "copy.db"))
            log = path.with_name(f"{path.name}-wal")
            if log.exists():
                _copied(log, copy.with_name("copy.db-wal"))
            with closing(sqlite3.connect(copy)) as connection:
                yield connection
        except OSError as error:
            raise CannotRead(_why(error)) from error
        except sqlite3.Error as error:
            raise CannotRead(f"SQLite says: {error}") from error


def _why(error: OSError) -> str:
    """What the system says of a file, without its name."""
    return f"it {error.strerror}" if isinstance(error, NotPlainError) else str(error.strerror)


def _copied(path: Path, to: Path) -> Path:
    with open_plain(path, follow=True) as file, to.open("wb") as copy:
        shutil.copyfileobj(file, copy)
    return to


def object_of(text: object) -> Record:
    """The JSON object in a text; an empty one for anything else."""
    try:
        value = json.loads(text) if isinstance(text, str | bytes) else None
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def inner(record: Record, key: str) -> Record:
    """The object under a key; an empty one where there is none."""
    value = record.get(key)
    return value if isinstance(value, dict) else {}


def word(record: Record, key: str) -> str:
    """The text under a key; an empty one where there is none."""
    value = record.get(key)
    return value if isinstance(value, str) else ""


def parts(value: Json) -> Sequence[Record]:
    """The parts of a message; a plain text is one part."""
    if isinstance(value, str):
        return ({"type": "text", "text": value},)
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else ()


def said(value: Json) -> str:
    """The texts of a message's parts, whatever kind of text they say that they are."""
    return "\n".join(text for part in parts(value) if (text := word(part, "text"))).strip()


def as_text(value: Json) -> str:
    """What a tool was given or gave, as text."""
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


@define
class Gathering:
    """Turns put together from messages in their order."""

    turns: list[Turn] = field(factory=list)
    _asked: str = ""
    _answered: str = ""
    _tools: dict[str, ToolUse] = field(factory=dict)

    def person(self, text: str) -> None:
        """A person said something: a new turn, unless nothing was done about what was said just before."""
        text = clean_text(text)  # an agent that cuts a text may leave half of a character
        if not text:
            return
        if self._asked and not self._answered and not self._tools:
            self._asked = f"{self._asked}\n\n{text}"
            return
        self._close()
        self._asked = text

    def agent(self, text: str) -> None:
        """The agent said something; its last words of a turn are its answer."""
        if text:
            self._answered = clean_text(text)

    def called(self, key: str, name: str, given: str) -> None:
        """The agent called a tool."""
        self._tools[key] = ToolUse(name=clean_text(name), given=clean_text(given))

    def returned(self, key: str, result: str) -> None:
        """A tool gave its result; one that nobody called is left out."""
        if (call := self._tools.get(key)) is not None:
            self._tools[key] = ToolUse(name=call.name, given=call.given, result=clean_text(result))

    def done(self) -> tuple[Turn, ...]:
        """All turns."""
        self._close()
        return tuple(self.turns)

    def _close(self) -> None:
        if self._asked:
            self.turns.append(Turn(asked=self._asked, answered=self._answered, tools=tuple(self._tools.values())))
        self._asked, self._answered, self._tools = "", "", {}
