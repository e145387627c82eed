"""`usage`: calls, tokens and money of a run, by stage, role, step, epoch, evaluation or place."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import click

from skillopt_es.cli.options import directory_option, json_option, print_json, print_table, run_argument
from skillopt_es.counting import counted
from skillopt_es.events.values import Json
from skillopt_es.projections.usage import KINDS, Money, RunUsage, Tally, Usage
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
    from skillopt_es.cli.audit_words import as_found, problem_json
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


def not_as_wanted(spent: Spent) -> list[str]:
    """What was asked ahead of a verdict and what was not asked again, where there is any of it."""
    ahead, lines = spent.ahead, []
    if ahead.made.calls:
        lost = shown_usage(ahead.wasted, spent.currency)
        lines.append(f"{ahead.made.calls:,} calls were made ahead of a verdict; of no use in the end: {lost}")
    if ahead.repeats:
        lines.append(f"{ahead.repeats:,} further calls were not made: the same request had been answered before")
    return lines


def lower_bounds(spent: Spent) -> list[str]:
    """Why totals end in +, one sentence each; empty when none does."""
    total = spent.usage.total
    lines = []
    for kind in KINDS:
        tally: Tally = getattr(total, kind)
        if tally.silent and tally.speaking:
            lines.append(
                f"{tally.silent:,} of {counted(total.calls, 'call')} did not report {kind} tokens, or not for each try"
            )
    if spent.currency and total.cost.unknown:
        lines.append(
            f"the cost of {total.cost.unknown:,} of {counted(total.calls, 'call')} is unknown (no price, or no tokens)"
        )
    return lines


def not_counted(spent: Spent) -> list[str]:
    """What no number has, although it may have cost something."""
    times = "once" if spent.crashes == 1 else f"{spent.crashes} times"
    return [f"the run was killed {times}; calls that were in flight then are not counted"] if spent.crashes else []


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


def shown_tokens(tally: Tally) -> str:
    """A count of tokens for people: a plus behind a lower bound, a dash for what no call reported."""
    if tally.known is None:
        return "-"
    return f"{tally.known:,}{'+' if tally.silent else ''}"


def shown_cost(cost: Money) -> str:
    """An amount for people: four decimals, more for what is tiny; a plus behind a lower bound."""
    if cost.known is None:
        return "-"
    tiny = 0 < cost.known < Decimal("0.001")
    return f"{cost.known:,.{8 if tiny else 4}f}{'+' if cost.unknown else ''}"


def shown_usage(usage: Usage, currency: str) -> str:
    """Calls, tokens and money in one line; a plus behind a lower bound, a dash for what is not known at all."""
    tokens = f"{counted(usage.calls, 'call')}, {shown_tokens(usage.input)} tokens in, {shown_tokens(usage.output)} out"
    return f"{tokens}, {currency} {shown_cost(usage.cost)}" if currency else tokens


def total_json(spent: Spent) -> Json:
    """The totals, for other commands' documents."""
    head: dict[str, Json] = {"currency": spent.currency or None, "crashes": spent.crashes, "inherited": spent.inherited}
    return {**head, **usage_json(spent.usage.total)}


def usage_json(usage: Usage) -> dict[str, Json]:
    """A group as JSON; null for what no call reported."""
    tokens: dict[str, Json] = {}
    for kind in KINDS:
        tally: Tally = getattr(usage, kind)
        tokens[f"{kind}_tokens"] = tally.known
        tokens[f"{kind}_unreported_calls"] = tally.silent
    known = usage.cost.known
    return {
        "calls": usage.calls,
        "failed": usage.failed,
        "tries": usage.tries,
        **tokens,
        "cost": None if known is None else float(known),
        "cost_unknown_calls": usage.cost.unknown,
    }
