"""A whole skill in a reply, out of what models wrap it in: drafts of analysts and mergers, and the final rewrite."""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import frozen

from skillopt_es.events.values import Json
from skillopt_es.replies.json_reader import Unusable, read_object
from skillopt_es.replies.parts import STRING, list_of, object_of, says_something, text_in
from skillopt_es.skill.rewriting import own_words

REWRITE_SCHEMA = object_of(reasoning=STRING, change_summary=list_of(STRING), new_skill=STRING)

# A fence around all of it, of backquotes or tildes, closed by the very same one.
_WRAPPED = re.compile(r"\A\s*(?P<fence>`{3,}|~{3,})(?:markdown|md)[ \t]*\n(?P<text>.*)\n(?P=fence)\s*\Z", re.DOTALL)


@frozen(kw_only=True)
class RewriteReply:
    """A skill written anew."""

    text: str
    changes: tuple[str, ...]
    reasoning: str


def is_skill(row: Mapping[str, Json]) -> bool:
    """Whether the new skill has words besides what it may not touch anyway."""
    return says_something(own_words(whole_text(row)))


def whole_text(row: Mapping[str, Json]) -> str:
    """The new skill with one line break at its end, and out of the fence that some models put around all of it."""
    text = text_in(row, "new_skill").replace("\r\n", "\n").replace("\r", "\n")
    wrapped = _WRAPPED.match(text)
    return f"{(wrapped['text'] if wrapped else text).rstrip()}\n"


def changes_in(row: Mapping[str, Json]) -> tuple[str, ...]:
    """What is new in it, in lines."""
    said = row.get("change_summary")
    rows = said if isinstance(said, list) else [said]
    return tuple(text_in({"line": line}, "line") for line in rows if says_something(line))


def read_rewrite(text: str) -> RewriteReply | Unusable:
    """The reply of the rewriter: a whole skill with a text of its own."""
    found = read_object(text)
    if isinstance(found, Unusable):
        return found
    if not is_skill(found):
        return Unusable("`new_skill` must be the whole new skill, with a text of its own")
    return RewriteReply(text=whole_text(found), changes=changes_in(found), reasoning=text_in(found, "reasoning"))
