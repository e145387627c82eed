"""`regate`: what another metric or rule would have decided, from the recorded results alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from attrs import asdict

from skillopt_es.cli.options import directory_option, json_option, print_json, print_table, run_argument
from skillopt_es.cli.table_layout import table_width
from skillopt_es.cli.terminal import print_hanging, print_next, say, width
from skillopt_es.counting import counted
from skillopt_es.presenting.numbers import shown_value
from skillopt_es.runs.folders import dir_option

if TYPE_CHECKING:
    from skillopt_es.audit.regated import Regated, Verdict
    from skillopt_es.events.values import Json

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
    from skillopt_es.audit.regating import regated_log
    from skillopt_es.cli.audit_words import as_found
    from skillopt_es.presenting.documents import problem_json
    from skillopt_es.runs.folders import find_run
    from skillopt_es.runs.reading import Reading

    folder = find_run(run, directory)
    with Reading.of(folder) as reading:
        _ = reading.started
        found = regated_log(reading, folder, overrides)
        if as_json:
            print_json({"run": folder.name, **verdicts_json(found), "problem": problem_json(reading)})
        else:
            print_verdicts(folder, found, "this rule")
        return as_found(reading)


def verdicts_json(found: Regated) -> dict[str, Json]:
    """Both zones, for programs."""
    return {
        "first_change": None if found.first_change is None else found.first_change.seq,
        "parting": None if found.parting is None else found.parting.seq,
        "other_scores_told_after_step": found.told,
        "best": {"recorded": found.best_recorded, "derived": found.best_derived},
        "exact": [asdict(each) for each in found.verdicts if each.zone == "exact"],
        "estimate": [asdict(each) for each in found.verdicts if each.zone == "estimate"],
    }


def print_verdicts(folder: Path, found: Regated, by: str) -> None:
    """Both zones, for people; `by` is what decides otherwise."""
    exact = [each for each in found.verdicts if each.zone == "exact"]
    estimate = [each for each in found.verdicts if each.zone == "estimate"]
    if not found.verdicts:
        click.echo(f"{folder.name} has judged no candidate yet")
        return
    parting = found.parting
    click.echo(f"EXACT: what {by} decides up to {_end_of_exact(found)}")
    if exact:
        _print_zone(exact, by)
    else:
        click.echo(f"nothing: {'that is' if found.read is None else 'after it comes'} the first of all verdicts")
    before = parting is None or parting.kind != "candidate" or (found.told or 0) < parting.number
    if found.told is not None and before:
        click.echo(f"after step {found.told} analysts would have read other scores, and might have answered otherwise")
    if parting is None and not estimate:
        click.echo(
            f"\nno verdict changes: {'the only one is' if len(exact) == 1 else f'all {len(exact):,} are'} as recorded"
        )
        return
    if estimate:
        say()
        print_hanging(f"ESTIMATE: {by} on candidates that the other history might not have met in this form", hang=2)
        _print_zone(estimate, by)
        click.echo(f"\n{_counts(estimate)}")
    same = "the same" if found.best_recorded == found.best_derived else "another"
    word = "is" if not estimate else "would perhaps be"
    skills = f"{found.best_recorded[:12]} recorded, {found.best_derived[:12]} by {by}"
    print_hanging(f"the best skill {word} {same}: {skills}", hang=2)
    if found.read is None and parting is not None and parting.kind == "candidate" and parting.number > 1:
        where = dir_option(folder.parent)
        print_next([(f"fork {folder.name} --until step {parting.number - 1} --set …{where}", "finds out")])


def _end_of_exact(found: Regated) -> str:
    """Where what is certain ends, and why."""
    if found.read is not None:
        return f"event {found.read}, a result with another grade"
    parting = found.parting
    if parting is None:
        return "the end"
    return "the first verdict that cannot be told" if parting.changed is None else "the first changed verdict"


def _counts(estimate: list[Verdict]) -> str:
    """How many verdicts are others, and of how many nobody can tell."""
    unknown = sum(each.changed is None for each in estimate)
    said = f"{sum(each.changed is True for each in estimate)} of {counted(len(estimate), 'estimated verdict')} differ"
    return f"{said}, {unknown} cannot be told" if unknown else said


def _print_zone(verdicts: list[Verdict], by: str) -> None:
    rows = [
        (
            "?" if each.changed is None else "*" if each.changed else "",
            f"{_NUMBER[each.kind]} {each.number}",
            shown_value(each.against),
            f"≤{shown_value(each.value)}" if each.bound else shown_value(each.value),
            each.recorded.replace("_", " "),
            (each.derived or "cannot be told").replace("_", " "),
            each.why,
        )
        for each in verdicts
    ]
    headers, columns = ("", "at", "current", "candidate", "recorded", by, ""), width()
    if columns is None or table_width(headers, rows) <= columns:
        print_table(headers, rows, right=(2, 3), verdicts=(4, 5))
        return
    print_table(headers[:-1], [row[:-1] for row in rows], right=(2, 3), verdicts=(4, 5))
    remarks: dict[str, list[str]] = {}
    for _, at, *_, why in rows:
        if why:
            remarks.setdefault(why, []).append(at)
    for why, places in remarks.items():
        print_hanging(f"{', '.join(places)}: {why}", hang=2)
