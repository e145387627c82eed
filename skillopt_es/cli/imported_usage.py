"""How `usage` prints an imported run: by stage or step, a dash for what was not counted there."""

from __future__ import annotations

import click

from skillopt_es.cli.options import print_table
from skillopt_es.events.values import ImportedUsage, Json
from skillopt_es.projections.imported_usage import UsageThere, together

_HEADERS = ("calls", "input", "output")


def print_usage_there(usage: UsageThere, by: str) -> None:
    """One row a stage or step, and the total."""
    if by not in ("stage", "step"):
        raise click.UsageError(f"--by {by}: the results that this run was imported from count by stage and step only")
    groups = usage.by_stage if by == "stage" else {str(step): row for step, row in usage.by_step.items()}
    rows = [(name, *_cells(row)) for name, row in groups.items()]
    print_table((by, *_HEADERS), [*rows, ("total", *_cells(together(groups.values())))], right=(1, 2, 3))
    if by == "stage" and not usage.whole:
        click.echo("of the recorded steps only: there is no summary of the whole run")


def usage_there_json(usage: UsageThere) -> Json:
    """The same for programs; null for what was not counted."""
    return {
        "imported": True,
        "whole_run": usage.whole,
        "total": _plain(together(usage.by_stage.values())),
        "by_stage": {stage: _plain(row) for stage, row in usage.by_stage.items()},
        "by_step": {str(step): _plain(row) for step, row in usage.by_step.items()},
    }


def _cells(row: ImportedUsage) -> tuple[str, ...]:
    return tuple("-" if count is None else f"{count:,}" for count in (row.calls, row.input_tokens, row.output_tokens))


def _plain(row: ImportedUsage) -> Json:
    return {"calls": row.calls, "input_tokens": row.input_tokens, "output_tokens": row.output_tokens}
