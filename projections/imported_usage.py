"""The cost of an imported run's calls, as the trainer that made them counted it: there is no journal of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import frozen

from skillopt_es.events.catalog import Event, RunImported, StepImported
from skillopt_es.events.values import ImportedUsage

WHOLE_RUN = "run"
"""What an imported run calls its whole time."""


@frozen(kw_only=True)
class UsageThere:
    """Calls and tokens by stage and by step; `whole` says whether the stages' counts are those of the whole run."""

    by_stage: Mapping[str, ImportedUsage]
    by_step: Mapping[int, ImportedUsage]
    whole: bool

    @property
    def total(self) -> ImportedUsage | None:
        """The counts of the whole run; None where they are of the recorded steps only."""
        return together(self.by_stage.values()) if self.whole else None


def usage_there(events: Iterable[Event]) -> UsageThere | None:
    """The counts of an imported run's events; None for a run of our own."""
    imported: RunImported | None = None
    steps: list[StepImported] = []
    for event in events:
        if isinstance(event, RunImported):
            imported = event
        elif isinstance(event, StepImported):
            steps.append(event)
    if imported is None:
        return None
    by_stage: dict[str, list[ImportedUsage]] = {}
    for step in steps:
        for stage, usage in step.usage.items():
            by_stage.setdefault(stage, []).append(usage)
    summed = {stage: together(rows) for stage, rows in by_stage.items()}
    whole = bool(imported.usage) and all(_covers(imported.usage.get(stage), row) for stage, row in summed.items())
    return UsageThere(
        by_stage=imported.usage if whole else summed,
        by_step={step.step: together(step.usage.values()) for step in steps},
        whole=whole,
    )


def _covers(total: ImportedUsage | None, part: ImportedUsage) -> bool:
    """Whether a total is one: the original's is that of its last process only."""
    if total is None or total.calls is None or part.calls is None:
        return total is not None
    return total.calls >= part.calls


def together(rows: Iterable[ImportedUsage]) -> ImportedUsage:
    """Several counts as one; what one of them does not say is unknown, and so is the sum of none."""
    each = list(rows)
    return ImportedUsage(
        calls=_sum([row.calls for row in each]),
        input_tokens=_sum([row.input_tokens for row in each]),
        output_tokens=_sum([row.output_tokens for row in each]),
    )


def _sum(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None
