"""The choice grader: the answer names one of several choices by its letter or by its text."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from functools import partial
from string import ascii_uppercase

from skillopt_es.adapters.environments.tasks.verdicts import Grader, Inline, Key, Verdict, alternatives, solved
from skillopt_es.adapters.environments.tasks.words import has_words, normal_form
from skillopt_es.events.values import Json

_MARKUP = re.compile(r"[*_`$]|\\boxed|\\text")
_ALONE = re.compile(r"[({\[]*([A-Za-z0-9])[)}\]]*[.:]?")
_AT_START = re.compile(r"\(?([A-Z0-9])[).:](?=\s|$)")
_ANSWER_IS = re.compile(r"(?i:\banswer(?:\s+is)?)\s*:?\s*(?i:(?:option|choice)\s*)?[({\[]*([A-Z0-9])\b(?!')")
_MENTION = re.compile(r"(?i:\b(?:option|choice))\s*[({\[]*([A-Z0-9])\b|\(([A-Z0-9])\)")


def read_choices(value: Json) -> Mapping[str, str]:
    """Labels and texts, from a list (labelled A, B, C, …) or a mapping of label to text; raises ValueError."""
    if isinstance(value, list) and 0 < len(value) <= len(ascii_uppercase):
        value = dict(zip(ascii_uppercase, value, strict=False))
    if (
        not isinstance(value, dict)
        or not value
        or not all(isinstance(text, str) and text.strip() for text in value.values())
    ):
        raise ValueError("must be a list of at most 26 texts, or a mapping of letter to text")
    if not all(re.fullmatch("[A-Za-z0-9]", label) for label in value):
        raise ValueError("must be labelled with single letters or digits")
    return {label.upper(): str(text) for label, text in value.items()}


def choice(key: Key) -> Grader:
    """Right when the answer names an expected choice, by letter or by text."""
    labels = frozenset(_expected(each, key.choices) for each in alternatives(key.expected))
    return Inline(partial(_choice, labels, key.choices))


def chosen(answer: str, choices: Mapping[str, str]) -> str:
    """The label that an answer names; empty when it names none."""
    text = _MARKUP.sub("", answer).strip()
    alone = _ALONE.fullmatch(text)
    if alone and _known(alone[1].upper(), choices):
        return alone[1].upper()
    for label, each in choices.items():
        if normal_form(text) == normal_form(each):
            return label
    for label in (*_labels(_AT_START.match(text)), *_labels(_last(_ANSWER_IS, text))):
        if _known(label, choices):
            return label
    mentioned = {label for found in _MENTION.finditer(text) for label in _labels(found) if _known(label, choices)}
    return mentioned.pop() if len(mentioned) == 1 else _named(normal_form(text), choices)


def _named(text: str, choices: Mapping[str, str]) -> str:
    """The only choice whose text is in the answer; New York does not count where New York City is meant."""
    said = {label: normal_form(each) for label, each in choices.items()}
    found = {label: each for label, each in said.items() if has_words(text, each)}
    longest = [label for label, each in found.items() if not any(each in other != each for other in found.values())]
    return longest[0] if len(longest) == 1 else ""


def _labels(found: re.Match[str] | None) -> list[str]:
    return [label for label in found.groups() if label] if found else []


def _choice(labels: frozenset[str], choices: Mapping[str, str], answer: str) -> Verdict:
    label = chosen(answer, choices)
    if not label:
        return Verdict(0.0, 0.0, "the answer names no choice, or more than one", "format")
    return solved(label in labels, f"read as {label}")


def _expected(text: str, choices: Mapping[str, str]) -> str:
    label = text.strip().strip("().:").upper()
    if label in choices or (not choices and re.fullmatch("[A-Z0-9]", label)):
        return label
    for each, said in choices.items():
        if normal_form(said) == normal_form(text):
            return each
    known = ", ".join(choices) if choices else "a single letter (or give the item `choices`)"
    raise ValueError(f"must be one of the choices: {known}")


def _known(label: str, choices: Mapping[str, str]) -> bool:
    return not choices or label in choices


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return next(iter(deque(pattern.finditer(text), maxlen=1)), None)
