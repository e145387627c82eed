"""`rescore`: what another grader would have given for the recorded answers, and what the gate makes of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click
from attrs import asdict

from skillopt_es.cli.options import directory_option, json_option, print_json, print_table, run_argument
from skillopt_es.cli.regate import print_verdicts, verdicts_json
from skillopt_es.counting import counted
from skillopt_es.events.values import Failed, Measured
from skillopt_es.presenting.numbers import shown_value
from skillopt_es.presenting.words import short

if TYPE_CHECKING:
    from skillopt_es.audit.rescoring import Grade, Rescoring
    from skillopt_es.events.values import Json, Outcome

_MOST = 20


@click.command("rescore")
@run_argument
@click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE",
    help="Another grader, such as env.grader=contains, or corrected data; without it, the recorded one.",
)  # fmt: skip
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
    from skillopt_es.audit.rescoring import rescored_log
    from skillopt_es.cli.audit_words import as_found
    from skillopt_es.presenting.documents import problem_json
    from skillopt_es.runs.folders import find_run
    from skillopt_es.runs.reading import Reading

    folder = find_run(run, directory)
    with Reading.of(folder) as reading:
        found = asyncio.run(rescored_log(reading, reading.log, folder, overrides))
        if as_json:
            print_json({"run": folder.name, **_json(found), "problem": problem_json(reading)})
        else:
            _print(folder, found)
        return as_found(reading)


def _json(found: Rescoring) -> dict[str, Json]:
    return {
        "graded": len(found.grades),
        "changed": [_grade_json(each) for each in found.grades if each.changed],
        "evaluations": [
            {**asdict(each), "changed": each.recorded != each.derived} for each in found.regated.evaluations
        ],
        "first_grade_that_analysts_read": found.regated.read,
        **verdicts_json(found.regated),
    }


def _grade_json(each: Grade) -> Json:
    return {
        "seq": each.seq,
        "place": each.place,
        "item": each.item,
        "recorded": _outcome_json(each.recorded),
        "derived": None if each.derived is None else _outcome_json(each.derived),
        "why": each.why,
    }


def _outcome_json(outcome: Outcome) -> Json:
    values: dict[str, Json] = asdict(outcome)
    return {"outcome": "measured" if isinstance(outcome, Measured) else "failed", **values}


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
        click.echo(f"  event {each.seq:<6} {each.place}/{each.item}: {_words(each.recorded)} -> {told}")
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
