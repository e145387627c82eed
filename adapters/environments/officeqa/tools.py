"""The tools that read documents: glob, read and grep. A request that makes no sense is answered, never an error."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from attrs import field, frozen

from skillopt_es.adapters.environments.episodes import tools_in
from skillopt_es.adapters.environments.officeqa.documents import Document
from skillopt_es.adapters.environments.text import shorten
from skillopt_es.events.values import Json
from skillopt_es.ports import ToolCall

MOST_CHARACTERS = 4000  # the original's, as those of paths, matches and lines
MOST_PATHS = 50  # the original's; a corpus has 697 files
MOST_MATCHES = 20  # the original's
MOST_CALLS = 16  # the original has no bound: one reply of a model that repeats itself may ask hundreds of times
_LINES = 80  # the original's
TOOLS = tools_in(__package__, lines=_LINES, matches=MOST_MATCHES)


class _Senseless(Exception):
    """What is wrong with a request, in words for the target."""


@frozen
class Desk:
    """The documents that one item's target may read, by name."""

    documents: Sequence[Document]
    _named: Mapping[str, Document] = field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        basenames = [document.basename for document in self.documents]
        named = {each.basename: each for each in self.documents if basenames.count(each.basename) == 1}
        object.__setattr__(self, "_named", named | {document.name: document for document in self.documents})

    def use(self, call: ToolCall) -> str:
        """What a tool says; raises UnreadableError for a document that cannot be read any more."""
        try:
            given = _arguments(call)
            if call.name == "glob":
                return self._glob(_text(given, "pattern"))
            if call.name == "read":
                return self._read(_text(given, "path"), _number(given, "start", 1), _number(given, "limit", _LINES))
            if call.name == "grep":
                return self._grep(_text(given, "pattern"), _text(given, "path"))
        except _Senseless as error:
            return f"[{error}]"
        return f"[there is no tool {shorten(call.name, 60)!r}; there are: glob, read, grep]"

    def _glob(self, pattern: str) -> str:
        found = [
            each.name
            for each in self.documents
            if fnmatchcase(each.name, pattern) or fnmatchcase(each.basename, pattern)
        ]
        left_out = len(found) - MOST_PATHS
        lines = [*found[:MOST_PATHS], *([f"[{left_out} more]"] if left_out > 0 else [])]
        return "\n".join(lines) or "[no document matches]"

    def _read(self, path: str, start: int, limit: int) -> str:
        lines = self._document(path).lines()
        if start < 1 or limit < 1:
            raise _Senseless("start and limit are at least 1")
        text = "\n".join(lines[start - 1 : start - 1 + limit])
        if not text.strip():
            return f"[nothing there: the document has {len(lines)} lines]"
        return _bounded(text)

    def _grep(self, pattern: str, path: str) -> str:
        wanted = pattern.lower()
        lines = self._document(path).lines()
        found = [f"{number}: {line}" for number, line in enumerate(lines, start=1) if wanted in line.lower()]
        if not found:
            return "[no line contains it]"
        more = [f"[{len(found) - MOST_MATCHES} more lines]"] if len(found) > MOST_MATCHES else []
        return "\n".join([_bounded("\n".join(found[:MOST_MATCHES])), *more])

    def _document(self, path: str) -> Document:
        name = path.strip().removeprefix("./")
        if name not in self._named:
            raise _Senseless(f"{shorten(path, 200)!r} is none of the documents; glob * lists them")
        return self._named[name]


def _bounded(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}\n[cut: ask for fewer lines]"


def _arguments(call: ToolCall) -> Mapping[str, Json]:
    try:
        given = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        raise _Senseless("the arguments are not JSON; ask again with a JSON object") from None
    if not isinstance(given, dict):
        raise _Senseless("the arguments are no JSON object")
    return given


def _text(given: Mapping[str, Json], key: str) -> str:
    value = given.get(key)
    if not isinstance(value, str) or not value.strip():
        raise _Senseless(f"`{key}` is missing or no text")
    return value


def _number(given: Mapping[str, Json], key: str, default: int) -> int:
    value = given.get(key)
    if value is None:
        return default
    try:
        whole = isinstance(value, int | float | str) and not isinstance(value, bool) and float(value).is_integer()
        if whole:
            return int(float(str(value)))
    except (ValueError, OverflowError):
        pass  # answered below, like every other value that is no number
    raise _Senseless(f"`{key}` is no whole number")
