"""`gate calibrate`: how often the gate takes a text against itself, and what gain it can see."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from skillopt_es.cli.options import directory_option, json_option, print_json, print_table, run_argument
from skillopt_es.counting import counted

if TYPE_CHECKING:
    from skillopt_es.calibrating import Subject
    from skillopt_es.events.values import Json, Split
    from skillopt_es.training.calibration import Calibration, Worth
    from skillopt_es.training.gate_power import Counted
    from skillopt_es.training.gate_rules import Rule

_MOST_ROWS = 20


@click.group("gate")
def gate_command() -> None:
    """What the gate's rule is worth on your items."""


@gate_command.command("calibrate")
@run_argument
@click.option(
    "--draws", type=click.IntRange(min=2), help="Try the validation items so often under one skill (asks the target)."
)
@click.option(
    "--which",
    type=click.Choice(["best", "current", "initial"]),
    default="best",
    show_default=True,
    help="Which skill.",
)
@click.option(
    "--evals",
    "evaluations",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("evals"),
    show_default=True,
    help="Where evaluations are recorded.",
)
@directory_option
@json_option
def calibrate_command(
    run: str | None, draws: int | None, which: str, evaluations: Path, directory: Path, as_json: bool
) -> None:
    """
    An A/A test: how often items flip under one text, how often each rule takes a text against itself, and what it sees.

    From attempts that were recorded anyway: further draws of the gate, items that came round again. --draws makes fresh
    ones, recorded like those of `eval`: what was drawn once costs nothing later. RUN defaults to the newest.

    \b
    skillopt-es gate calibrate
    skillopt-es gate calibrate my-run --draws 4
    """
    from skillopt_es.calibrating import calibrated, subject
    from skillopt_es.runs import find_run

    of = subject(find_run(run, directory), evaluations)
    drawn = None if draws is None else asyncio.run(_drawn(of, which, draws))
    found = calibrated(of, which)
    if as_json:
        print_json(_json(of, found, drawn))
    elif found is None:
        click.echo(f"{of.folder.name}: no item was tried twice under one text, so how often items flip is not known")
        click.echo(f"next       {_next(of)}")
    else:
        _print(of, found, drawn)


async def _drawn(of: Subject, which: str, draws: int) -> Path:
    from skillopt_es.calibrating import draw
    from skillopt_es.cli.evaluated import refuse_problems
    from skillopt_es.cli.signals import until_stopped
    from skillopt_es.cli.waiting import WaitTeller
    from skillopt_es.errors import Interrupted
    from skillopt_es.session import Session
    from skillopt_es.training.in_flight import InFlight

    try:
        say = partial(click.echo, err=True)
        in_flight = InFlight(WaitTeller(say))
        async with until_stopped(say, in_flight) as stopping:
            session = Session(now=lambda: datetime.now(UTC), stopping=stopping, in_flight=in_flight)
            evaluated = await draw(of, which, draws, session, _silent)
    except Interrupted as stopped:
        raise Interrupted(stopped.message, hint="the same command goes on where this one stopped") from None
    refuse_problems(evaluated)
    return evaluated.folder


def _silent(split: Split, done: int, total: int) -> None:
    """No progress: draws are short."""


def _next(of: Subject) -> str:
    count = len(of.run.selection_items)
    return f"skillopt-es gate calibrate {of.folder} --draws 4   (tries {count} validation items 4 times)"


def _print(of: Subject, found: Calibration, drawn: Path | None) -> None:
    items = found.items
    tried = sum(each.tried for each in items.values())
    click.echo(f"run        {of.folder.name}: {len(items)} validation items")
    click.echo(f"skill      {found.skill[:12]}: {counted(tried, 'attempt')}")
    if drawn is not None:
        click.echo(f"recorded   {drawn}")
    where = "" if found.source == "validation" else ", seen on training items, for no validation item was repeated"
    click.echo(
        f"flips      two attempts at an item under one text differ in {found.flip_rate:.1%} of cases "
        f"({found.repeated} items were repeated{where})"
    )
    _print_items(items)
    click.echo()
    rows = [_row(each) for each in found.rules]
    headers = ("rule", "takes a text against itself", "sees a gain of (80 %)", "attempts a comparison", "")
    print_table(headers, rows, right=(1, 2, 3))
    click.echo()
    own = next(each.rule for each in found.rules if each.own)
    if found.recommended == own:
        click.echo("recommended: the rule that the run has")
    else:
        settings = " ".join(f"--set {key}={value}" for key, value in _settings(found.recommended).items())
        click.echo(f"recommended: {settings}")


def _print_items(items: Mapping[str, Counted]) -> None:
    """The items that gave both results, those that did most evenly first."""
    both = [(item, each) for item, each in items.items() if 0 < each.passed < each.tried]
    if not both:
        return
    both.sort(key=lambda pair: -pair[1].scatter)
    click.echo()
    rows = [(item, str(each.tried), str(each.passed), f"{_rate(each):.0%}") for item, each in both[:_MOST_ROWS]]
    print_table(("item", "tried", "passed", "flips"), rows, right=(1, 2, 3))
    if len(both) > _MOST_ROWS:
        click.echo(f"and {len(both) - _MOST_ROWS} more; --json has all")


def _rate(each: Counted) -> float:
    """How often two attempts at an item differ."""
    return min(1.0, 2 * each.scatter)


def _row(each: Worth) -> tuple[str, ...]:
    smallest = "none" if each.smallest is None else f"{100 * each.smallest:.1f} points"
    said = "the run's own" if each.own else ""
    said = f"{said}; {each.too_little}" if said and each.too_little else said or each.too_little
    return (_named(each.rule), f"{each.null_accepts:.1%}", smallest, f"{each.spent:.0f}", said)


def _named(rule: Rule) -> str:
    if rule.name == "strict":
        return "strict"
    errors = f" {rule.standard_errors:g} errors," if rule.name == "paired" else ""
    return f"{rule.name},{errors} {counted(rule.draws, 'draw')}"


def _settings(rule: Rule) -> dict[str, Json]:
    """The config keys that make a rule."""
    found: dict[str, Json] = {"evaluation.gate_rule": rule.name}
    if rule.name != "strict":
        found["evaluation.gate_draws"] = rule.draws
    if rule.name == "paired":
        found["evaluation.gate_standard_errors"] = rule.standard_errors
    return found


def _json(of: Subject, found: Calibration | None, drawn: Path | None) -> Json:
    head: dict[str, Json] = {"run": of.folder.name, "recorded": None if drawn is None else str(drawn)}
    if found is None:
        return {**head, "calibrated": False, "next": _next(of)}
    items: list[Json] = [
        {
            "id": item,
            "tried": each.tried,
            "passed": each.passed,
            "flip_rate": _rate(each) if each.tried > 1 else None,
        }
        for item, each in found.items.items()
    ]
    return {
        **head,
        "calibrated": True,
        "skill": found.skill,
        "source": found.source,
        "repeated": found.repeated,
        "flip_rate": found.flip_rate,
        "items": items,
        "rules": [_rule_json(each) for each in found.rules],
        "recommended": _settings(found.recommended),
    }


def _rule_json(each: Worth) -> Json:
    return cast(
        "Json",
        {
            **_settings(each.rule),
            "own": each.own,
            "null_accepts": each.null_accepts,
            "smallest_gain": each.smallest,
            "attempts": each.spent,
            "too_little": each.too_little or None,
        },
    )
