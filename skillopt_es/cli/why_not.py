"""`why-not`: what was proposed in a run and not taken, each with the reason."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillopt_es.cli.audit_words import LEFT_UNSAID, as_found, names, problem_json, proposal_json, proposal_words, short
from skillopt_es.cli.options import directory_option, json_option, print_json, run_argument
from skillopt_es.events.values import Json

if TYPE_CHECKING:
    from skillopt_es.projections.not_taken import NotTaken


@click.command("why-not")
@run_argument
@click.option("--step", type=click.IntRange(min=1), metavar="N", help="Only what was proposed in this step.")
@directory_option
@json_option
def why_not_command(run: str | None, step: int | None, directory: Path, as_json: bool) -> int:
    """
    Everything that was proposed and not taken, and why. RUN defaults to the newest.

    Merged away, ranked out, not applied, refused by the gate with its candidate, or never judged; replies that could
    not be used, too. What the run has not decided yet is not in it.
    """
    from skillopt_es.audit.reading import Reading
    from skillopt_es.cli.explain import chain_of
    from skillopt_es.projections.not_taken import NOT_TAKEN_TYPES, not_taken
    from skillopt_es.runs import find_run

    folder = find_run(run, directory)
    with Reading.of(folder) as reading:
        if step is not None:
            chain_of(step, reading)  # says so when there is no such step
        rows = [row for row in not_taken(reading.read(types=NOT_TAKEN_TYPES)) if step is None or row.step == step]
        if as_json:
            print_json(
                {
                    "run": reading.run.name,
                    "problem": problem_json(reading),
                    "not_taken": [_json(row) for row in rows],
                }
            )
        else:
            _print(reading.run.name, rows)
        return as_found(reading)


def _print(name: str, rows: list[NotTaken]) -> None:
    counts = Counter(row.reason.replace("_", " ") for row in rows)
    said = ", ".join(f"{count} {reason}" for reason, count in counts.most_common())
    click.echo(f"{name}: {len(rows)} not taken{f': {said}' if said else ''}")
    place = ""
    for row in rows:
        here = f"step {row.step}, epoch {row.epoch}" if row.step is not None else f"end of epoch {row.epoch}"
        if here != place:
            click.echo(here)
            place = here
        click.echo(f"  {row.reason.replace('_', ' ')}: {row.id}  {_what(row)}")
        if len(row.path) > 1:
            click.echo(f"    merged into {', then '.join(row.path[1:])}{LEFT_UNSAID if row.assumed else ''}")
        if row.detail:
            click.echo(f"    {short(row.detail, 110)}")
        if row.also_taken:
            click.echo(f"    taken all the same in {names(row.also_taken)}")
        if row.items:
            click.echo(f"    from {names(row.items)}")


def _what(row: NotTaken) -> str:
    if row.proposal is not None:
        return proposal_words(row.proposal)
    return f"{row.kind} “{short(row.text)}”" if row.text else row.kind


def _json(row: NotTaken) -> Json:
    return {
        "kind": row.kind,
        "id": row.id,
        "seq": row.seq,
        "epoch": row.epoch,
        "step": row.step,
        "reason": row.reason,
        "detail": row.detail,
        "proposal": None if row.proposal is None else proposal_json(row.proposal),
        "text": row.text,
        "path": list(row.path),
        "items": list(row.items),
        "also_taken": list(row.also_taken),
        "assumed": row.assumed,
    }
