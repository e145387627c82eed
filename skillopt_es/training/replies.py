"""
What optimizer models reply, parsed at the edge into typed values.

Each reader takes a reply's text and gives the value or an `Unusable` that says what was wrong, in words for the model.
A schema goes with each reader, for endpoints that can be held to one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import cast

from attrs import evolve, frozen

from skillopt_es.events.codec import clean_text
from skillopt_es.events.values import Edit, EditOp, Evidence, FailurePattern, Json
from skillopt_es.training.json_reader import Unusable, read_object
from skillopt_es.training.note_replies import cause_of, read_notes

_OPS = ("append", "insert_after", "replace", "delete")


@frozen(kw_only=True)
class PatchReply:
    """An analyst's proposal."""

    edits: tuple[Edit, ...]
    patterns: tuple[FailurePattern, ...]
    reasoning: str
    notes: tuple[str, ...] = ()


@frozen(kw_only=True)
class MergeReply:
    """A merger's combined set."""

    edits: tuple[Edit, ...]
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
class AdviceReply:
    """Epoch-level text: slow-update guidance or the optimizer's memory."""

    content: str
    reasoning: str


def read_patch(
    text: str, *, patch: str, kind: Evidence, support: int, most: int, most_notes: int = 0
) -> PatchReply | Unusable:
    """An analyst's reply: at most `most` edits, each standing on the whole minibatch, and `most_notes` notes."""
    found = read_object(text)
    if isinstance(found, Unusable):
        return found
    inner = found.get("patch", found)
    if inner is None and most_notes:
        inner = {}  # there may be lapses alone
    if not isinstance(inner, dict):
        return Unusable("`patch` must be an object with `reasoning` and `edits`")
    notes = read_notes({**inner, **found}, most=most_notes) if most_notes else ()
    if isinstance(notes, Unusable):
        return notes
    rows = inner.get("edits", [] if notes else None)
    if not isinstance(rows, list):
        return Unusable("`patch.edits` must be a list (an empty one if nothing should change)")
    edits = []
    for position, row in enumerate(_useful(rows)[:most], start=1):
        edit = _edit(row, name=f"{patch}#{position}", origins=(patch,), support=support, source=kind)
        if isinstance(edit, Unusable):
            return edit
        edits.append(edit)
    return PatchReply(
        edits=tuple(edits),
        patterns=_patterns(found.get("failure_summary"), support, with_cause=most_notes > 0),
        reasoning=_text(inner, "reasoning"),
        notes=notes,
    )


def _useful(rows: Sequence[Json]) -> list[Json]:
    """The edits without those that were said already or change nothing: none of them shall use up the budget."""
    seen: set[str] = set()
    useful = []
    for row in rows:
        if isinstance(row, dict):
            said = [row.get(key) or "" for key in ("op", "file", "target", "content")]
            op, _, target, content = said
            nothing = content == target if op == "replace" else op != "delete" and not _says_something(content)
            if nothing or repr(said) in seen:
                continue
            seen.add(repr(said))
        useful.append(row)
    return useful


def _says_something(text: Json) -> bool:
    """Whether a text has a letter or a digit: some models copy the dots of the form they are shown."""
    return isinstance(text, str) and any(map(str.isalnum, text))


def _edit(row: Json, *, name: str, origins: tuple[str, ...], support: int, source: Evidence) -> Edit | Unusable:
    if not isinstance(row, dict):
        return Unusable("each edit must be an object with `op`, `target` and `content`")
    op = row.get("op", "append")
    if op not in _OPS:
        return Unusable(f"`op` must be one of {', '.join(_OPS)}, not {op!r}")
    return Edit(
        id=name,
        op=cast(EditOp, op),
        content=_text(row, "content"),
        target=_text(row, "target"),
        file=_text(row, "file"),
        support=support,
        source=source,
        origins=origins,
    )


def _text(row: Mapping[str, Json], key: str) -> str:
    value = row.get(key)
    # JSON can escape what UTF-8 cannot hold.
    return clean_text(value) if isinstance(value, str) else ""


def _patterns(rows: Json, most: int, *, with_cause: bool) -> tuple[FailurePattern, ...]:
    if not isinstance(rows, list):
        return ()
    patterns = []
    for row in rows:
        if isinstance(row, dict) and _text(row, "failure_type"):
            count = row.get("count")
            counted = count if isinstance(count, int) and not isinstance(count, bool) else 1
            patterns.append(
                FailurePattern(
                    type=_text(row, "failure_type"),
                    count=max(1, min(counted, most)),
                    description=_text(row, "description"),
                    cause=cause_of(row) if with_cause else "",
                )
            )
    return tuple(patterns)


def read_merge(text: str, *, merge: str, inputs: Mapping[str, Edit], source: Evidence) -> MergeReply | Unusable:
    """A merger's reply; `inputs` are the proposed edits under the labels that the prompt gave them."""
    found = read_object(text)
    if isinstance(found, Unusable):
        return found
    rows = found.get("edits")
    if not isinstance(rows, list):
        return Unusable("`edits` must be a list")
    if len(rows) > 2 * len(inputs):  # each may name all of them as its origins: without a limit that is a square
        return Unusable(f"`edits` has {len(rows)} edits, but only {len(inputs)} were proposed: merge them into fewer")
    useful = _useful(rows)
    if rows and not useful:
        return Unusable("none of the `edits` would change anything")
    edits = []
    for position, row in enumerate(useful, start=1):
        parents, assumed = _parents(row, inputs)
        edit = _edit(
            row,
            name=f"{merge}#{position}",
            origins=tuple(parent.id for parent in parents),
            support=_support(row, parents),
            source=_source(row, parents, source),
        )
        if isinstance(edit, Unusable):
            return edit
        edits.append(evolve(edit, origins_assumed=assumed))
    return MergeReply(edits=tuple(edits), reasoning=_text(found, "reasoning"))


def _parents(row: Json, inputs: Mapping[str, Edit]) -> tuple[tuple[Edit, ...], bool]:
    """The edits a merged edit names as its sources; all of them, marked as assumed, if it names none that exist."""
    named = row.get("from") if isinstance(row, dict) else None
    labels = [label for label in named if isinstance(label, str)] if isinstance(named, list) else []
    parents = tuple(inputs[label] for label in dict.fromkeys(labels) if label in inputs)
    return (parents, False) if parents else (tuple(inputs.values()), True)


def _support(row: Json, parents: tuple[Edit, ...]) -> int:
    """How many trajectories stand behind a merged edit: what was said, within what is possible."""
    most = sum(parent.support for parent in parents)
    said = row.get("support_count") if isinstance(row, dict) else None
    if isinstance(said, int) and not isinstance(said, bool):
        return max(1, min(said, most))
    return max(1, most)


def _source(row: Json, parents: tuple[Edit, ...], default: Evidence) -> Evidence:
    said = row.get("source_type") if isinstance(row, dict) else None
    if said in ("failure", "success"):
        return cast(Evidence, said)
    return "failure" if any(parent.source == "failure" for parent in parents) else default


def read_ranking(text: str, *, pool: int, budget: int) -> RankingReply | Unusable:
    """A ranking's reply: valid positions, each once, at most `budget`."""
    found = read_object(text)
    if isinstance(found, Unusable):
        return found
    rows = found.get("selected_indices")
    if not isinstance(rows, list):
        return Unusable("`selected_indices` must be a list of whole numbers")
    valid = [row for row in rows if isinstance(row, int) and not isinstance(row, bool) and 0 <= row < pool]
    chosen = tuple(dict.fromkeys(valid))[:budget]
    if not chosen:
        return Unusable(f"`selected_indices` must name at least one index from 0 to {pool - 1}")
    return RankingReply(chosen=chosen, reasoning=_text(found, "reasoning"))


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
        reasoning=_text(found, "reasoning"),
        confidence=_text(found, "confidence"),
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


def read_advice(text: str, *, key: str) -> AdviceReply | Unusable:
    """Epoch-level advice under its key, not blank."""
    found = read_object(text)
    if isinstance(found, Unusable):
        return found
    content = _text(found, key).strip()
    if not _says_something(content):
        return Unusable(f"`{key}` must be a text that is not empty")
    return AdviceReply(content=content, reasoning=_text(found, "reasoning"))


# --- schemas -------------------------------------------------------------------------------------------------------


def _object(**properties: Json) -> dict[str, Json]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _list_of(item: Json) -> dict[str, Json]:
    return {"type": "array", "items": item}


_STRING: dict[str, Json] = {"type": "string"}
_INTEGER: dict[str, Json] = {"type": "integer"}
_OP: dict[str, Json] = {"type": "string", "enum": list(_OPS)}
_EDITS = _list_of(_object(op=_OP, target=_STRING, content=_STRING))

FAILURE_SCHEMA = _object(
    failure_summary=_list_of(_object(failure_type=_STRING, count=_INTEGER, description=_STRING)),
    patch=_object(reasoning=_STRING, edits=_EDITS),
)
SUCCESS_SCHEMA = _object(success_patterns=_list_of(_STRING), patch=_object(reasoning=_STRING, edits=_EDITS))
_CAUSE: dict[str, Json] = {"type": "string", "enum": ["SKILL_DEFECT", "EXECUTION_LAPSE"]}
NOTED_FAILURE_SCHEMA = _object(
    failure_summary=_list_of(_object(failure_type=_STRING, cause=_CAUSE, count=_INTEGER, description=_STRING)),
    patch=_object(reasoning=_STRING, edits=_EDITS),
    appendix_notes=_list_of(_STRING),
)
NOTED_SUCCESS_SCHEMA = _object(
    success_patterns=_list_of(_STRING),
    patch=_object(reasoning=_STRING, edits=_EDITS),
    appendix_notes=_list_of(_STRING),
)
CONSOLIDATION_SCHEMA = _object(reasoning=_STRING, appendix_notes=_list_of(_STRING))
MERGE_SCHEMA = _object(
    reasoning=_STRING,
    edits=_list_of(
        _object(op=_OP, target=_STRING, content=_STRING, **{"from": _list_of(_STRING)}, support_count=_INTEGER)
    ),
)
RANKING_SCHEMA = _object(reasoning=_STRING, selected_indices=_list_of(_INTEGER))
LEARNING_RATE_SCHEMA = _object(
    learning_rate=_INTEGER, reasoning=_STRING, confidence=_STRING, risk_notes=_list_of(_STRING)
)
SLOW_UPDATE_SCHEMA = _object(reasoning=_STRING, slow_update_content=_STRING)
META_SKILL_SCHEMA = _object(reasoning=_STRING, meta_skill_content=_STRING)
