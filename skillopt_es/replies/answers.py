"""
What optimizer models reply, parsed at the edge into typed values.

Each reader takes a reply's text and gives the value or an `Unusable` that says what was wrong, in words for the model.
A schema goes with each reader, for endpoints that can be held to one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import cast

from attrs import evolve, frozen

from skillopt_es.events.values import Draft, Edit, EditOp, FailurePattern, Json, PatchSource, SkillTree, Suggestion
from skillopt_es.replies.json_reader import Unusable, read_object
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

_OPS: tuple[EditOp, ...] = ("append", "insert_after", "replace", "delete")
_MOST_HYPOTHESIS = 300


@frozen(kw_only=True)
class PatchReply:
    """An analyst's proposal: edits, or what the other update modes have in their place."""

    edits: tuple[Edit, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
    drafts: tuple[Draft, ...] = ()
    patterns: tuple[FailurePattern, ...]
    reasoning: str
    notes: tuple[str, ...] = ()


@frozen(kw_only=True)
class MergeReply:
    """A merger's combined set, of what was proposed."""

    edits: tuple[Edit, ...] = ()
    suggestions: tuple[Suggestion, ...] = ()
    drafts: tuple[Draft, ...] = ()
    reasoning: str


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


def read_patch(
    text: str,
    *,
    patch: str,
    kind: PatchSource,
    support: int,
    most: int,
    most_notes: int = 0,
    claimable: Collection[str] = (),
) -> PatchReply | Unusable:
    """
    An analyst's reply: at most `most` edits, each standing on the whole minibatch, and `most_notes` notes.

    With `claimable` items an edit says which of them it is for, and stands on those.
    """
    reply = read_envelope(text, "edits", support=support, most_notes=most_notes)
    if isinstance(reply, Unusable):
        return reply

    rows = _useful(reply.rows)[:most]
    edits = proposed_from(rows, patch, support, kind, _edit)
    if isinstance(edits, Unusable):
        return edits
    if claimable:
        objects = cast("list[Mapping[str, Json]]", rows)  # anything else is no edit
        edits = tuple(_claiming(edit, row, claimable) for edit, row in zip(edits, objects, strict=True))
    return PatchReply(edits=edits, patterns=reply.patterns, reasoning=reply.reasoning, notes=reply.notes)


def _claiming(edit: Edit, row: Mapping[str, Json], claimable: Collection[str]) -> Edit:
    """The edit with its one-line hypothesis and the items that it names; a single name may stand without a list."""
    said = row.get("items", row.get("claims"))
    named = said if isinstance(said, list) else [said]
    claims = tuple(dict.fromkeys(name for name in named if isinstance(name, str) and name in claimable))
    hypothesis = " ".join(text_in(row, "hypothesis").split())[:_MOST_HYPOTHESIS]
    return evolve(edit, claims=claims, hypothesis=hypothesis, support=len(claims) or edit.support)


def _useful(rows: Sequence[Json]) -> list[Json]:
    """The edits without those that were said already or change nothing: none of them shall use up the budget."""
    seen: set[str] = set()
    useful = []
    for row in rows:
        if isinstance(row, dict):
            said = [row.get(key) or "" for key in ("op", "file", "target", "content")]
            op, _, target, content = said
            nothing = content == target if op == "replace" else op != "delete" and not says_something(content)
            if nothing or repr(said) in seen:
                continue
            seen.add(repr(said))
        useful.append(row)
    return useful


def _edit(
    row: Json, *, name: str, origins: tuple[str, ...], support: int, source: PatchSource, assumed: bool = False
) -> Edit | Unusable:
    if not isinstance(row, dict):
        return Unusable("each edit must be an object with `op`, `target` and `content`")
    op = row.get("op", "append")
    if op not in _OPS:
        return Unusable(f"`op` must be one of {', '.join(_OPS)}, not {op!r}")
    return Edit(
        id=name,
        op=op,
        content=text_in(row, "content"),
        target=text_in(row, "target"),
        file=text_in(row, "file"),
        support=support,
        source=source,
        origins=origins,
        origins_assumed=assumed,
    )


def read_merge(text: str, *, merge: str, inputs: Mapping[str, Edit], source: PatchSource) -> MergeReply | Unusable:
    """A merger's reply; `inputs` are the proposed edits under the labels that the prompt gave them."""
    reply = read_listed(text, "edits")
    if isinstance(reply, Unusable):
        return reply
    rows = reply.rows
    if len(rows) > 2 * len(inputs):  # each may name all of them as its origins: without a limit that is a square
        return Unusable(f"`edits` has {len(rows)} edits, but only {len(inputs)} were proposed: merge them into fewer")
    useful = _useful(rows)
    if rows and not useful:
        return Unusable("none of the `edits` would change anything")
    edits = merged_from(useful, merge, inputs, source, _edit)
    return edits if isinstance(edits, Unusable) else MergeReply(edits=edits, reasoning=reply.reasoning)


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


_OP: dict[str, Json] = {"type": "string", "enum": list(_OPS)}
_PATCH = object_of(reasoning=STRING, edits=list_of(object_of(op=_OP, target=STRING, content=STRING)))

FAILURE_SCHEMA = object_of(failure_summary=FAILURES, patch=_PATCH)
SUCCESS_SCHEMA = object_of(success_patterns=list_of(STRING), patch=_PATCH)
NOTED_FAILURE_SCHEMA = object_of(failure_summary=JUDGED_FAILURES, patch=_PATCH, appendix_notes=list_of(STRING))
NOTED_SUCCESS_SCHEMA = object_of(success_patterns=list_of(STRING), patch=_PATCH, appendix_notes=list_of(STRING))
CLAIMED_SCHEMA = object_of(
    reasoning=STRING,
    edits=list_of(object_of(hypothesis=STRING, items=list_of(STRING), op=_OP, target=STRING, content=STRING)),
)
CONSOLIDATION_SCHEMA = object_of(reasoning=STRING, appendix_notes=list_of(STRING))
MERGE_SCHEMA = object_of(
    reasoning=STRING,
    edits=list_of(object_of(op=_OP, target=STRING, content=STRING, **{"from": list_of(STRING)}, support_count=INTEGER)),
)
RANKING_SCHEMA = object_of(reasoning=STRING, selected_indices=list_of(INTEGER))
LEARNING_RATE_SCHEMA = object_of(learning_rate=INTEGER, reasoning=STRING, confidence=STRING, risk_notes=list_of(STRING))
SLOW_UPDATE_SCHEMA = object_of(reasoning=STRING, slow_update_content=STRING)
META_SKILL_SCHEMA = object_of(reasoning=STRING, meta_skill_content=STRING)


def naming_files(schema: Mapping[str, Json], skill: SkillTree) -> Mapping[str, Json]:
    """A schema whose edits say which file they are for, where the skill has several."""
    return schema if len(skill.files) < 2 else cast("Mapping[str, Json]", _with_file(dict(schema)))


def _with_file(schema: Json) -> Json:
    if isinstance(schema, list):
        return [_with_file(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    properties = schema.get("properties")
    if isinstance(properties, dict) and {"op", "content"} <= set(properties):
        named: dict[str, Json] = {"file": STRING, **properties}
        return {**schema, "properties": named, "required": [*named]}
    return {key: _with_file(value) for key, value in schema.items()}
