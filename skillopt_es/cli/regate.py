"""`regate`: what another metric or rule would have decided, from the recorded results alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from attrs import asdict

from skillopt_es.cli.options import (
    directory_option,
    json_option,
    print_json,
    print_table,
    run_argument,
    shown_value,
)

if TYPE_CHECKING:
    from skillopt_es.events.values import Json
    from skillopt_es.training.regated import Regated, Verdict

_NUMBER = {"candidate": "step", "guidance": "guidance of epoch", "promotion": "the end, after step"}


@click.command("regate")
@run_argument
@click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE",
    help="Another rule of the gate, such as evaluation.gate_metric=soft; without it, the recorded one.",
)  # fmt: skip
@directory_option
@json_option
def regate_command(run: str | None, overrides: tuple[str, ...], directory: Path, as_json: bool) -> int:
    """
    What another rule would have decided for each recorded candidate: no model calls. RUN defaults to the newest.

    Up to the first verdict that changes this is exact. What follows is an estimate: from there on the run would have
    gone another way and met other candidates. `fork` finds out.

    \b
    skillopt-es regate my-run --set evaluation.gate_metric=soft
    skillopt-es regate my-run --set evaluation.use_gate=false
    """
    from skillopt_es.audit.reading import Reading
    from skillopt_es.cli.audit_words import as_found, problem_json
    from skillopt_es.regating import regated_log
    from skillopt_es.runs import find_run

    folder = find_run(run, directory)
    with Reading.of(folder) as reading:
        _ = reading.started
        found = regated_log(reading, folder, overrides)
        if as_json:
            print_json({"run": folder.name, **verdicts_json(found), "problem": problem_json(reading)})
        else:
            print_verdicts(folder.name, found, "this rule")
        return as_found(reading)


def verdicts_json(found: Regated) -> dict[str, Json]:
    """Both zones, for programs."""
    return {
        "first_change": None if found.first_change is None else found.first_change.seq,
        "other_scores_told_after_step": found.told,
        "best": {"recorded": found.best_recorded, "derived": found.best_derived},
        "exact": [asdict(each) for each in found.verdicts if each.zone == "exact"],
        "estimate": [asdict(each) for each in found.verdicts if each.zone == "estimate"],
    }


def print_verdicts(name: str, found: Regated, by: str) -> None:
    """Both zones, for people; `by` is what decides otherwise."""
    exact = [each for each in found.verdicts if each.zone == "exact"]
    estimate = [each for each in found.verdicts if each.zone == "estimate"]
    if not found.verdicts:
        click.echo(f"{name} has judged no candidate yet")
        return
    first = found.first_change
    parts = "the first changed verdict" if found.read is None else f"event {found.read}, a result with another grade"
    click.echo(f"EXACT: what {by} decides up to {'the end' if first is None and found.read is None else parts}")
    if exact:
        _print_zone(exact, by)
    else:
        click.echo("nothing: what led to the first verdict would have been read otherwise already")
    if found.told is not None and (first is None or first.kind != "candidate" or found.told < first.number):
        click.echo(f"after step {found.told} analysts would have read other scores, and might have answered otherwise")
    if first is None and not estimate:
        click.echo(
            f"\nno verdict changes: {'the only one is' if len(exact) == 1 else f'all {len(exact):,} are'} as recorded"
        )
        return
    if estimate:
        changed = sum(each.changed for each in estimate)
        click.echo(f"\nESTIMATE: {by} on candidates that the other history would not have met in this form")
        _print_zone(estimate, by)
        click.echo(f"\n{changed} of {len(estimate)} estimated verdicts differ")
    same = "the same" if found.best_recorded == found.best_derived else "another"
    word = "is" if not estimate else "would perhaps be"
    click.echo(f"the best skill {word} {same}: {found.best_recorded[:12]} recorded, {found.best_derived[:12]} by {by}")
    if found.read is None and first is not None and first.kind == "candidate" and first.number > 1:
        click.echo(f"next        skillopt-es fork {name} --until step {first.number - 1} --set … finds out")


def _print_zone(verdicts: list[Verdict], by: str) -> None:
    rows = [
        (
            "*" if each.changed else "",
            f"{_NUMBER[each.kind]} {each.number}",
            shown_value(each.against),
            f"≤{shown_value(each.value)}" if each.bound else shown_value(each.value),
            each.recorded.replace("_", " "),
            (each.derived or "cannot be told").replace("_", " "),
            each.why,
        )
        for each in verdicts
    ]
    print_table(("", "at", "current", "candidate", "recorded", by, ""), rows, right=(2, 3), verdicts=(4, 5))
