"""
Edits in plain text: for optimizers that write better without JSON, where every quote and line break has to be escaped.

A reply without any of the words that were asked for is taken as it is: as one rule that is new.
"""

from __future__ import annotations

import json
import re

from skillopt_es.events.values import Json

_EDIT = re.compile(r"^[#*\s]*EDIT\b[^\n]*$", re.MULTILINE)
_LINE = re.compile(r"^[*\s]*(FOR|WHY|IN PLACE OF)[*]*:[*]*[ \t]*(.*)$", re.MULTILINE)
_TEXT = re.compile(r"^[*\s]*TEXT[*]*:[*]*[ \t]*", re.MULTILINE)
_FENCES = re.compile(r"^\s*(```|~~~)[^\n]*\n(.*?)\n?\s*\1`*~*\s*$", re.DOTALL)


def as_json(reply: str) -> str:
    """The same reply as the JSON object that other optimizers are asked for; one that is JSON already stays so."""
    if reply.lstrip().removeprefix("```json").lstrip().startswith("{"):
        return reply
    first, *blocks = _EDIT.split(reply)
    edits = [_edit(block) for block in blocks] or [_new(_unfenced(reply), [], "")]
    return json.dumps({"reasoning": first.strip() if blocks else "", "edits": [edit for edit in edits if edit]})


def _edit(block: str) -> dict[str, Json]:
    found = _TEXT.search(block)
    head, content = (block[: found.start()], block[found.end() :]) if found else (block, _LINE.sub("", block))
    said = {name: value.strip() for name, value in _LINE.findall(head)}
    items: list[Json] = [*re.findall(r"[^\s,;]+", said.get("FOR", ""))]
    target = said.get("IN PLACE OF", "")
    edit = _new(_unfenced(content), items, said.get("WHY", ""))
    return {**edit, "op": "replace", "target": target} if target else edit


def _new(content: str, items: list[Json], why: str) -> dict[str, Json]:
    return {"hypothesis": why, "items": items, "op": "append", "target": "", "content": content}


def _unfenced(text: str) -> str:
    found = _FENCES.match(text)
    return (found[2] if found else text).strip()
