"""Which label a reply chooses."""

from __future__ import annotations

import re
from typing import Literal

from skillopt_es.adapters.environments.livemath.choices import Choices, label_of

Scoring = Literal["upstream", "extended"]

# `(B)`, `**B**`, `$B$`, `\boxed{B}`, `Option B`, `B - because …`: one letter in print, perhaps with a word before it.
_DRESSED = re.compile(
    r"^(?:the\s+)?(?:correct\s+)?(?:option|choice|answer)?\s*(?:is)?\s*:?\s*"
    r"(?:\\(?:boxed|text|mathrm|mathbf)\{|[(\[{*$_`\\])*\s*([A-Za-z])\s*[)\]}*$_`.:]*$",
    re.IGNORECASE,
)


def chosen(prediction: str, choices: Choices, scoring: Scoring) -> str:
    """
    The label that an answer names; what it says, as a label, when it names none.

    `upstream` reads as SkillOpt does, which takes the article in "A theorem …" for choice A and does not know `(B)`.
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
