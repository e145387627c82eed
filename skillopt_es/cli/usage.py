"""`usage`: calls and tokens of a run, by stage, role, step, epoch or place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from skillopt_es.cli.options import directory_option, json_option, print_json, print_table, run_argument
from skillopt_es.events.values import Json
from skillopt_es.projections.usage import RunUsage, Tally, Usage

_GROUPS = ("stage", "role", "step", "epoch", "place")
_TOKENS = ("input", "output", "cached", "reasoning")


@click.command("usage")
@run_argument
@click.option("--by", type=click.Choice(_GROUPS), default="stage", show_default=True, help="How to group the calls.")
@directory_option
@json_option
def usage_command(run: str | None, by: str, directory: Path, as_json: bool) -> None:
    """Calls and tokens of a run. RUN defaults to the newest. With --json, all groups at once."""
    from skillopt_es.cli.imported_usage import print_usage_there, usage_there_json
    from skillopt_es.events.journal import Journal
    from skillopt_es.events.log import EventLog
    from skillopt_es.projections.imported_usage import usage_there
    from skillopt_es.projections.usage import usage_of
    from skillopt_es.runs import find_run

    with EventLog.open(find_run(run, directory)) as log:
        usage = usage_of(Journal(log.reader).read())
        there = usage_there(recorded.event for recorded in log.read(types=("RunImported", "StepImported")))
    if there is not None:
        if as_json:
            print_json(usage_there_json(there))
        else:
            print_usage_there(there, by)
    elif as_json:
        print_json(_as_json(usage))
    else:
        _print(usage, by)


def _print(usage: RunUsage, by: str) -> None:
    """One row a group and the totals; a dash for what no call reported."""
    groups = _groups(usage)[by]
    rows = [_row(name, group) for name, group in groups]
    headers = (by, "calls", "failed", "tries", "input", "output", "cached", "reasoning")
    print_table(headers, [*rows, _row("total", usage.total)], right=range(1, len(headers)))
    for kind in _TOKENS:
        tally: Tally = getattr(usage.total, kind)
        if tally.silent and tally.speaking:
            click.echo(f"+ at least: {tally.silent:,} of {usage.total.calls:,} calls did not report {kind} tokens")


def _as_json(usage: RunUsage) -> Json:
    """The totals and every group; null for tokens that no call reported."""
    groups: dict[str, Json] = {
        f"by_{by}": {name: _plain(group) for name, group in rows} for by, rows in _groups(usage).items()
    }
    return {"total": _plain(usage.total), **groups}


def _groups(usage: RunUsage) -> dict[str, list[tuple[str, Usage]]]:
    return {
        "stage": list(usage.by_stage.items()),
        "role": list(usage.by_role.items()),
        "step": _numbered(usage.by_step),
        "epoch": _numbered(usage.by_epoch),
        "place": list(usage.by_place.items()),
    }


def _numbered(groups: Mapping[int | None, Usage]) -> list[tuple[str, Usage]]:
    """By number; what lies outside, such as the baseline and the tests, comes last."""
    inside = sorted((number, group) for number, group in groups.items() if number is not None)
    rows = [(str(number), group) for number, group in inside]
    return [*rows, ("outside", groups[None])] if None in groups else rows


def _row(name: str, usage: Usage) -> tuple[str, ...]:
    counts = (usage.calls, usage.failed, usage.tries)
    tokens = (_shown(getattr(usage, kind)) for kind in _TOKENS)
    return (name, *(f"{count:,}" for count in counts), *tokens)


def _shown(tally: Tally) -> str:
    if tally.known is None:
        return "-"
    return f"{tally.known:,}{'+' if tally.silent else ''}"


def _plain(usage: Usage) -> Json:
    tokens: dict[str, Json] = {}
    for kind in _TOKENS:
        tally: Tally = getattr(usage, kind)
        tokens[f"{kind}_tokens"] = tally.known
        tokens[f"{kind}_unreported_calls"] = tally.silent
    return {"calls": usage.calls, "failed": usage.failed, "tries": usage.tries, **tokens}
