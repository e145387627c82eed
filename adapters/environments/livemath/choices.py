"""The choices of a question: their three spellings, the drawn order they are shown in, and which one a reply means."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from string import ascii_uppercase
from typing import Literal

from attrs import frozen

from skillopt_es.events.values import Json


@frozen
class Choice:
    """One answer to choose from."""

    label: str
    text: str


@frozen
class Choices:
    """What can be chosen, in the order in which it is shown, and the label of the right one."""

    all: tuple[Choice, ...]
    correct: str

    def text_of(self, label: str) -> str:
        """The text under a label; empty when there is none."""
        return next((choice.text for choice in self.all if choice.label == label), "")


def label_of(text: str) -> str:
    """A label as it is compared: upper case, without what follows it in print."""
    return text.strip().upper().rstrip(".):")


def read_choices(value: Json, correct: Json) -> Choices:
    """The choices of an entry; raises ValueError with what is wrong with them."""
    listed = _listed(value)
    if not listed:
        raise ValueError("`choices` holds no text")
    if len(listed) > len(ascii_uppercase):
        raise ValueError(f"`choices` has more than {len(ascii_uppercase)} entries")
    if len({choice.label for choice in listed}) < len(listed):
        raise ValueError("`choices` has a label twice")
    label, text = _named(correct)
    if not label:
        raise ValueError("`correct_choice` has no label")
    if label not in {choice.label for choice in listed}:
        if not text:
            raise ValueError(f"`correct_choice` is {label}, which is not among the choices")
        # The right choice may be one that the list lacks.
        listed = sorted([*listed, Choice(label, text)], key=lambda choice: choice.label)
    return Choices(tuple(listed), label)


def shuffled(choices: Choices, *, item: str, seed: int) -> Choices:
    """The same choices under new labels, in an order that only the item and the seed decide."""
    order = list(choices.all)
    # With the seed alone, the right choice of every item would come to the same place.
    key = int(sha256(f"{seed}:{item}".encode()).hexdigest()[:16], 16)
    random.Random(key).shuffle(order)  # noqa: S311 -- a reproducible order is the point
    shown = [Choice(ascii_uppercase[place], choice.text) for place, choice in enumerate(order)]
    place = next(place for place, choice in enumerate(order) if choice.label == choices.correct)
    return Choices(tuple(shown), ascii_uppercase[place])


def _listed(value: Json) -> list[Choice]:
    if isinstance(value, Mapping):
        pairs = [(label_of(label), text) for label, text in sorted(value.items())]
    elif isinstance(value, list):
        pairs = [_one(entry, place) for place, entry in enumerate(value)]
    else:
        raise ValueError("`choices` must be a list, or an object of label: text")
    return [Choice(label, text.strip()) for label, text in pairs if isinstance(text, str) and text.strip()]


def _one(entry: Json, place: int) -> tuple[str, Json]:
    default = ascii_uppercase[min(place, len(ascii_uppercase) - 1)]
    if not isinstance(entry, Mapping):
        return default, entry
    label, text = entry.get("label"), entry.get("text")
    return (label_of(label) if isinstance(label, str) and label.strip() else default), (
        entry.get("content") if text is None else text
    )


def _named(correct: Json) -> tuple[str, str]:
    if isinstance(correct, Mapping):
        label, text = correct.get("label"), correct.get("text")
        return (label_of(label) if isinstance(label, str) else ""), (text.strip() if isinstance(text, str) else "")
    return (label_of(correct) if isinstance(correct, str) else ""), ""


def shown(choices: Sequence[Choice]) -> str:
    """The choices as a target reads them, one a line."""
    return "\n".join(f"{choice.label}. {choice.text}" for choice in choices)


Scoring = Literal["skillopt", "extended"]

# `(B)`, `**B**`, `$B$`, `\boxed{B}`, `Option B`, `B - because …`: one letter in print, perhaps with a word before it.
_DRESSED = re.compile(
    r"^(?:the\s+)?(?:correct\s+)?(?:option|choice|answer)?\s*(?:is)?\s*:?\s*"
    r"(?:\\(?:boxed|text|mathrm|mathbf)\{|[(\[{*$_`\\])*\s*([A-Za-z])\s*[)\]}*$_`.:]*$",
    re.IGNORECASE,
)


def chosen(prediction: str, choices: Choices, scoring: Scoring) -> str:
    """
    The label that an answer names; what it says, as a label, when it names none.

    `skillopt` reads as SkillOpt does, which takes the article in "A theorem …" for choice A and does not know `(B)`.
    """
    labels = {choice.label for choice in choices.all}
    plain = label_of(prediction)
    if plain in labels:
        return plain
    for choice in choices.all:
        if choice.text.casefold() == prediction.strip().casefold():
            return choice.label
    if scoring == "extended":
        dressed = _DRESSED.match(prediction.strip())
        letter = dressed[1].upper() if dressed else _leading_label(prediction)
        return letter if letter in labels else plain
    first = label_of(prediction.split(maxsplit=1)[0]) if prediction.split() else ""
    return first if first in labels else plain


def _leading_label(prediction: str) -> str:
    """The letter before a full stop, colon or bracket at the start: `B. two`, `B) two`."""
    found = re.match(r"^[(\[*]*([A-Za-z])[*]*[.):\]]", prediction.strip())
    return found[1].upper() if found else ""
