"""`retract`: what goes back to an item or a trajectory; a fork that never met it; its texts erased."""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from skillopt_es.cli.options import directory_option, json_option, run_argument
from skillopt_es.cli.printing import as_found, print_json
from skillopt_es.cli.terminal import tell
from skillopt_es.counting import counted
from skillopt_es.presenting.documents import plain, some_of
from skillopt_es.presenting.words import short, unsaid_words

if TYPE_CHECKING:
    from skillopt_es.audit.descent import Derived, Descent, Evidence
    from skillopt_es.audit.erasing import Erased
    from skillopt_es.audit.retracting import Retracted
    from skillopt_es.events.values import Json
    from skillopt_es.runs.reading import Reading

_MOST = 100
"""How many of each kind are shown."""
_TITLES = {
    "result": "results",
    "score": "scores that count it",
    "patch": "patches of analysts that saw it",
    "merge": "merges",
    "proposal": "edits, suggestions or drafts",
    "note": "reminder notes",
    "candidate": "candidates",
    "verdict": "verdicts that count it",
    "guidance": "epoch guidance",
    "meta_skill": "meta skills",
}


@click.command("retract")
@run_argument
@click.option("--item", metavar="ID", help="The item that is poisoned, private or mislabelled.")
@click.option("--trajectory", metavar="T", help="One result only: its event's number, slot or digest.")
@click.option("--apply", "apply", is_flag=True, help="Make a fork that never saw it and continues without it.")
@click.option("--erase", is_flag=True, help="Remove its texts from this run's log, for good.")
@click.option(
    "--also", type=click.File(encoding="utf-8"), metavar="FILE",
    help="With --erase: also remove every text that contains one of this file's lines, such as names; - reads stdin.",
)  # fmt: skip
@click.option("--reason", metavar="TEXT", default="", help="Why; recorded. --apply and --erase need it.")
@click.option("--by", metavar="NAME", default="", help="Who; recorded. By default the name you are logged in with.")
@click.option("--name", help="The fork's name; by default the run's and the item.")
@directory_option
@json_option
def retract_command(
    run: str | None,
    item: str | None,
    trajectory: str | None,
    apply: bool,
    erase: bool,
    also: TextIO | None,
    reason: str,
    by: str,
    name: str | None,
    directory: Path,
    as_json: bool,
) -> int:
    """
    What rests on a piece of evidence: patches, merges, edits, candidates, verdicts, guidance and lines of the skill.

    --apply makes a fork from the last moment before anything met it; `resume` goes on without it. --erase removes its
    texts from this run, so that `verify` still vouches for all others and says what was erased. Neither calls a model.

    \b
    skillopt-es retract my-run --item date-03
    skillopt-es retract my-run --item date-03 --apply --reason "wrong label" --name without-date-03
    skillopt-es retract my-run --item date-03 --erase --reason "asked for by its owner"
    """
    from skillopt_es.audit.descent import DESCENT_TYPES, descent
    from skillopt_es.runs.folders import find_run
    from skillopt_es.runs.reading import Reading

    refused = {
        "retract what? Say --item ID or --trajectory T": (item is None) == (trajectory is None),
        "--reason says why, for those who come later: --reason 'wrong label'": (apply or erase) and not reason.strip(),
        "--name names the fork that --apply makes": name is not None and not apply,
        "--also says what --erase looks for": also is not None and not erase,
    }
    for why_not, is_so in refused.items():
        if is_so:
            raise click.UsageError(why_not)
    folder = find_run(run, directory)
    folder = folder if folder.name not in ("", "..") else folder.resolve()
    with Reading.of(folder) as reading:
        evidence = _evidence(item, trajectory, reading)
        found = descent(evidence, reading.read(types=DESCENT_TYPES))
        code = 1 if reading.problem is not None else 0
        done: dict[str, Json] = {}
        if not (apply or erase) or code:
            _print_list(reading, found, as_json=as_json)
            if apply or erase:
                tell("damaged", "nothing was done: a damaged log is not forked and not erased from", level="error")
            return as_found(reading)
    who, why = by.strip() or _user(), reason.strip()
    made = _forked(folder, evidence, name, why, who) if apply else None
    if made is not None:
        done["fork"] = _fork_json(made)
    erased = []
    if erase:
        lines = [line.strip() for line in also or () if line.strip()]
        erased = [_erased(each, evidence, why, who, lines) for each in (folder, *([made.fork.folder] if made else []))]
        done["erased"] = [plain(each) for each in erased]
    if as_json:
        print_json({"run": folder.name, "problem": None, **_json(found), **done})
        return 0
    if made is not None:
        _print_fork(made, found)
    for each in erased:
        click.echo("\n".join(each.lines()))
    return 0


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # nobody in particular, as in a container
        return "unknown"


def _evidence(item: str | None, trajectory: str | None, reading: Reading) -> Evidence:
    from skillopt_es.audit.descent import Evidence
    from skillopt_es.audit.retracting import trajectory_named
    from skillopt_es.runs.items import split_of

    if item is None:
        return trajectory_named(trajectory or "", reading)
    split_of(item, reading)
    return Evidence(item)


def _forked(folder: Path, evidence: Evidence, name: str | None, reason: str, by: str) -> Retracted:
    from skillopt_es.audit.retracting import retracted
    from skillopt_es.runs.folders import fork_folder

    with fork_folder(name, folder, "retracted") as fork:
        return retracted(folder, evidence, fork, reason=reason, by=by, now=lambda: datetime.now(UTC))


def _erased(folder: Path, evidence: Evidence, reason: str, by: str, also: Sequence[str]) -> Erased:
    from skillopt_es.audit.erasing import erase_evidence

    return erase_evidence(folder, evidence, reason=reason, by=by, now=lambda: datetime.now(UTC), also=also)


# --- what is printed -----------------------------------------------------------------------------------------------


def _json(found: Descent) -> dict[str, Json]:
    return {
        "item": found.evidence.item,
        "place": found.evidence.place or None,
        "derived": [plain(each) for each in found.derived],
        "lines": [plain(each) for each in found.lines],
        "accepted_steps": list(found.taken),
        "matched_by_wording": bool(found.unsaid),
        "unknown_steps": list(found.unknown),
    }


def _fork_json(made: Retracted) -> Json:
    return {
        "run": made.fork.folder.name,
        "folder": str(made.fork.folder),
        "seq": made.fork.opening.seq,
        "steps": made.fork.state.steps_done,
        "steps_to_do_again": made.again,
        **some_of(made.event, "by", "reason"),
    }


def _named(evidence: Evidence) -> str:
    return f"{evidence.item}" + (f" at {evidence.place}" if evidence.place else "")


def _print_list(reading: Reading, found: Descent, *, as_json: bool) -> None:
    from skillopt_es.cli.explain_pages import unknown_words

    name = reading.run.name
    if as_json:
        print_json({"run": name, "problem": plain(reading.problem), **_json(found)})
        return
    click.echo(f"{name}: what goes back to {_named(found.evidence)}")
    if not found.derived:
        click.echo("nothing: nobody has met it yet")
        return
    if found.unsaid:
        click.echo(unsaid_words(len(found.unsaid)))
    for kind, title in _TITLES.items():
        rows = [each for each in found.derived if each.kind == kind]
        if rows:
            click.echo(f"\n{title}: {len(rows)}")
            for each in rows[:_MOST]:
                click.echo(f"  event {each.seq:<6} {_words(each)}")
            if len(rows) > _MOST:
                click.echo(f"  and {len(rows) - _MOST} more, which --json lists")
    _print_lines(found)
    if found.taken:
        click.echo(f"\naccepted with it: step {', '.join(map(str, found.taken))}")
    if found.unknown:
        click.echo(f"\nunknown and not listed: {unknown_words(found.unknown)}: patches, edits, lines")
    click.echo(
        "\nnot listed, because it is not recorded: what a model wrote later because it had read such a text or had been"
        " told of a refused edit"
    )


def _words(each: Derived) -> str:
    return f"{short(each.name, 60)}: {each.fate}" if each.fate else each.name


def _print_lines(found: Descent) -> None:
    for which in ("current", "best"):
        lines = [line for line in found.lines if line.which == which]
        click.echo(f"\nlines of the {which} skill: {len(lines)}{' known' if found.unknown else ''}")
        for line in lines:
            click.echo(f"  {line.file}:{line.number:<5} event {line.seq:<6} {short(line.text, 80)}")


def _print_fork(made: Retracted, found: Descent) -> None:
    from skillopt_es.cli.summary import resume_hint

    opening = made.fork.opening
    click.echo(f"fork        {made.fork.folder.name}, of {opening.parent} after event {opening.seq:,}")
    click.echo(f"without     {_named(found.evidence)}, by {made.event.by}: {made.event.reason}")
    shared = made.fork.state.steps_done
    click.echo(
        f"begins      {counted(shared, 'step')} done; {counted(made.again, 'step')} to be done again, "
        f"{counted(opening.inherited, 'recorded call')} to answer what is still the same"
    )
    click.echo(f"next        {resume_hint(made.fork.folder)}")
