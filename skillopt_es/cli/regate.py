"""`regate` and `rescore`: verdicts under another rule of the gate, and under another grader, from what is recorded."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillopt_es.cli.options import directory_option, json_option, run_argument, set_option
from skillopt_es.cli.printing import print_json, print_table, table_width
from skillopt_es.cli.terminal import print_hanging, print_next, say, width
from skillopt_es.counting import counted
from skillopt_es.events.places import Place
from skillopt_es.events.values import Failed, Measured
from skillopt_es.presenting.documents import plain, plain_fields
from skillopt_es.presenting.numbers import shown_value
from skillopt_es.presenting.words import short
from skillopt_es.runs.folders import dir_option

if TYPE_CHECKING:
    from skillopt_es.audit.regated import Regated, Verdict
    from skillopt_es.audit.rescoring import Rescoring
    from skillopt_es.events.values import Json, Outcome


_NUMBER = {"candidate": "step", "guidance": "guidance of epoch", "promotion": "the end, after step"}


@click.command("regate")
@run_argument
@set_option("Another rule of the gate, such as evaluation.gate_metric=soft; without it, the recorded one.")
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
    from skillopt_es.audit.regating import regated
    from skillopt_es.cli.printing import as_found
    from skillopt_es.runs.folders import find_run
    from skillopt_es.runs.reading import Reading

    folder = find_run(run, directory)
    with Reading.of(folder) as reading:
        _ = reading.started
        found = regated(reading, folder, overrides)
        if as_json:
            print_json({"run": folder.name, **verdicts_json(found), "problem": plain(reading.problem)})
        else:
            print_verdicts(folder, found, "this rule")
        return as_found(reading)


def verdicts_json(found: Regated) -> dict[str, Json]:
    """Both zones, for programs."""
    return {
        "first_change": None if found.first_change is None else found.first_change.seq,
        "parting": None if found.parting is None else found.parting.seq,
        "other_scores_shown_after_step": found.told,
        "best": {"recorded": found.best_recorded, "derived": found.best_derived},
        "exact": [plain(each) for each in found.verdicts if each.zone == "exact"],
        "estimate": [plain(each) for each in found.verdicts if each.zone == "estimate"],
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


_MOST = 20  # a screen; --json has all


@click.command("rescore")
@run_argument
@set_option("Another grader, such as env.grader=contains, or corrected data; without it, the recorded one.")
@directory_option
@json_option
def rescore_command(run: str | None, overrides: tuple[str, ...], directory: Path, as_json: bool) -> int:
    """
    What another grader would have given for each recorded answer, and the gate's verdicts on that: no model calls.

    Up to the first verdict that changes, or the first other grade that analysts would have read, this is exact; what
    follows is an estimate. RUN defaults to the newest.

    \b
    skillopt-es rescore my-run --set env.grader=contains
    skillopt-es rescore my-run --set env.data_path=corrected.jsonl
    """
    from skillopt_es.audit.rescoring import rescored
    from skillopt_es.cli.printing import as_found
    from skillopt_es.runs.folders import find_run
    from skillopt_es.runs.reading import Reading

    folder = find_run(run, directory)
    with Reading.of(folder) as reading:
        found = asyncio.run(rescored(reading, reading.log, folder, overrides))
        if as_json:
            print_json({"run": folder.name, **_json(found), "problem": plain(reading.problem)})
        else:
            _print(folder, found)
        return as_found(reading)


def _json(found: Rescoring) -> dict[str, Json]:
    return {
        "graded": len(found.grades),
        "changed": [plain(each) for each in found.grades if each.changed],
        "evaluations": [
            {**plain_fields(each), "changed": each.recorded != each.derived} for each in found.regated.evaluations
        ],
        "first_grade_that_analysts_read": found.regated.read,
        **verdicts_json(found.regated),
    }


def _print(folder: Path, found: Rescoring) -> None:
    changed = [each for each in found.grades if each.changed]
    unknown = [each for each in changed if each.derived is None]
    graded = f"{folder.name}: {counted(len(found.grades), 'answer')} graded again"
    click.echo(
        f"{graded}, {len(changed) - len(unknown)} with another grade"
        + (f", {len(unknown)} that nobody can tell" if unknown else "")
    )
    for each in changed[:_MOST]:
        told = short(each.why) if each.derived is None else _words(each.derived)
        click.echo(f"  event {each.seq:<6} {Place(each.place).shown(each.item)}: {_words(each.recorded)} -> {told}")
    if len(changed) > _MOST:
        click.echo(f"  and {len(changed) - _MOST} more; --json has all")
    _print_evaluations(found)
    if found.regated.verdicts:
        click.echo()
        print_verdicts(folder, found.regated, "this grader")


def _words(outcome: Outcome) -> str:
    if isinstance(outcome, Measured):
        return f"{'pass' if outcome.passed else 'fail'} {outcome.hard:g}/{outcome.soft:.2f}"
    return f"failed ({outcome.kind})" if isinstance(outcome, Failed) else "not run"


def _print_evaluations(found: Rescoring) -> None:
    """The scores that change; those of training batches are in --json."""
    rows = [
        (each.place, each.skill[:8],
         *(f"{'≤' if each.bound else ''}{shown_value(value)}"
           for value in (each.recorded.hard, each.derived.hard, each.recorded.soft, each.derived.soft)))
        for each in found.regated.evaluations
        if each.purpose in ("selection", "test") and each.recorded != each.derived
    ]  # fmt: skip
    if not rows:
        click.echo("no score of an evaluation changes")
        return
    click.echo()
    print_table(("evaluation", "skill", "hard", "by this grader", "soft", "by this grader"), rows, right=(2, 3, 4, 5))
