"""
Pieces of the optimizer's replies that several readers share, and pieces of their schemas.

The replies of all analysts have the same around their proposals: the patch, its list, and reminder notes beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar, cast

from attrs import frozen

from skillopt_es.events.codec import clean_text
from skillopt_es.events.values import FailurePattern, Json, PatchSource, Proposal
from skillopt_es.replies.json_reader import Unusable, read_object
from skillopt_es.replies.notes import cause_of, read_notes

P = TypeVar("P", bound=Proposal)


def says_something(text: Json) -> bool:
    """Whether a text has a letter or a digit: some models copy the dots of the form they are shown."""
    return isinstance(text, str) and any(map(str.isalnum, text))


def text_in(row: Mapping[str, Json], key: str) -> str:
    """The text under a key; empty when there is none."""
    value = row.get(key)
    # JSON can escape what UTF-8 cannot hold.
    return clean_text(value) if isinstance(value, str) else ""


def patterns_in(rows: Json, most: int, *, with_cause: bool = False) -> tuple[FailurePattern, ...]:
    """An analyst's patterns; none can count more failures than the analyst was shown."""
    if not isinstance(rows, list):
        return ()
    patterns = []
    for row in rows:
        if isinstance(row, dict) and text_in(row, "failure_type"):
            count = row.get("count")
            counted = count if isinstance(count, int) and not isinstance(count, bool) else 1
            patterns.append(
                FailurePattern(
                    type=text_in(row, "failure_type"),
                    count=max(1, min(counted, most)),
                    description=text_in(row, "description"),
                    cause=cause_of(row) if with_cause else "",
                )
            )
    return tuple(patterns)


def parents_of(row: Json, inputs: Mapping[str, P]) -> tuple[tuple[P, ...], bool]:
    """The proposals that a merged one names as its sources; all, marked as assumed, if it names none that exist."""
    named = row.get("from") if isinstance(row, dict) else None
    labels = [label for label in named if isinstance(label, str)] if isinstance(named, list) else []
    parents = tuple(inputs[label] for label in dict.fromkeys(labels) if label in inputs)
    return (parents, False) if parents else (tuple(inputs.values()), True)


def support_of(row: Json, parents: Sequence[Proposal]) -> int:
    """How many trajectories stand behind a merged proposal: what was said, within what is possible."""
    most = sum(parent.support for parent in parents)
    said = row.get("support_count") if isinstance(row, dict) else None
    if isinstance(said, int) and not isinstance(said, bool):
        return max(1, min(said, most))
    return max(1, most)


def source_of(row: Json, parents: Sequence[Proposal], default: PatchSource) -> PatchSource:
    """What kind of trajectories stands behind a merged proposal: as it says, else as its parents had it."""
    said = row.get("source_type") if isinstance(row, dict) else None
    if said in ("failure", "success"):
        return cast(PatchSource, said)
    return "failure" if any(parent.source == "failure" for parent in parents) else default


def proposed_from(
    rows: Iterable[Json], patch: str, support: int, source: PatchSource, make: Callable[..., P | Unusable]
) -> tuple[P, ...] | Unusable:
    """What an analyst proposed, each standing on the whole minibatch; or why the first bad row is no proposal."""
    proposed = []
    for position, row in enumerate(rows, start=1):
        each = make(row, name=f"{patch}#{position}", origins=(patch,), support=support, source=source)
        if isinstance(each, Unusable):
            return each
        proposed.append(each)
    return tuple(proposed)


def merged_from(
    rows: Iterable[Json],
    merge: str,
    inputs: Mapping[str, P],
    source: PatchSource,
    make: Callable[..., P | Unusable],
) -> tuple[P, ...] | Unusable:
    """What a merge wrote, made of its rows with their sources among the inputs; or why the first bad one is none."""
    merged = []
    for position, row in enumerate(rows, start=1):
        parents, assumed = parents_of(row, inputs)
        each = make(
            row,
            name=f"{merge}#{position}",
            origins=tuple(parent.id for parent in parents),
            support=support_of(row, parents),
            source=source_of(row, parents, source),
            assumed=assumed,
        )
        if isinstance(each, Unusable):
            return each
        merged.append(each)
    return tuple(merged)


def object_of(**properties: Json) -> dict[str, Json]:
    """The schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def list_of(item: Json) -> dict[str, Json]:
    """The schema of a list."""
    return {"type": "array", "items": item}


STRING: dict[str, Json] = {"type": "string"}
INTEGER: dict[str, Json] = {"type": "integer"}
_CAUSE: dict[str, Json] = {"type": "string", "enum": ["SKILL_DEFECT", "EXECUTION_LAPSE"]}
FAILURES = list_of(object_of(failure_type=STRING, count=INTEGER, description=STRING))
JUDGED_FAILURES = list_of(object_of(failure_type=STRING, cause=_CAUSE, count=INTEGER, description=STRING))


@frozen(kw_only=True)
class PatchEnvelope:
    """An analyst's reply with its proposals still as they came."""

    rows: tuple[Json, ...]
    patterns: tuple[FailurePattern, ...]
    reasoning: str
    notes: tuple[str, ...]


@frozen
class ListedReply:
    """A reply whose proposals stand in one list, still as they came."""

    rows: tuple[Json, ...]
    reasoning: str


def read_listed(text: str, key: str) -> ListedReply | Unusable:
    """The reply whose proposals stand in the list `key`, with nothing around it."""
    found = read_object(text)
    if isinstance(found, Unusable):
        return found
    rows = found.get(key)
    if not isinstance(rows, list):
        return Unusable(f"`{key}` must be a list")
    return ListedReply(tuple(rows), text_in(found, "reasoning"))


def read_envelope(text: str, key: str, *, support: int, most_notes: int) -> PatchEnvelope | Unusable:
    """The reply whose proposals stand in the list `key`; notes are read, and may come alone, if asked for."""
    found = read_object(text)
    if isinstance(found, Unusable):
        return found
    inner = found.get("patch", found)
    if inner is None and most_notes:
        inner = {}  # there may be lapses alone
    if not isinstance(inner, dict):
        return Unusable(f"`patch` must be an object with `reasoning` and `{key}`")
    notes = read_notes({**inner, **found}, most=most_notes) if most_notes else ()
    if isinstance(notes, Unusable):
        return notes
    rows = inner.get(key, [] if notes else None)
    if not isinstance(rows, list):
        return Unusable(f"`patch.{key}` must be a list (an empty one if nothing should change)")
    return PatchEnvelope(
        rows=tuple(rows),
        patterns=patterns_in(found.get("failure_summary"), support, with_cause=most_notes > 0),
        reasoning=text_in(inner, "reasoning"),
        notes=notes,
    )
