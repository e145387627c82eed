"""Calls and tokens of a run as the original's tables have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from skillopt_es.events.journal import CallRow, Journal
from skillopt_es.events.places import Place
from skillopt_es.events.values import ImportedUsage, Json
from skillopt_es.interchange.step_parts import added_up, usage_json
from skillopt_es.projections.usage import RunUsage, Tally, Usage, usage_of

Record = dict[str, Json]


def usage_by_step(journal: Journal) -> Mapping[int, Mapping[str, ImportedUsage]]:
    """Each step's own calls, by stage."""
    rows: dict[int, list[CallRow]] = {}
    for row in journal.read():
        step = Place(row.call.slot).step
        if step is not None:
            rows.setdefault(step, []).append(row)
    return {step: counted_usage(usage_of(calls)) for step, calls in rows.items()}


def counted_usage(usage: RunUsage) -> dict[str, ImportedUsage]:
    """Calls and tokens by stage."""
    return {stage: _imported_usage(each) for stage, each in usage.by_stage.items()}


def _imported_usage(usage: Usage) -> ImportedUsage:
    """A sum that leaves calls out would be a wrong number: it is unknown."""
    return ImportedUsage(calls=usage.calls, input_tokens=_whole(usage.input), output_tokens=_whole(usage.output))


def _whole(tally: Tally) -> int | None:
    return None if tally.silent else tally.known


def with_totals(usage: Mapping[str, ImportedUsage]) -> Record:
    """The table of a summary: every stage, and all of them together."""
    table = cast("dict[str, Record]", usage_json(usage))
    for row in table.values():
        row["total_tokens"] = added_up(
            (cast("int | None", row["prompt_tokens"]), cast("int | None", row["completion_tokens"]))
        )
    keys = ("calls", "prompt_tokens", "completion_tokens", "total_tokens")
    total: Record = {key: added_up(cast("int | None", row[key]) for row in table.values()) for key in keys}
    return {**table, "_total": total} if table else {}
