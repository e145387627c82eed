"""`usage --by improvement`: what each part of a run cost and gained, for people and for programs."""

from __future__ import annotations

from decimal import Decimal

import click

from skillopt_es.cli.options import print_json, print_table
from skillopt_es.counting import counted
from skillopt_es.events.values import Json
from skillopt_es.presenting.documents import problem_json, usage_json
from skillopt_es.presenting.numbers import lower_bounds, not_counted, shown_cost, shown_tokens, shown_value
from skillopt_es.projections.improvement import Improvement, Stretch, improvement_of
from skillopt_es.projections.usage import Money, Tally, Usage
from skillopt_es.runs.overview import Spent
from skillopt_es.runs.reading import Reading


def print_improvement(reading: Reading, used: Spent, *, as_json: bool) -> None:
    """The page, or the document, as far as the log can be read."""
    found = improvement_of((recorded.event for recorded in reading.read()), used.usage)
    if as_json:
        print_json({**_as_json(found, used), "problem": problem_json(reading)})
    else:
        _print(found, used)


def _tokens(usage: Usage) -> Tally:
    return usage.input + usage.output


def _print(found: Improvement, used: Spent) -> None:
    money = [f"cost {used.currency}"] if used.currency else []
    headers = ("after", "verdict", "edits", "lines", "best", "points", "tokens", *money, "tokens so far")
    headers = (*headers, *(["cost so far"] if money else []))
    print_table(headers, [_row(each, bool(money)) for each in found.curve], right=range(2, len(headers)))
    click.echo()
    rows = [(stage, *_spent_cells(usage, found, bool(money))) for stage, usage in found.by_stage.items()]
    headers = ("stage", "tokens", *money, "tokens a point", *([f"{used.currency} a point"] if money else []))
    print_table(
        headers, [*rows, ("total", *_spent_cells(found.total, found, bool(money)))], right=range(1, len(headers))
    )
    click.echo()
    values = f"{shown_value(found.first)} -> {shown_value(found.best)}"
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


def _each(usage: Usage, number: float, currency: str) -> str:
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


def _row(each: Stretch, money: bool) -> tuple[str, ...]:
    gained = f"{each.points:+.2f}" if each.points else ""
    counts = (str(each.edits or ""), str(each.lines or ""), shown_value(each.best), gained)
    own = (shown_tokens(_tokens(each.usage)), *([shown_cost(each.usage.cost)] if money else []))
    so_far = (shown_tokens(_tokens(each.so_far)), *([shown_cost(each.so_far.cost)] if money else []))
    return (each.name, each.verdict.replace("_", " "), *counts, *own, *so_far)


def _spent_cells(usage: Usage, found: Improvement, money: bool) -> tuple[str, ...]:
    tokens = _tokens(usage)
    own = (shown_tokens(tokens), *([shown_cost(usage.cost)] if money else []))
    share = (_shared_tokens(tokens, found.points), *([_shared_cost(usage.cost, found.points)] if money else []))
    return (*own, *share)


def _as_json(found: Improvement, used: Spent) -> dict[str, Json]:
    return {
        "currency": used.currency or None,
        "inherited": used.inherited,
        "crashes": used.crashes,
        "first": found.first,
        "best": found.best,
        "points": found.points,
        "accepted_edits": found.edits,
        "lines": found.lines,
        "total": usage_json(found.total),
        "by_stage": {stage: usage_json(usage) for stage, usage in found.by_stage.items()},
        "for_each": {name: None if number <= 0 else _each_json(found.total, number) for name, number in _units(found)},
        "curve": [
            {
                "after": each.name,
                "verdict": each.verdict or None,
                "edits": each.edits,
                "lines": each.lines,
                "best": each.best,
                "points": each.points,
                "used": usage_json(each.usage),
                "so_far": usage_json(each.so_far),
            }
            for each in found.curve
        ],
    }


def _each_json(usage: Usage, number: float) -> Json:
    tokens, cost = _tokens(usage).known, usage.cost.known
    return {
        "tokens": None if tokens is None else tokens / number,
        "cost": None if cost is None else float(cost) / number,
    }
