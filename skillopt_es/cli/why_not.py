"""`why-not`: what was proposed in a run and not taken, each with the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillopt_es.cli.options import directory_option, json_option, run_argument
from skillopt_es.cli.printing import as_found, print_json
from skillopt_es.cli.terminal import print_page
from skillopt_es.counting import counted
from skillopt_es.presenting.documents import plain
from skillopt_es.presenting.words import names, proposal_words, short, unsaid_words

if TYPE_CHECKING:
    from skillopt_es.projections.not_taken import NotTaken
    from skillopt_es.runs.reading import Reading

_LAST = 100  # some steps' worth; more fill several screens, and `--last` asks for them


@click.command("why-not")
@run_argument
@click.option("--step", type=click.IntRange(min=1), metavar="N", help="Only what was proposed in this step.")
@click.option("--item", metavar="ID", help="Only the proposals of analysts who saw this task.")
@click.option(
    "--last", type=click.IntRange(min=1), default=_LAST, show_default=True, metavar="N",
    help="Show only the newest N, with --json too. All are counted.",
)  # fmt: skip
@directory_option
@json_option
def why_not_command(
    run: str | None, step: int | None, item: str | None, last: int, directory: Path, as_json: bool
) -> int:
    """
    Everything that was proposed and not taken, and why. RUN defaults to the newest.

    Merged away, ranked or screened out, not applied, refused by the gate with its candidate, or never judged; replies
    that could not be used, too. Each proposal is listed once, by the way on which it came furthest. What the run has
    not decided yet is not in it.

    \b
    skillopt-es why-not
    skillopt-es why-not my-run --step 7 --last 500
    skillopt-es why-not my-run --item date-03
    """
    from skillopt_es.audit.comparisons import with_comparisons
    from skillopt_es.audit.refused_again import with_earlier_refusals
    from skillopt_es.projections.not_taken import NOT_TAKEN_TYPES, not_taken
    from skillopt_es.runs.folders import find_run
    from skillopt_es.runs.items import split_of
    from skillopt_es.runs.reading import Reading

    folder = find_run(run, directory)
    with Reading.of(folder) as reading:
        if item is not None:
            split_of(item, reading)  # says so when there is no such task
        if step is not None:
            from skillopt_es.audit.tried import chain_of

            chain_of(step, reading)  # says so when there is no such step
        found = not_taken(reading.read(types=NOT_TAKEN_TYPES))
        found = with_comparisons(with_earlier_refusals(found, reading), reading)
        rows = [row for row in found.rows if (step is None or row.step == step) and (item is None or item in row.items)]
        unsaid = [merge for number, merges in found.unsaid.items() if step in (None, number) for merge in merges]
        if as_json:
            _print_json(reading, rows, unsaid, last)
        else:
            print_page(_page(reading.run.name, rows, unsaid, last))
        return as_found(reading)


def _print_json(reading: Reading, rows: list[NotTaken], unsaid: list[str], last: int) -> None:
    shown = rows[-last:]
    print_json(
        {
            "run": reading.run.name,
            "problem": plain(reading.problem),
            "matched_by_wording": bool(unsaid),
            "counts": dict(Counter(row.reason for row in rows).most_common()),
            "total": len(rows),
            "left_out": len(rows) - len(shown),
            "not_taken": [plain(row) for row in shown],
        }
    )


def _page(name: str, rows: list[NotTaken], unsaid: list[str], last: int) -> Iterator[str]:
    counts = Counter(row.reason.replace("_", " ") for row in rows)
    said = ", ".join(f"{count} {reason}" for reason, count in counts.most_common())
    yield f"{name}: {len(rows)} not taken{f': {said}' if said else ''}"
    if unsaid:
        yield unsaid_words(len(unsaid))
    if len(rows) > last:
        yield f"the last {last} are shown; --last {len(rows)} shows all, --step and --item fewer"
    place = ""
    for row in rows[-last:]:
        here = f"step {row.step}, epoch {row.epoch}" if row.step is not None else f"end of epoch {row.epoch}"
        if here != place:
            yield here
            place = here
        yield f"  {row.reason.replace('_', ' ')}: {row.id}  {_what(row)}"
        if len(row.path) > 1:
            more = f", and in {counted(row.ends - 1, 'other way')} that came no further" if row.ends > 1 else ""
            yield f"    merged into {', then '.join(row.path[1:])}{more}"
        if row.detail:
            yield f"    {short(row.detail, 110)}"
        if row.earlier:
            yield f"    refused in {short(row.earlier, 110)}"
        if row.items:
            failed = [item for item in row.items if item not in row.solved]
            yield f"    from {names(failed) or 'no failed task'}"
        if row.solved:
            yield f"    with {counted(len(row.solved), 'solved task')} for comparison: {names(row.solved)}"


def _what(row: NotTaken) -> str:
    if row.proposal is not None:
        return proposal_words(row.proposal)
    return f"{row.kind} “{short(row.text)}”" if row.text else row.kind
