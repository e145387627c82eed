"""
What optimizer models reply besides proposals: a choice, a number, or a text of an epoch's end.

Each reader takes a reply's text and gives the value or an `Unusable` that says what was wrong, in words for the model.
A schema goes with each reader, for endpoints that can be held to one.
"""

from __future__ import annotations

import re

from attrs import frozen

from skillopt_es.events.values import Json
from skillopt_es.replies.json_reader import Unusable, read_object
from skillopt_es.replies.parts import INTEGER, STRING, list_of, object_of, says_something, text_in


@frozen(kw_only=True)
class RankingReply:
    """Which positions of the pool were chosen, in order."""

    chosen: tuple[int, ...]
    reasoning: str


@frozen(kw_only=True)
class LearningRateReply:
    """How many edits the optimizer wants to apply."""

    learning_rate: int
    reasoning: str
    confidence: str
    risks: tuple[str, ...]


@frozen(kw_only=True)
class EpochText:
    """What is written at an epoch's end: guidance for the agent, or the optimizer's meta skill."""

    content: str
    reasoning: str


def read_ranking(text: str, *, pool: int, budget: int) -> RankingReply | Unusable:
    """A ranking's reply: valid positions, each once, at most `budget`."""
    found = read_object(text)
    if isinstance(found, Unusable):
        return found
    rows = found.get("selected_indices")
    if not isinstance(rows, list):
        return Unusable("`selected_indices` must be a list of whole numbers")
    # For Python true and false are whole numbers, too.
    valid = [row for row in rows if isinstance(row, int) and not isinstance(row, bool) and 0 <= row < pool]
    chosen = tuple(dict.fromkeys(valid))[:budget]
    if not chosen:
        return Unusable(f"`selected_indices` must name at least one index from 0 to {pool - 1}")
    return RankingReply(chosen=chosen, reasoning=text_in(found, "reasoning"))


def read_learning_rate(text: str) -> LearningRateReply | Unusable:
    """The optimizer's number of edits, also when it is wrapped in words; never below 0."""
    found = read_object(text)
    if isinstance(found, Unusable):
        return found
    number = _whole_number(found.get("learning_rate"))
    if number is None:
        return Unusable("`learning_rate` must be a whole number of at least 0")
    risks = found.get("risk_notes")
    return LearningRateReply(
        learning_rate=max(0, number),
        reasoning=text_in(found, "reasoning"),
        confidence=text_in(found, "confidence"),
        risks=tuple(risk for risk in risks if isinstance(risk, str)) if isinstance(risks, list) else (),
    )


_WHOLE_NUMBER = re.compile(r"[-+]?\d+")


def _whole_number(value: Json) -> int | None:
    """A whole number, or the first one in a text ("5 edits" is 5); true and false are none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    match = _WHOLE_NUMBER.search(str(value))
    return int(match.group()) if match else None


def read_epoch_text(text: str, *, key: str) -> EpochText | Unusable:
    """A text of an epoch's end under its key, not blank."""
    found = read_object(text)
    if isinstance(found, Unusable):
        return found
    content = text_in(found, key).strip()
    if not says_something(content):
        return Unusable(f"`{key}` must be a text that is not empty")
    return EpochText(content=content, reasoning=text_in(found, "reasoning"))


# --- schemas -------------------------------------------------------------------------------------------------------

RANKING_SCHEMA = object_of(reasoning=STRING, selected_indices=list_of(INTEGER))
LEARNING_RATE_SCHEMA = object_of(learning_rate=INTEGER, reasoning=STRING, confidence=STRING, risk_notes=list_of(STRING))
SLOW_UPDATE_SCHEMA = object_of(reasoning=STRING, slow_update_content=STRING)
META_SKILL_SCHEMA = object_of(reasoning=STRING, meta_skill_content=STRING)
