"""`docs/log-stream.md`, made from the events themselves: `python tests/support/stream_docs.py` writes it anew."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import attrs

from skillopt_es.events import values
from skillopt_es.events.catalog import CATALOG

FILE = Path(__file__).parent.parent.parent / "docs" / "log-stream.md"
HEAD = Path(__file__).with_name("log_stream.md")
_VALUES = "## Values\n\nWhat the fields are made of.\n"
_SPECIAL = {"CallRef", "Measured", "Failed", "NotRun"}
_WORDS = {
    "str": "text",
    "int": "whole number",
    "float": "number",
    "bool": "true or false",
    "None": "null",
    "Json": "any JSON",
}


def stream_docs() -> str:
    """The whole page."""
    parts = [HEAD.read_text(encoding="utf-8")]
    named: list[str] = []
    parts += [
        f"### {kind.__name__}\n\nVersion {kind.VERSION}. {_summary(kind)}\n\n{_fields(kind, named)}" for kind in CATALOG
    ]
    parts.append(_VALUES)
    done: set[str] = set()
    while left := [name for name in dict.fromkeys(named) if name not in done]:
        done.add(left[0])
        kind = getattr(values, left[0])
        parts.append(f"### {left[0]}\n\n{_summary(kind)}\n\n{_fields(kind, named)}")
    return "\n".join(parts)


def _summary(kind: Any) -> str:
    text = inspect.getdoc(kind) or ""
    return " ".join(text.split("\n\n")[0].split())


def _fields(kind: Any, named: list[str]) -> str:
    """A table of a class's fields; the value classes they name are remembered."""
    rows = ["| field | kind |", "| --- | --- |"]
    for name, said in inspect.get_annotations(kind).items():
        if "ClassVar" in said:
            continue
        words = (word for word in re.findall(r"[A-Z]\w+", said) if word not in _SPECIAL)
        named.extend(word for word in words if attrs.has(getattr(values, word, None)))  # type: ignore[arg-type]
        rows.append(f"| `{name}` | {_spelled(said)} |")
    return "\n".join(rows) + "\n"


def _spelled(annotation: str) -> str:
    """An annotation as what stands in JSON: choices spelled out, lists and objects by what they hold."""
    said = " ".join(annotation.split())
    for word in set(re.findall(r"[A-Z]\w+", said)):
        choice = getattr(values, word, None)
        if get_origin(choice) is Literal:
            said = re.sub(rf"\b{word}\b", f"Literal[{', '.join(map(repr, get_args(choice)))}]", said)
    said = re.sub(r"Literal\[([^]]*)\]", lambda found: found[1].replace("'", "`").replace(", ", " or "), said)
    said = re.sub(r"\b(str|int|float|bool|None|Json)\b", lambda found: _WORDS[found[1]], said).replace(" | ", " or ")
    said = re.sub(r"tuple\[([^][]*), \.\.\.\]", r"list of \1", said)
    return re.sub(r"Mapping\[text, ([^][]*)\]", r"object of \1", said)


if __name__ == "__main__":
    FILE.write_text(stream_docs(), encoding="utf-8")
    sys.exit(0)
