"""How the original changes a skill's text, which is not quite how we do: only for following what it recorded."""

from __future__ import annotations

import re
from collections.abc import Sequence

from skillopt_es.events.values import Edit
from skillopt_es.skill.appendix import HEADING
from skillopt_es.skill.regions import APPENDIX_END, APPENDIX_START, MARKERS, SLOW_END, SLOW_START

_PAIRS = ((SLOW_START, SLOW_END), (APPENDIX_START, APPENDIX_END))


def applied_by_original(text: str, edits: Sequence[Edit]) -> str:
    """The text after all edits in order, by the original's rules."""
    for edit in edits:
        text = _applied(text, edit)
    return text


def rewritten_by_original(written: str) -> str:
    """The candidate that a whole new text is: its protected parts are what the text has."""
    return f"{written.rstrip()}\n"


def guided_by_original(text: str, guidance: str) -> str:
    """The text with this guidance in a block at its end, and nowhere more than one empty line."""
    return f"{_stripped(text, SLOW_START, SLOW_END)}\n\n{SLOW_START}\n{guidance.strip()}\n{SLOW_END}\n"


def noted_by_original(text: str, notes: Sequence[str]) -> str:
    """The text with these reminder notes in a block at its end; without notes the empty block of a run's start."""
    block = "\n".join((APPENDIX_START, f"## {HEADING}", *(f"- {note}" for note in notes), APPENDIX_END))
    if notes:
        return f"{_stripped(text, APPENDIX_START, APPENDIX_END)}\n\n{block}\n"
    return text if APPENDIX_START in text and APPENDIX_END in text else f"{text.rstrip()}\n\n{block}\n"


def _stripped(text: str, start: str, end: str) -> str:
    text = re.sub(re.escape(start) + r".*?" + re.escape(end), "", text, flags=re.DOTALL)
    return re.sub(r"\n{3,}", "\n\n", text.replace(start, "").replace(end, "")).rstrip()


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
        case _:  # replace and delete; the original knows no edits of whole files
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
