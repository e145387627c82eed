"""`usage`: calls, tokens and money of a run, by stage, role, step, epoch, evaluation or place."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import click

from skillopt_es.audit.improvement import Improvement, Stretch, improvement_of
from skillopt_es.cli.options import directory_option, json_option, run_argument
from skillopt_es.cli.printing import print_json, print_table
from skillopt_es.counting import counted
from skillopt_es.events.requests import KINDS
from skillopt_es.events.values import ImportedUsage, Json
from skillopt_es.presenting.documents import plain, some_of
from skillopt_es.presenting.numbers import (
    lower_bounds,
    not_as_wanted,
    not_counted,
    shown_cost,
    shown_tokens,
    shown_value,
)
from skillopt_es.projections.usage import Money, RunUsage, Tally, UsageSums, UsageThere, together
from skillopt_es.runs.overview import Spent
from skillopt_es.runs.reading import Reading

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
    from skillopt_es.cli.printing import as_found
    from skillopt_es.projections.usage import usage_there
    from skillopt_es.runs.folders import find_run
    from skillopt_es.runs.overview import spent_in

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
            print_improvement(reading, found, as_json=as_json)
        elif as_json:
            print_json({**_as_json(found), "problem": plain(reading.problem)})
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
        f"by_{by}": {name: plain(group) for name, group in rows} for by, rows in _groups(spent.usage).items()
    }
    return {
        "currency": spent.currency or None,
        **some_of(spent, "crashes", "inherited"),
        "ahead": plain(spent.ahead.made),
        "ahead_wasted": plain(spent.ahead.wasted),
        "repeats": spent.ahead.repeats,
        "total": plain(spent.usage.total),
        **groups,
    }


def _groups(usage: RunUsage) -> dict[str, list[tuple[str, UsageSums]]]:
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


def _numbered(groups: Mapping[int | None, UsageSums]) -> list[tuple[str, UsageSums]]:
    """By number; what lies outside, such as the baseline and the tests, comes last."""
    inside = sorted((number, group) for number, group in groups.items() if number is not None)
    return _outside_last([(str(number), group) for number, group in inside], groups.get(None))


def _outside_last(inside: list[tuple[str, UsageSums]], outside: UsageSums | None) -> list[tuple[str, UsageSums]]:
    return inside if outside is None else [*inside, ("outside", outside)]


def _row(name: str, usage: UsageSums, currency: str) -> tuple[str, ...]:
    counts = (usage.calls, usage.failed, usage.tries)
    tokens = (shown_tokens(getattr(usage, kind)) for kind in KINDS)
    return (name, *(f"{count:,}" for count in counts), *tokens, *([shown_cost(usage.cost)] if currency else []))


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
        "total": plain(together(usage.by_stage.values())),
        "by_stage": {stage: plain(row) for stage, row in usage.by_stage.items()},
        "by_step": {str(step): plain(row) for step, row in usage.by_step.items()},
    }


def _cells(row: ImportedUsage) -> tuple[str, ...]:
    return tuple("-" if count is None else f"{count:,}" for count in (row.calls, row.input_tokens, row.output_tokens))


def print_improvement(reading: Reading, used: Spent, *, as_json: bool) -> None:
    """The page, or the document, as far as the log can be read."""
    found = improvement_of((recorded.event for recorded in reading.read()), used.usage)
    if as_json:
        print_json({**_improvement_json(found, used), "problem": plain(reading.problem)})
    else:
        _print_page(found, used)


def _tokens(usage: UsageSums) -> Tally:
    return usage.input + usage.output


def _print_page(found: Improvement, used: Spent) -> None:
    money = [f"cost {used.currency}"] if used.currency else []
    headers = ("after", "verdict", "edits", "lines", "best", "points", "tokens", *money, "tokens so far")
    headers = (*headers, *(["cost so far"] if money else []))
    print_table(headers, [_stretch_row(each, bool(money)) for each in found.curve], right=range(2, len(headers)))
    click.echo()
    rows = [(stage, *_spent_cells(usage, found, bool(money))) for stage, usage in found.by_stage.items()]
    headers = ("stage", "tokens", *money, "tokens a point", *([f"{used.currency} a point"] if money else []))
    print_table(
        headers, [*rows, ("total", *_spent_cells(found.total, found, bool(money)))], right=range(1, len(headers))
    )
    click.echo()
    metric = f"{found.metric} score " if found.metric else ""
    values = f"{metric}{shown_value(found.first)} -> {shown_value(found.best)}"
    click.echo(
        f"gained      {found.points:.2f} points on the gate ({values}), by {counted(found.edits, 'accepted edit')}"
    )
    for name, number in _units(found):
        click.echo(f"{f'one {name}':<12}{_each(found.total, number, used.currency)}")
    if used.inherited:
        click.echo(f"a fork: what came along from its parent ({counted(used.inherited, 'call')}) is not counted")
    for line in not_counted(used):
        click.echo(line)
    for line in lower_bounds(used):
        click.echo(f"+ at least: {line}")


def _units(found: Improvement) -> list[tuple[str, float]]:
    return [("point", found.points), ("line", found.lines), ("edit", found.edits)]


def _each(usage: UsageSums, number: float, currency: str) -> str:
    """What one of so many cost, on the whole; a dash where there is none."""
    if number <= 0:
        return "-"
    tokens = f"{_shared_tokens(_tokens(usage), number)} tokens"
    return f"{tokens}, {currency} {_shared_cost(usage.cost, number)}" if currency else tokens


def _shared_tokens(tokens: Tally, number: float) -> str:
    if tokens.known is None or number <= 0:
        return "-"
    return f"{tokens.known / number:,.0f}{'+' if tokens.silent else ''}"


def _shared_cost(cost: Money, number: float) -> str:
    if cost.known is None or number <= 0:
        return "-"
    return shown_cost(Money(cost.known / Decimal(str(number)), cost.unknown, cost.priced))


def _stretch_row(each: Stretch, money: bool) -> tuple[str, ...]:
    gained = f"{each.points:+.2f}" if each.points else ""
    counts = (str(each.edits or ""), str(each.lines or ""), shown_value(each.best), gained)
    own = (shown_tokens(_tokens(each.usage)), *([shown_cost(each.usage.cost)] if money else []))
    so_far = (shown_tokens(_tokens(each.so_far)), *([shown_cost(each.so_far.cost)] if money else []))
    return (each.name, each.verdict.replace("_", " "), *counts, *own, *so_far)


def _spent_cells(usage: UsageSums, found: Improvement, money: bool) -> tuple[str, ...]:
    tokens = _tokens(usage)
    own = (shown_tokens(tokens), *([shown_cost(usage.cost)] if money else []))
    share = (_shared_tokens(tokens, found.points), *([_shared_cost(usage.cost, found.points)] if money else []))
    return (*own, *share)


def _improvement_json(found: Improvement, used: Spent) -> dict[str, Json]:
    return {
        "currency": used.currency or None,
        **some_of(used, "inherited", "crashes"),
        **some_of(found, "first", "best", "points"),
        "accepted_edits": found.edits,
        "lines": found.lines,
        "total": plain(found.total),
        "by_stage": {stage: plain(usage) for stage, usage in found.by_stage.items()},
        "for_each": {name: None if number <= 0 else _each_json(found.total, number) for name, number in _units(found)},
        "curve": [plain(each) for each in found.curve],
    }


def _each_json(usage: UsageSums, number: float) -> Json:
    tokens, cost = _tokens(usage).known, usage.cost.known
    return {
        "tokens": None if tokens is None else tokens / number,
        "cost": None if cost is None else float(cost) / number,
    }
