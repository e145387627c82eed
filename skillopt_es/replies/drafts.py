"""Replies that hold a whole skill: drafts of analysts and mergers (`full_rewrite_minibatch`), and the final rewrite."""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import frozen

from skillopt_es.events.values import Draft, Json, PatchSource
from skillopt_es.replies.answers import MergeReply, PatchReply
from skillopt_es.replies.json_reader import Unusable, read_object
from skillopt_es.replies.parts import (
    FAILURES,
    INTEGER,
    STRING,
    list_of,
    merged_from,
    object_of,
    patterns_in,
    says_something,
    text_in,
)
from skillopt_es.skill.rewriting import own_words

# A fence around all of it, of backquotes or tildes, closed by the very same one.
_WRAPPED = re.compile(r"\A\s*(?P<fence>`{3,}|~{3,})(?:markdown|md)[ \t]*\n(?P<text>.*)\n(?P=fence)\s*\Z", re.DOTALL)


@frozen(kw_only=True)
class RewriteReply:
    """A skill written anew."""

    text: str
    changes: tuple[str, ...]
    reasoning: str


def read_draft(text: str, *, patch: str, kind: PatchSource, support: int) -> PatchReply | Unusable:
    """An analyst's reply: the first usable draft, or none."""
    found = read_object(text)
    if isinstance(found, Unusable):
        return found
    inner = found.get("patch", found)
    if not isinstance(inner, dict):
        return Unusable("`patch` must be an object with `reasoning` and `skill_candidates`")
    row = _first_usable(inner, "patch.skill_candidates")
    if isinstance(row, Unusable):
        return row
    drafts = () if row is None else (_draft(row, name=f"{patch}#1", origins=(patch,), support=support, source=kind),)
    return PatchReply(
        drafts=drafts,
        patterns=patterns_in(found.get("failure_summary"), support),
        reasoning=text_in(inner, "reasoning"),
    )


def read_merged_draft(
    text: str, *, merge: str, inputs: Mapping[str, Draft], source: PatchSource
) -> MergeReply | Unusable:
    """A merger's reply: the first usable draft; `inputs` are the drafts under the labels that the prompt gave them."""
    found = read_object(text)
    if isinstance(found, Unusable):
        return found
    row = _first_usable(found, "skill_candidates")
    if isinstance(row, Unusable):
        return row
    if row is None:
        return Unusable("`skill_candidates` must hold one draft")
    drafts = merged_from([row], merge, inputs, source, _draft)
    return drafts if isinstance(drafts, Unusable) else MergeReply(drafts=drafts, reasoning=text_in(found, "reasoning"))


def _first_usable(inner: Mapping[str, Json], key: str) -> dict[str, Json] | Unusable | None:
    """The first draft that has a text of its own; None for an empty list."""
    rows = inner.get("skill_candidates")
    if not isinstance(rows, list):
        return Unusable(f"`{key}` must be a list with one object in it (an empty one if nothing should change)")
    for row in rows:
        if isinstance(row, dict) and _is_skill(row):
            return row
    return Unusable(f"no object of `{key}` has a `new_skill` with a text of its own") if rows else None


def _is_skill(row: Mapping[str, Json]) -> bool:
    """Whether the new skill has words beside what it may not touch anyway."""
    return says_something(own_words(_whole_text(row)))


def _draft(
    row: Mapping[str, Json],
    *,
    name: str,
    origins: tuple[str, ...],
    support: int,
    source: PatchSource,
    assumed: bool = False,
) -> Draft:
    return Draft(
        id=name,
        text=_whole_text(row),
        title=text_in(row, "title"),
        changes=_changes(row),
        support=support,
        source=source,
        origins=origins,
        origins_assumed=assumed,
    )


def _whole_text(row: Mapping[str, Json]) -> str:
    """The new skill with one line break at its end, and out of the fence that some models put around all of it."""
    text = text_in(row, "new_skill").replace("\r\n", "\n").replace("\r", "\n")
    wrapped = _WRAPPED.match(text)
    return f"{(wrapped['text'] if wrapped else text).rstrip()}\n"


def _changes(row: Mapping[str, Json]) -> tuple[str, ...]:
    said = row.get("change_summary")
    rows = said if isinstance(said, list) else [said]
    return tuple(text_in({"line": line}, "line") for line in rows if says_something(line))


def read_rewrite(text: str) -> RewriteReply | Unusable:
    """The reply of the rewriter: a whole skill with a text of its own."""
    found = read_object(text)
    if isinstance(found, Unusable):
        return found
    if not _is_skill(found):
        return Unusable("`new_skill` must be the whole new skill, with a text of its own")
    return RewriteReply(text=_whole_text(found), changes=_changes(found), reasoning=text_in(found, "reasoning"))


# --- schemas -------------------------------------------------------------------------------------------------------

_PATCH = object_of(
    reasoning=STRING,
    skill_candidates=list_of(object_of(title=STRING, change_summary=list_of(STRING), new_skill=STRING)),
)

FAILURE_DRAFT_SCHEMA = object_of(failure_summary=FAILURES, patch=_PATCH)
SUCCESS_DRAFT_SCHEMA = object_of(success_patterns=list_of(STRING), patch=_PATCH)
MERGED_DRAFT_SCHEMA = object_of(
    reasoning=STRING,
    skill_candidates=list_of(
        object_of(
            title=STRING,
            change_summary=list_of(STRING),
            new_skill=STRING,
            **{"from": list_of(STRING)},
            support_count=INTEGER,
        )
    ),
)
REWRITE_SCHEMA = object_of(reasoning=STRING, change_summary=list_of(STRING), new_skill=STRING)
