"""`bisect`: the step at which a task began to fail or to pass, from recorded results; nothing is run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillopt_es.cli.options import directory_option, json_option, run_argument
from skillopt_es.cli.printing import as_found, print_json, print_table
from skillopt_es.cli.terminal import print_hanging
from skillopt_es.counting import counted
from skillopt_es.events.values import Json
from skillopt_es.presenting.documents import plain, some_of
from skillopt_es.presenting.words import names

if TYPE_CHECKING:
    from skillopt_es.projections.turning_points import Turn, TurningPoints, Under

_WORDS = {"mixed": "passed and failed", "unmeasured": "tried, not measured", "missing": "no result"}


@click.command("bisect")
@run_argument
@click.option("--item", required=True, metavar="ID", help="The task.")
@directory_option
@json_option
def bisect_command(run: str | None, item: str, directory: Path, as_json: bool) -> int:
    """
    When a task began to fail or to pass: its recorded results under each skill that was current.

    No call is made. Where nothing was recorded between two results that differ, that is said: the turn lies among those
    texts. RUN defaults to the newest.
    """
    from skillopt_es.projections.lineage import TYPES, lineage
    from skillopt_es.projections.turning_points import turning_points
    from skillopt_es.runs.folders import find_run
    from skillopt_es.runs.items import results_of, split_of
    from skillopt_es.runs.reading import Reading

    folder = find_run(run, directory)
    with Reading.of(folder) as reading:
        split = split_of(item, reading)
        tree = lineage(reading.read(types=TYPES))
        found = turning_points(item, tree, results_of(item, reading))
        if as_json:
            print_json({"run": reading.run.name, "problem": plain(reading.problem), "split": split, **_json(found)})
        else:
            click.echo(f"{reading.run.name}: item {item} of the {split} split")
            _print(found)
        return as_found(reading)


def _print(found: TurningPoints) -> None:
    rows = [(each.text, each.skill[:8], _result(each), _places(each)) for each in found.under]
    print_table(("text of", "skill", "result", "measured in"), rows)
    for turn in found.turns:
        print_hanging(_turn_words(turn), hang=2)
    if found.turns:
        return
    known = {each.result for each in found.under if each.result in ("passed", "failed")}
    if not known:
        click.echo("it has no clear result under any text that was current, so there is nothing to compare")
    else:
        missing = sum(each.result == "missing" for each in found.under)
        said = f"; under {missing} of {counted(len(found.under), 'text')} it was never tried" if missing else ""
        click.echo(f"it {known.pop()} wherever a clear result was recorded: it never turned{said}")


def _result(under: Under) -> str:
    return _WORDS.get(under.result, under.result)


def _places(under: Under) -> str:
    return names(tuple(dict.fromkeys(seen.event.place for seen in under.results)), 4)


def _turn_words(turn: Turn) -> str:
    how = "pass" if turn.to == "passed" else "fail"
    before, after = turn.before, turn.after
    if not turn.between:
        return (
            f"began to {how} with the text of {after.text} (event {after.seq}), which came after that of {before.text}"
        )
    unknown = ", ".join(f"{each.text} ({_result(each)})" for each in turn.between)
    return (
        f"began to {how} at the latest with the text of {after.text} (event {after.seq}), but not yet with that of "
        f"{before.text}; what it did between them is not known: {unknown}"
    )


def _json(found: TurningPoints) -> dict[str, Json]:
    return {
        "item": found.item,
        "under": [_under_json(each) for each in found.under],
        "turns": [
            {
                "to": turn.to,
                "after": turn.before.text,
                "at": turn.after.text,
                "at_seq": turn.after.seq,
                "exact": not turn.between,
                "unknown": [each.text for each in turn.between],
            }
            for turn in found.turns
        ],
    }


def _under_json(under: Under) -> Json:
    return {
        **some_of(under, "text", "seq", "skill", "result"),
        "results": [{"seq": seen.seq, "place": seen.event.place} for seen in under.results],
    }
