"""Replies in the mode `rewrite_from_suggestions`: what analysts and mergers suggest to whoever rewrites the skill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast, get_args

from skillopt_es.events.values import Json, PatchSource, Priority, Suggestion, SuggestionKind
from skillopt_es.replies.answers import MergeReply, PatchReply
from skillopt_es.replies.json_reader import Unusable
from skillopt_es.replies.parts import (
    FAILURES,
    INTEGER,
    JUDGED_FAILURES,
    STRING,
    list_of,
    merged_from,
    object_of,
    proposed_from,
    read_envelope,
    read_listed,
    says_something,
    text_in,
)

_KINDS = get_args(SuggestionKind)
_PRIORITIES = get_args(Priority)


def read_suggestions(
    text: str, *, patch: str, kind: PatchSource, support: int, most: int, most_notes: int = 0
) -> PatchReply | Unusable:
    """An analyst's reply: at most `most` suggestions, each standing on the whole minibatch, and `most_notes` notes."""
    reply = read_envelope(text, "revise_suggestions", support=support, most_notes=most_notes)
    if isinstance(reply, Unusable):
        return reply
    found = proposed_from(_useful(reply.rows)[:most], patch, support, kind, _suggestion)
    if isinstance(found, Unusable):
        return found
    return PatchReply(suggestions=found, patterns=reply.patterns, reasoning=reply.reasoning, notes=reply.notes)


def read_merged_suggestions(
    text: str, *, merge: str, inputs: Mapping[str, Suggestion], source: PatchSource
) -> MergeReply | Unusable:
    """A merger's reply; `inputs` are the suggestions under the labels that the prompt gave them."""
    reply = read_listed(text, "revise_suggestions")
    if isinstance(reply, Unusable):
        return reply
    rows = reply.rows
    if len(rows) > 2 * len(inputs):
        return Unusable(f"{len(rows)} suggestions are too many, only {len(inputs)} were made: merge them into fewer")
    useful = _useful(rows)
    if rows and not useful:
        return Unusable("none of the `revise_suggestions` says what to do")
    merged = merged_from(useful, merge, inputs, source, _suggestion)
    return merged if isinstance(merged, Unusable) else MergeReply(suggestions=merged, reasoning=reply.reasoning)


def _useful(rows: Sequence[Json]) -> list[Json]:
    """The suggestions without those that were made already or say nothing: none of them shall use up the budget."""
    seen: set[tuple[str, str]] = set()
    useful = []
    for row in rows:
        if isinstance(row, dict):
            said = (text_in(row, "type"), text_in(row, "instruction"))
            if said in seen or not says_something(said[1]):
                continue
            seen.add(said)
        useful.append(row)
    return useful


def _suggestion(
    row: Json, *, name: str, origins: tuple[str, ...], support: int, source: PatchSource, assumed: bool = False
) -> Suggestion | Unusable:
    if not isinstance(row, dict):
        return Unusable("each suggestion must be an object with `type`, `title`, `instruction` and `priority_hint`")
    kind = row.get("type", "add_rule")
    if kind not in _KINDS:
        return Unusable(f"`type` must be one of {', '.join(_KINDS)}, not {kind!r:.80}")
    hint = row.get("priority_hint")
    return Suggestion(
        id=name,
        kind=cast(SuggestionKind, kind),
        instruction=text_in(row, "instruction"),
        title=text_in(row, "title"),
        motivation=text_in(row, "motivation"),
        priority=cast(Priority, hint) if hint in _PRIORITIES else "medium",
        support=support,
        source=source,
        origins=origins,
        origins_assumed=assumed,
    )


# --- schemas -------------------------------------------------------------------------------------------------------

_TYPE: dict[str, Json] = {"type": "string", "enum": list(_KINDS)}
_HINT: dict[str, Json] = {"type": "string", "enum": list(_PRIORITIES)}
_PATCH = object_of(
    reasoning=STRING,
    revise_suggestions=list_of(
        object_of(type=_TYPE, title=STRING, motivation=STRING, instruction=STRING, priority_hint=_HINT)
    ),
)

FAILURE_SUGGESTIONS_SCHEMA = object_of(failure_summary=FAILURES, patch=_PATCH)
SUCCESS_SUGGESTIONS_SCHEMA = object_of(success_patterns=list_of(STRING), patch=_PATCH)
NOTED_FAILURE_SUGGESTIONS_SCHEMA = object_of(
    failure_summary=JUDGED_FAILURES, patch=_PATCH, appendix_notes=list_of(STRING)
)
NOTED_SUCCESS_SUGGESTIONS_SCHEMA = object_of(
    success_patterns=list_of(STRING), patch=_PATCH, appendix_notes=list_of(STRING)
)
MERGED_SUGGESTIONS_SCHEMA = object_of(
    reasoning=STRING,
    revise_suggestions=list_of(
        object_of(
            type=_TYPE,
            title=STRING,
            motivation=STRING,
            instruction=STRING,
            priority_hint=_HINT,
            **{"from": list_of(STRING)},
            support_count=INTEGER,
        )
    ),
)
