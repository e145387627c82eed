"""How the original applies edits, which is not quite how we do: only for checking what it recorded."""

from __future__ import annotations

from collections.abc import Sequence

from skillopt_es.events.values import Edit
from skillopt_es.skill.regions import APPENDIX_END, APPENDIX_START, MARKERS, SLOW_END, SLOW_START

_PAIRS = ((SLOW_START, SLOW_END), (APPENDIX_START, APPENDIX_END))


def applied_by_original(text: str, edits: Sequence[Edit]) -> str:
    """The text after all edits in order, by the original's rules."""
    for edit in edits:
        text = _applied(text, edit)
    return text


def _applied(text: str, edit: Edit) -> str:
    content, target = _cleaned(edit.content), edit.target
    found = text.find(target) if target else -1
    if found >= 0 and _protected(text, found):
        return text
    match edit.op:
        case "append":
            return _appended(text, content)
        case "insert_after":
            if not target.strip() or found < 0:
                return _appended(text, content)
            newline = text.find("\n", found + len(target))
            at = len(text) if newline < 0 else newline + 1
            return f"{text[:at]}\n{content}\n{text[at:]}"
        case "replace" | "delete":
            if not target.strip() or found < 0:
                return text
            new = content if edit.op == "replace" else ""
            return text[:found] + new + text[found + len(target) :]


def _appended(text: str, content: str) -> str:
    starts = [text.find(start) for start, _ in _PAIRS if start in text]
    if not starts:
        return f"{text.rstrip()}\n\n{content}\n"
    at = min(starts)
    return f"{text[:at].rstrip()}\n\n{content}\n\n{text[at:]}"


def _protected(text: str, at: int) -> bool:
    """Whether a place lies in the first region of a kind; nothing else is looked at."""
    for start_marker, end_marker in _PAIRS:
        start, end = text.find(start_marker), text.find(end_marker)
        if start >= 0 and end >= 0 and start <= at < end + len(end_marker):
            return True
    return False


def _cleaned(content: str) -> str:
    content = content.strip()
    for marker in MARKERS:
        content = content.replace(marker, "")
    return content
