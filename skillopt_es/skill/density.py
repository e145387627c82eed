"""Semantic density: the share of a skill's words that are directive ones, such as MUST and NEVER."""

from __future__ import annotations

import re
from collections.abc import Collection

from skillopt_es.skill.regions import without_protected_blocks

LEADING_WORDS = (
    "MUST",
    "ALWAYS",
    "NEVER",
    "ONLY",
    "CRITICAL",
    "IMPORTANT",
    "RESOLVE",
    "PREFER",
    "ENSURE",
    "STRICT",
    "VERIFY",
)
_WORD = re.compile(r"[a-z0-9]+")


def semantic_density(text: str, leading_words: Collection[str] = LEADING_WORDS) -> float:
    """From 0 to 1; protected blocks do not count, and a blank text has none."""
    words = _WORD.findall(without_protected_blocks(text).lower())
    leading = {word.lower() for word in leading_words}
    return sum(word in leading for word in words) / len(words) if words else 0.0
