"""The grader `checks`: what an item asks of its answer in so many words, each told to be met or not."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence

from attrs import frozen

from skillopt_es.adapters.environments.tasks.patterns import Patterns, compiled
from skillopt_es.adapters.environments.tasks.verdicts import Attempt, Verdict
from skillopt_es.adapters.environments.tasks.words import has_words
from skillopt_es.events.values import Json

_HEADING = re.compile(
    r"^(?:(?P<marks>#{1,6})\s+(?P<name>.+?)\s*#*|\*\*(?P<bold>[^*\n]+)\*\*:?|(?P<line>[^\n:]{1,80}):)\s*$", re.MULTILINE
)
_FENCE = re.compile(r"\A```(?:json)?[ \t]*\n(.*)\n```\s*\Z", re.DOTALL)
_COUNTED: Mapping[str, Callable[[str], int]] = {
    "words": lambda text: len(text.split()),
    "characters": len,
    "lines": lambda text: len([line for line in text.splitlines() if line.strip()]),
    "sentences": lambda text: len(re.findall(r"[^.!?]+(?:[.!?]+|$)", text.strip())),
}
_USED = ("tool", "command", "file")
Met = Callable[[Attempt], str | Awaitable[str]]
_SECONDS = 30.0  # for a slow pattern


@frozen
class Checks:
    """Graded by its checks: solved when all are met, and partly by the share of them that are."""

    checks: tuple[Met, ...]

    async def __call__(self, attempt: Attempt) -> Verdict:
        """The verdict; its note names what is not met."""
        said = [each if isinstance(each, str) else await each for each in (check(attempt) for check in self.checks)]
        wrong = [*filter(None, said)]
        share = (len(self.checks) - len(wrong)) / len(self.checks)
        return Verdict(float(not wrong), share, "; ".join(wrong))


def read_checks(value: Json) -> Checks:
    """The grader in an item's `checks`; raises ValueError."""
    if not isinstance(value, list) or not value:
        raise ValueError('must be a list of checks, such as [{"check": "contains", "text": "…"}]')
    return Checks(tuple(_check(each) for each in value))


def _check(value: Json) -> Met:
    kind = value.get("check") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"must be checks of these kinds: {', '.join(_KINDS)}")
    names, make = _KINDS[kind]
    if unknown := sorted(value.keys() - {"check", *names}):
        raise ValueError(f"has a {kind} with {unknown[0]!r}, which it does not know")
    return make(value)


def _text(value: Mapping[str, Json], key: str, *, needed: bool = True) -> str:
    text = value.get(key)
    if isinstance(text, str) and text.strip():
        return text.strip()
    if needed or text is not None:
        raise ValueError(f"has a {value['check']} whose {key} is not a text")
    return ""


def _contains(value: Mapping[str, Json]) -> Met:
    text = _text(value, "text")
    return lambda attempt: "" if _spaced(text) in _spaced(attempt.answer) else f"{text!r} is missing"


def _lacks(value: Mapping[str, Json]) -> Met:
    text = _text(value, "text")
    return lambda attempt: f"it says {text!r}" if has_words(_spaced(attempt.answer), _spaced(text)) else ""


def _starts(value: Mapping[str, Json]) -> Met:
    text = _text(value, "text")
    return lambda attempt: "" if attempt.answer.lstrip().startswith(text) else f"it does not begin with {text!r}"


def _ends(value: Mapping[str, Json]) -> Met:
    text = _text(value, "text")
    return lambda attempt: "" if attempt.answer.rstrip().endswith(text) else f"it does not end with {text!r}"


def _section(value: Mapping[str, Json]) -> Met:
    name, text = _text(value, "section"), _text(value, "text", needed=False)

    def met(attempt: Attempt) -> str:
        found = [body for heading, body in _sections(attempt.answer) if _spaced(heading) == _spaced(name)]
        if not found:
            return f"the section {name!r} is missing"
        if not any(body.strip() for body in found):
            return f"the section {name!r} is empty"
        there = not text or any(_spaced(text) in _spaced(body) for body in found)
        return "" if there else f"the section {name!r} lacks {text!r}"

    return met


def _sections(answer: str) -> list[tuple[str, str]]:
    """Each heading (in bold, or with a colon, too) with what follows it, up to the next one that is not below it."""
    marks = list(_HEADING.finditer(answer))
    found = []
    for at, mark in enumerate(marks):
        end = next((each.start() for each in marks[at + 1 :] if _level(each) <= _level(mark)), len(answer))
        found.append((_name(mark), answer[mark.end() : end]))
    return found


def _name(mark: re.Match[str]) -> str:
    return (mark["name"] or mark["bold"] or mark["line"]).strip(" *:")


def _level(mark: re.Match[str]) -> int:
    return len(mark["marks"]) if mark["marks"] else 7


def _limit(value: Mapping[str, Json]) -> tuple[int, str]:
    count, unit = value.get("count"), value.get("of")
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise ValueError(f"has an {value['check']} whose count is not a whole number above 0")
    if not isinstance(unit, str) or unit not in _COUNTED:
        raise ValueError(f"has an {value['check']} of none of these: {', '.join(_COUNTED)}")
    return count, unit


def _at_most(value: Mapping[str, Json]) -> Met:
    count, unit = _limit(value)

    def met(attempt: Attempt) -> str:
        found = _COUNTED[unit](attempt.answer)
        return "" if found <= count else f"it has {found} {unit}, and {count} are allowed"

    return met


def _at_least(value: Mapping[str, Json]) -> Met:
    count, unit = _limit(value)

    def met(attempt: Attempt) -> str:
        found = _COUNTED[unit](attempt.answer)
        return "" if found >= count else f"it has {found} {unit}, and {count} are needed"

    return met


def _matches(value: Mapping[str, Json]) -> Met:
    pattern = _text(value, "pattern")
    try:
        patterns = Patterns((compiled(pattern),), _SECONDS)
    except ValueError as error:
        raise ValueError(f"has a matches whose pattern {error}") from error

    async def met(attempt: Attempt) -> str:
        return "" if await patterns.found(attempt.answer) else f"nothing in it matches {pattern!r}"

    return met


def _is_json(value: Mapping[str, Json]) -> Met:
    def met(attempt: Attempt) -> str:
        fenced = _FENCE.match(attempt.answer.strip())
        try:
            json.loads(fenced[1] if fenced else attempt.answer)
        except (ValueError, RecursionError):
            return "it is not JSON"
        return ""

    return met


def _tool(value: Mapping[str, Json]) -> Met:
    name = _text(value, "name")

    def met(attempt: Attempt) -> str:
        used = (str(step.get("text", "")) for step in attempt.trajectory if step.get("kind") in _USED)
        return "" if any(has_words(_spaced(text), _spaced(name)) for text in used) else f"{name} was not called"

    return met


def _spaced(text: str) -> str:
    return " ".join(text.casefold().split())


_KINDS: Mapping[str, tuple[Sequence[str], Callable[[Mapping[str, Json]], Met]]] = {
    "contains": (("text",), _contains),
    "lacks": (("text",), _lacks),
    "starts_with": (("text",), _starts),
    "ends_with": (("text",), _ends),
    "section_contains": (("section", "text"), _section),
    "at_most": (("count", "of"), _at_most),
    "at_least": (("count", "of"), _at_least),
    "matches": (("pattern",), _matches),
    "is_json": ((), _is_json),
    "tool_called": (("name",), _tool),
}
