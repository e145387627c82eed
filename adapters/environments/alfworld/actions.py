"""Which command a reply gives to the world."""

from __future__ import annotations

import re

from attrs import frozen

NO_ACTION = "look"
_TAIL = 30
_TAGGED = re.compile(r"<action>.*?</action>", re.DOTALL)
_CHINESE = re.compile(r"[\u4e00-\u9fff]")


@frozen
class Projection:
    """A reply as a command; `valid` says that it kept to the form that was asked for."""

    command: str
    valid: bool


def projected(reply: str) -> Projection:
    """The text of the first action tag in lower case; the last characters of a reply that has none."""
    text = reply.lower()
    start, end = text.find("<action>"), text.find("</action>")
    if start < 0 or end < 0:
        return Projection(text[-_TAIL:], valid=False)
    valid = "<think>" in text and "</think>" in text and not _CHINESE.search(reply)
    return Projection(text[start + len("<action>") : end].strip(), valid)


def command_of(reply: str) -> Projection:
    """What to do in the world: a reply without an action looks around, and so costs a step."""
    return projected(reply) if _TAGGED.search(reply) else Projection(NO_ACTION, valid=False)
