"""`gate calibrate`: how often the gate accepts what is no better, and what gain it can see."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from skillopt_es.cli.options import directory_option, json_option, place_option, run_argument, which_option
from skillopt_es.cli.printing import print_json, print_table
from skillopt_es.cli.terminal import field, print_hanging, say
from skillopt_es.counting import counted

if TYPE_CHECKING:
    from skillopt_es.audit.calibrating import Subject
    from skillopt_es.events.values import Json, Split
    from skillopt_es.gate.calibration import Calibration, NotKnown, Worth
    from skillopt_es.gate.flips import Counted

_MOST_ROWS = 20  # a screen; --json has all


@click.group("gate")
def gate_command() -> None:
    """What the gate's rule is worth on your items."""


@gate_command.command("calibrate")
@run_argument
@click.option(
    "--repeats",
    type=click.IntRange(min=2),
    help="Try the validation items this many times under one skill (asks the target).",
)
@which_option("best", "current", "initial")
@place_option(Path("evals"), "Where evaluations are recorded.", "--evals", "evaluations")
@directory_option
@json_option
def calibrate_command(
    run: str | None, repeats: int | None, which: str, evaluations: Path, directory: Path, as_json: bool
) -> None:
    """
    How often items flip under one text, how often each rule accepts what is no better, and what gain it sees.

    No better is a candidate that changes nothing, and one that turns a tenth of the results for no gain, or fewer where
    so many cannot turn: an item that always passes does so under such a candidate, too. From attempts that were
    recorded anyway: further draws of the gate, items that came round again. --repeats makes fresh ones, recorded like
    those of `eval`: what was drawn once costs nothing later. RUN defaults to the newest.

    \b
    skillopt-es gate calibrate
    skillopt-es gate calibrate my-run --repeats 4
    """
    from skillopt_es.audit.calibrating import calibrated, subject
    from skillopt_es.gate.calibration import NotKnown
    from skillopt_es.runs.folders import find_run

    of = subject(find_run(run, directory), evaluations)
    drawn = None if repeats is None else asyncio.run(_drawn(of, which, repeats))
    found = calibrated(of, which)
    if as_json:
        print_json(_json(of, which, found, drawn))
    elif isinstance(found, NotKnown):
        print_hanging(f"{of.folder.name}, {which} skill ({of.skill(which).hash[:12]}): {found.why}", hang=2)
        field("next", _next(of, which))
    else:
        _print(of, which, found, drawn)


async def _drawn(of: Subject, which: str, repeats: int) -> Path:
    from skillopt_es.audit.calibrating import draw
    from skillopt_es.cli.evaluate import refuse_problems
    from skillopt_es.cli.process import command_watch
    from skillopt_es.errors import Interrupted

    try:
        async with command_watch() as watch:
            session = watch.session()
            evaluated = await draw(of, which, repeats, session, _silent)
    except Interrupted as stopped:
        raise Interrupted(stopped.message, hint="the same command continues where this one stopped") from None
    refuse_problems(evaluated)
    return evaluated.folder


def _silent(split: Split, done: int, total: int) -> None:
    """No progress: repeats are short."""


def _next(of: Subject, which: str) -> str:
    count = len(of.validation_items)
    named = "" if which == "best" else f" --which {which}"
    return f"skillopt-es gate calibrate {of.folder}{named} --repeats 4   (tries {count} validation items 4 times)"


def _print(of: Subject, which: str, found: Calibration, drawn: Path | None) -> None:
    from skillopt_es.engine.algorithms import algorithm_named

    items = found.items
    tried = sum(each.tried for each in items.values())
    field("run", f"{of.folder.name}: {len(items)} validation items")
    field("skill", f"{which} ({found.skill[:12]}): {counted(tried, 'attempt')}, {1 - found.room:.1%} passed")
    if drawn is not None:
        field("recorded", str(drawn))
    for label, line in zip(("flips", ""), _flips_words(found), strict=True):
        field(label, line)
    _print_items(items)
    say()
    headers = ("rule", "changes nothing", "no gain", "smallest gain", "first", "later", "")
    print_table(headers, [_row(each) for each in found.rules], right=(1, 2, 3, 4, 5))
    for each in found.rules:
        if each.too_little:
            print_hanging(f"{each.rule.title}: {each.too_little}", hang=2)
    say()
    for column, line in _legend(found):
        print_hanging(f"{column:<18}{line}", hang=18)
    first = algorithm_named(of.config.train.algorithm).words.before_the_gate
    if first:
        print_hanging(f"{first}{_AFTER_A_SCREEN}", hang=2)
    say()
    own = next(each.rule for each in found.rules if each.own)
    settings = " ".join(f"--set {key}={value}" for key, value in found.recommended.settings.items())
    print_hanging(f"recommended: {'the rule that the run has' if found.recommended == own else settings}", hang=2)


_AFTER_A_SCREEN = "So what the rule accepts of candidates that change nothing is not what decides here."


def _flips_words(found: Calibration) -> Iterator[str]:
    """How often items flip, how sure that is, and what it rests on."""
    flips = found.flips
    interval = f"{flips.interval.low:.1%} to {flips.interval.high:.1%}"
    rate = f"{flips.rate:.1%} of cases (95 % interval {interval})"
    yield f"two attempts at an item under one text differ in {rate}"
    texts = f", under {flips.texts} texts" if flips.texts > 1 else ""
    why = "; no validation item was" if found.source == "training" else ""
    yield f"by {counted(flips.items, f'{found.source} item')} tried more than once{texts}{why}"


def _legend(found: Calibration) -> Iterator[tuple[str, str]]:
    """What each column is; none of it is of a verdict that was given."""
    from skillopt_es.gate.calibration import CHURN

    turned, passed = found.rules[0].null.turned, f"{1 - found.room:.1%}"
    yield "changes nothing", "how often the same text is accepted (in brackets: at most, by these repeats)"
    if turned > 0:
        yield "no gain", f"how often a text is accepted that turns {turned:.0%} of the results, up as often as down"
        if round(turned, 2) < CHURN:
            yield "", f"(not {CHURN:.0%}: nearly all items do the same in each attempt, so more cannot turn)"
    else:
        yield "no gain", "not known: all items do the same, so no edit can turn some up and others down"
    yield "smallest gain", "accepted in 80 of 100 cases: failing items that then pass in every draw"
    if found.room * len(found.items) < 1:
        yield "", f"none: this text passes {passed} of its attempts, which leaves no room for a gain"
    elif any(each.smallest is None for each in found.rules):
        yield "", f"none: even all that is left, {100 * found.room:.1f} points, is accepted less often"
    yield "first, later", "attempts of a comparison: the current skill has one draw, or all it needs"


def _print_items(items: Mapping[str, Counted]) -> None:
    """The items that gave both results, those that did most evenly first."""
    both = [(item, each) for item, each in items.items() if 0 < each.passed < each.tried]
    if not both:
        return
    both.sort(key=lambda pair: -pair[1].scatter)
    click.echo()
    rows = [(item, str(each.tried), str(each.passed), f"{each.flips:.0%}") for item, each in both[:_MOST_ROWS]]
    print_table(("item", "tried", "passed", "flips"), rows, right=(1, 2, 3))
    if len(both) > _MOST_ROWS:
        click.echo(f"and {len(both) - _MOST_ROWS} more; --json has all")


def _row(each: Worth) -> tuple[str, ...]:
    smallest = "none" if each.smallest is None else f"{100 * each.smallest:.1f} points"
    said = "the run's own" if each.own else ""
    null = each.null
    itself = f"{null.itself:.0%} ({null.itself_most:.0%})"
    churn = "-" if null.churn is None else f"{null.churn:.0%}"
    return (each.rule.title, itself, churn, smallest, f"{each.first:.0f}", f"{each.later:.0f}", said)


def _json(of: Subject, which: str, found: Calibration | NotKnown, drawn: Path | None) -> Json:
    from skillopt_es.gate.calibration import Calibration

    head: dict[str, Json] = {
        "run": of.folder.name,
        "which": which,
        "skill": of.skill(which).hash,
        "recorded": None if drawn is None else str(drawn),
    }
    if not isinstance(found, Calibration):
        return {**head, "calibrated": False, "why": found.why, "next": _next(of, which)}
    items: list[Json] = [
        {"id": item, "tried": each.tried, "passed": each.passed, "flip_rate": each.flips if each.tried > 1 else None}
        for item, each in found.items.items()
    ]
    return {
        **head,
        "calibrated": True,
        "source": found.source,
        "repeated": found.flips.items,
        "texts": found.flips.texts,
        "flip_rate": found.flips.rate,
        "flip_interval": [found.flips.interval.low, found.flips.interval.high],
        "room": found.room,
        "churn_turns": found.rules[0].null.turned,
        "items": items,
        "rules": [_rule_json(each) for each in found.rules],
        "recommended": found.recommended.settings,
    }


def _rule_json(each: Worth) -> Json:
    return cast(
        "Json",
        {
            **each.rule.settings,
            "own": each.own,
            "null_accepts": each.null.itself,
            "null_accepts_most": each.null.itself_most,
            "churn_accepts": each.null.churn,
            "smallest_gain": each.smallest,
            "attempts": each.first,
            "attempts_later": each.later,
            "too_little": each.too_little or None,
        },
    )
