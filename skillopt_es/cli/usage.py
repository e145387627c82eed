"""`usage`: calls, tokens and money of a run, by stage, role, step, epoch, evaluation or place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from skillopt_es.cli.options import directory_option, json_option, print_json, print_table, run_argument
from skillopt_es.counting import counted
from skillopt_es.events.values import Json
from skillopt_es.presenting.documents import problem_json, usage_json
from skillopt_es.presenting.numbers import lower_bounds, not_as_wanted, not_counted, shown_cost, shown_tokens
from skillopt_es.projections.usage import KINDS, RunUsage, Usage
from skillopt_es.runs.overview import Spent

_GROUPS = ("stage", "role", "step", "epoch", "evaluation", "place")


@click.command("usage")
@run_argument
@click.option(
    "--by",
    type=click.Choice((*_GROUPS, "improvement")),
    default="stage",
    show_default=True,
    help="How to group the calls; improvement: what each step cost and gained.",
)
@directory_option
@json_option
def usage_command(run: str | None, by: str, directory: Path, as_json: bool) -> int:
    """
    Calls, tokens and, with prices in the config, money of a run. RUN defaults to the newest.

    What was not reported is unknown, never 0: a sum that is only a lower bound ends in + and says why.
    With --json, all groups at once, but for improvement.
    """
    from skillopt_es.cli.audit_words import as_found
    from skillopt_es.cli.imported_usage import print_usage_there, usage_there_json
    from skillopt_es.projections.imported_usage import usage_there
    from skillopt_es.runs.folders import find_run
    from skillopt_es.runs.overview import spent_in
    from skillopt_es.runs.reading import Reading

    with Reading.of(find_run(run, directory)) as reading:
        imported = reading.read(types=("RunImported", "StepImported"))
        there = usage_there(recorded.event for recorded in imported)
        if there is not None:
            if as_json:
                print_json(usage_there_json(there))
            else:
                print_usage_there(there, by)
            return as_found(reading)
        found = spent_in(reading)
        if by == "improvement":
            from skillopt_es.cli.improvement import print_improvement

            print_improvement(reading, found, as_json=as_json)
        elif as_json:
            print_json({**_as_json(found), "problem": problem_json(reading)})
        else:
            _print(found, by)
        return as_found(reading)


def _print(spent: Spent, by: str) -> None:
    """One row a group and the totals; a dash for what no call reported."""
    currency, usage = spent.currency, spent.usage
    rows = [_row(name, group, currency) for name, group in _groups(usage)[by]]
    headers = (by, "calls", "failed", "tries", *KINDS, *([f"cost {currency}"] if currency else []))
    print_table(headers, [*rows, _row("total", usage.total, currency)], right=range(1, len(headers)))
    if spent.inherited:
        click.echo(f"a fork: what came along from its parent ({counted(spent.inherited, 'call')}) is not counted")
    for line in (*not_as_wanted(spent), *not_counted(spent)):
        click.echo(line)
    for line in lower_bounds(spent):
        click.echo(f"+ at least: {line}")


def _as_json(spent: Spent) -> dict[str, Json]:
    """The totals and every group; null for tokens and money of which nothing is known."""
    groups: dict[str, Json] = {
        f"by_{by}": {name: usage_json(group) for name, group in rows} for by, rows in _groups(spent.usage).items()
    }
    return {
        "currency": spent.currency or None,
        "crashes": spent.crashes,
        "inherited": spent.inherited,
        "ahead": usage_json(spent.ahead.made),
        "ahead_wasted": usage_json(spent.ahead.wasted),
        "repeats": spent.ahead.repeats,
        "total": usage_json(spent.usage.total),
        **groups,
    }


def _groups(usage: RunUsage) -> dict[str, list[tuple[str, Usage]]]:
    return {
        "stage": list(usage.by_stage.items()),
        "role": list(usage.by_role.items()),
        "step": _numbered(usage.by_step),
        "epoch": _numbered(usage.by_epoch),
        "evaluation": _outside_last(
            [(name, group) for name, group in usage.by_evaluation.items() if name is not None],
            usage.by_evaluation.get(None),
        ),
        "place": list(usage.by_place.items()),
    }


def _numbered(groups: Mapping[int | None, Usage]) -> list[tuple[str, Usage]]:
    """By number; what lies outside, such as the baseline and the tests, comes last."""
    inside = sorted((number, group) for number, group in groups.items() if number is not None)
    return _outside_last([(str(number), group) for number, group in inside], groups.get(None))


def _outside_last(inside: list[tuple[str, Usage]], outside: Usage | None) -> list[tuple[str, Usage]]:
    return inside if outside is None else [*inside, ("outside", outside)]


def _row(name: str, usage: Usage, currency: str) -> tuple[str, ...]:
    counts = (usage.calls, usage.failed, usage.tries)
    tokens = (shown_tokens(getattr(usage, kind)) for kind in KINDS)
    return (name, *(f"{count:,}" for count in counts), *tokens, *([shown_cost(usage.cost)] if currency else []))
