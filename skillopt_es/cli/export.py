"""`export`: a run's skill, its events, its tables or the original's result folder as files of their own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillopt_es.cli.options import directory_option
from skillopt_es.cli.skills import SkillChoice, skill_options
from skillopt_es.cli.terminal import write_exactly
from skillopt_es.counting import counted
from skillopt_es.deploy.files import write_file
from skillopt_es.errors import OutputRefused
from skillopt_es.events.catalog import RolloutCompleted, only
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import Json, SkillTree
from skillopt_es.interchange.run_files import result_files
from skillopt_es.runs.reading import whole_log

if TYPE_CHECKING:
    from skillopt_es.deploy.facts import Facts

_FORMATS = ("skill", "jsonl", "sqlite", "skillopt", "datasette", "mlflow", "otel")
_TRACKERS = ("mlflow", "otel")
_TABLES = ("sqlite", "datasette")
_USUAL = {
    "jsonl": "events.jsonl",
    "sqlite": "run.db",
    "skillopt": "results/",
    "datasette": "look/",
    "otel": "trace.json",
}


@click.command("export")
@click.argument("words", nargs=-1, metavar="[RUN]... OUT")
@click.option(
    "--format", "form", type=click.Choice(_FORMATS), default="skill", show_default=True, help="What to write."
)
@click.option("--out", help="Where to write, in place of the last word.")
@skill_options
@click.option("--tracking-uri", help="mlflow: the store, such as sqlite:///mlflow.db. [default: MLFLOW_TRACKING_URI]")
@click.option("--experiment", default="skillopt-es", show_default=True, help="mlflow: the experiment.")
@click.option("--endpoint", help="otel: the collector. [default: OTEL_EXPORTER_OTLP_ENDPOINT]")
@click.option(
    "--trajectories", is_flag=True, help="sqlite, datasette: trajectories too, to be searched; they are large."
)
@click.option("--force", is_flag=True, help="Replace files that exist.")
@directory_option
def export_command(
    words: tuple[str, ...],
    form: str,
    out: str | None,
    choice: SkillChoice,
    tracking_uri: str | None,
    experiment: str,
    endpoint: str | None,
    trajectories: bool,
    force: bool,
    directory: Path,
) -> None:
    """
    Write a run's skill, events, tables or results to OUT. RUN is a name or a folder; the newest run when left out.

    \b
    skill    to a file OUT, such as SKILL.md: the skill's text, byte for byte. To a folder (it exists, or OUT ends
             with / or has no suffix): a skill that coding agents load, SKILL.md with frontmatter, its other files, and
             PROVENANCE.json. The skill is named by --name, by its frontmatter, or else by OUT; unless OUT has
             that name, a folder of it is made in OUT
    jsonl    one event a line, whole; the same log always gives the same bytes
    sqlite   tables of steps, evaluations, rollouts, edits and calls, for SQL and spreadsheets, and a full-text search
             of skills and edits; of several runs, too: `export first second --format sqlite --out runs.db`. A file
             of an earlier export gets the run in addition, or its new rows; --force replaces the file
    skillopt the result folder of the original SkillOpt; a folder that is new, empty or an earlier export
    datasette a folder for `datasette OUT`: the tables of runs, what they mean, and queries to begin with
    mlflow   params, metrics by step and the best skill, to an MLflow store (--tracking-uri); extra `mlflow`
    otel     one trace of spans with the recorded times, to a collector (--endpoint) or a file (--out); extra `otel`

    OUT may be - (standard output) for skill, jsonl and otel. mlflow takes the run alone, and so does otel with an
    endpoint: one word is the run there, unless it is -.
    """
    from skillopt_es.runs.folders import find_run

    given = {
        "--tracking-uri": tracking_uri is not None,
        "--endpoint": endpoint is not None,
        "--trajectories": trajectories,
        "--which, --at, --name and --description": choice != SkillChoice(),
    }
    _refuse_options(form, [names for names, is_given in given.items() if is_given])
    if form in _TRACKERS:
        _export_to_tracker(words, form, out, tracking_uri, experiment, endpoint, directory, force=force)
        return
    runs, to = _runs_and_place(words, out, form)
    # Who forgets where to write names runs alone, and the last of them is taken for the place.
    meant = words if form in _TABLES and out is None else [run for run in runs if run is not None]
    _refuse_run(to, form, meant, directory)
    with ExitStack() as readings:
        # A file that is not whole looks like one that is.
        logs = [readings.enter_context(whole_log(find_run(run, directory))) for run in runs]
        match form:
            case "skill":
                _export_skill(logs[0], choice, to, force=force)
            case "jsonl":
                _export_events(logs[0], to, force=force)
            case "sqlite":
                _export_tables(logs, to, trajectories=trajectories, force=force)
            case "datasette":
                _export_datasette(logs, to, trajectories=trajectories, force=force)
            case _:
                _export_results(logs[0], to)


_GO_WITH = {
    "--tracking-uri": ("mlflow",),
    "--endpoint": ("otel",),
    "--trajectories": _TABLES,
    "--which, --at, --name and --description": ("skill",),
}


def _refuse_options(form: str, given: Sequence[str]) -> None:
    """Raises UsageError for options of another format."""
    for names in given:
        if form not in _GO_WITH[names]:
            verb = "go" if " and " in names else "goes"
            raise click.UsageError(f"{names} {verb} with --format {' or '.join(_GO_WITH[names])}, not with {form}")


def _runs_and_place(words: tuple[str, ...], out: str | None, form: str) -> tuple[Sequence[str | None], str]:
    """The names of the runs, None for the newest, and where to write."""
    if out is not None:
        words = (*words, out)
    if not words or (len(words) > 2 and form not in _TABLES):
        raise click.UsageError("export takes a run and where to write: export [RUN] OUT, or export [RUN] --out OUT")
    return words[:-1] or (None,), words[-1]


def _refuse_run(out: str, form: str, runs: Sequence[str], directory: Path) -> None:
    """Raises OutputRefused for a place that is a run, or that somebody who meant the run may have called so."""
    from skillopt_es.runs.folders import dir_option, is_run

    where = dir_option(directory)
    form_said = "" if form == "skill" else f" --format {form}"
    what = " ".join(dict.fromkeys(runs or (out,)))
    to = _USUAL.get(form, "SKILL.md")
    if is_run(Path(out)):
        hint = f"name a file or a folder: `skillopt-es export {what} {to}{form_said}{where}`"
    elif Path(out).name == out and is_run(directory / out):
        usual = f"`skillopt-es export {what} {to}{form_said}{where}` writes to {to}"
        kind = "folder" if form in ("skillopt", "datasette") or (form == "skill" and _is_folder(out)) else "file"
        hint = f"{usual}, and ./{out} is a {kind} of that name"
    else:
        return
    raise OutputRefused(f"{out} is a run, not a place to write to", hint=hint)


def _is_folder(out: str) -> bool:
    """Whether a skill goes to a folder there: one that exists or is named as one, or a name as folders have."""
    path = Path(out)
    return out != "-" and (out.endswith("/") or path.is_dir() or not (path.suffix or path.exists()))


def _export_skill(log: EventLog, choice: SkillChoice, out: str, *, force: bool) -> None:
    from skillopt_es.cli.skills import chosen_skill, write_folder
    from skillopt_es.deploy.folder import name_of, skill_folder

    skill, facts = chosen_skill(log, choice)
    path = Path(out)
    if skill.is_folder:
        _export_skills(skill, facts, choice, out, force=force)
        return
    if _is_folder(out):
        here = path.resolve().name
        built = skill_folder(skill, facts, name_of(skill, choice.name, here), choice.description)
        for file in write_folder(path if built.name == here else path / built.name, built, force=force):
            click.echo(str(file))
        return
    if choice.named:
        raise click.UsageError(f"--name and --description are for the folder of a skill: {out}/")
    if out == "-":
        write_exactly((skill.text.encode(),))
    elif len(skill.files) > 1:
        raise OutputRefused(f"the skill has {len(skill.files)} files", hint=f"name a folder: {out}/")
    else:
        write_file(path, skill.text, force=force)
        click.echo(str(path))


def _export_skills(skill: SkillTree, facts: Facts, choice: SkillChoice, out: str, *, force: bool) -> None:
    """Each skill of a folder of skills into a folder of its own."""
    from skillopt_es.cli.skills import refuse_names, write_folder
    from skillopt_es.deploy.check import exported_in
    from skillopt_es.deploy.files import refuse_existing, remove_export
    from skillopt_es.deploy.folder import skill_folders

    refuse_names(choice)
    if not _is_folder(out):
        raise OutputRefused(
            "what was trained is a folder of skills", hint=f"name a folder: {out.strip('-') or 'skills'}/"
        )
    folders, place = skill_folders(skill, facts), Path(out)
    for built in folders:  # all of them or none
        for path in built.files:
            refuse_existing(place / built.name / path, force=force)
    for built in folders:
        for file in write_folder(place / built.name, built, force=force):
            click.echo(str(file))
    runs = {facts.run.id, *(fork.run_id for fork in facts.run.forked_from)}
    for name in exported_in(place, runs) if force else ():
        if name not in {built.name for built in folders}:
            remove_export(place / name)
            click.echo(f"removed: {place / name}; the folder has it no more")


def _export_events(log: EventLog, out: str, *, force: bool) -> None:
    from skillopt_es.deploy.files import writing
    from skillopt_es.events.codec import canonical_json
    from skillopt_es.presenting.documents import plain_event

    lines = (f"{canonical_json(plain_event(recorded))}\n".encode() for recorded in log.read())
    if out == "-":
        write_exactly(lines)
        return
    with writing(Path(out), force=force) as draft, draft.open("wb") as file:
        file.writelines(lines)
    click.echo(out)


def _export_tables(logs: Sequence[EventLog], out: str, *, trajectories: bool, force: bool) -> None:
    from skillopt_es.deploy.files import writing

    if out == "-":
        raise OutputRefused("a database cannot be written to standard output", hint="name a file, such as run.db")
    path = Path(out)
    if path.is_file() and not force:
        _add_tables(logs, path, trajectories=trajectories)
        return
    with writing(path, force=force) as draft:
        write_tables(logs, draft, trajectories=trajectories)
    click.echo(out)


def _add_tables(logs: Sequence[EventLog], path: Path, *, trajectories: bool) -> None:
    """Adds runs to an earlier export; raises OutputRefused for any other file."""
    from skillopt_es.deploy.files import writing
    from skillopt_es.projections.tables import add_to_tables, are_tables, no_trajectories

    if not are_tables(path):
        raise OutputRefused(
            f"{path} exists already, and is no export of this version", hint="name another file; --force replaces it"
        )
    _refuse_twice(logs)
    with writing(path, force=True) as draft:
        shutil.copyfile(path, draft)
        add_to_tables(logs, draft, _trajectories if trajectories else no_trajectories, _sweep_of)
    click.echo(f"{path} ({counted(len(logs), 'run')} added)")


def write_tables(logs: Sequence[EventLog], path: Path, *, trajectories: bool) -> None:
    """Writes the tables of runs, none of them twice; raises OutputRefused for what is the same run."""
    from skillopt_es.projections.tables import no_trajectories, rebuild_tables

    _refuse_twice(logs)
    rebuild_tables(logs, path, _trajectories if trajectories else no_trajectories, _sweep_of)


def _refuse_twice(logs: Sequence[EventLog]) -> None:
    names: dict[str, str] = {}
    for log in logs:
        if log.run.run_id in names:
            hint = "name each run once; a copy of a run has the rows of the run"
            raise OutputRefused(f"{names[log.run.run_id]} and {log.run.name} are the same run", hint=hint)
        names[log.run.run_id] = log.run.name


def _sweep_of(log: EventLog) -> tuple[str, str]:
    """A run of a sweep lies in the sweep's own folder, whose plan names its setting."""
    from skillopt_es.sweeps.log import is_sweep, read_sweep

    run = log.path.resolve().parent
    folder = run.parent.parent
    if not is_sweep(folder):
        return "", ""
    setting = next((each.setting for each in read_sweep(folder).runs if each.name == run.name), "")
    return (folder.name, setting) if setting else ("", "")


def _trajectories(log: EventLog) -> Iterator[tuple[int, RolloutCompleted, str]]:
    """Each rollout that has a trajectory, and its text."""
    from skillopt_es.engine.evidence import RecordedTexts
    from skillopt_es.engine.trajectories import unpacked
    from skillopt_es.events.journal import Journal

    evidence = RecordedTexts(log, Journal(log.reader))
    for seq, event in only(RolloutCompleted, log.read(types={"RolloutCompleted"})):
        if event.trajectory:
            records = unpacked(event, evidence).records
            yield seq, event, "\n\n".join(f"[{kind}]\n{text}" for kind, text in records)


def _export_results(log: EventLog, out: str) -> None:

    if out == "-":
        raise OutputRefused("a folder cannot be written to standard output", hint="name a folder, such as results/")
    count = export_results(log, Path(out))
    click.echo(f"{out} ({counted(count, 'file')})")


def _export_datasette(logs: Sequence[EventLog], out: str, *, trajectories: bool, force: bool) -> None:
    from skillopt_es.cli.trackers import write_datasette

    if out == "-":
        raise OutputRefused("a folder cannot be written to standard output", hint="name a folder, such as look/")
    tables = partial(write_tables, logs, trajectories=trajectories)
    for path in write_datasette(tables, Path(out), force=force):
        click.echo(str(path))


def _export_to_tracker(
    words: tuple[str, ...],
    form: str,
    out: str | None,
    tracking_uri: str | None,
    experiment: str,
    endpoint: str | None,
    directory: Path,
    *,
    force: bool,
) -> None:
    from skillopt_es.cli.trackers import send_to_mlflow, send_to_otel
    from skillopt_es.runs.folders import find_run

    if form == "otel" and out is None and words and (len(words) == 2 or words[-1] == "-"):
        words, out = words[:-1], words[-1]
    if len(words) > 1 or (form == "mlflow" and out is not None):
        takes = "a run and one OUT: export [RUN] OUT" if form == "otel" else "a run and no OUT: export [RUN]"
        raise click.UsageError(f"--format {form} takes {takes} --format {form}")
    run = words[0] if words else None
    if out is not None:
        _refuse_run(out, form, words, directory)
    with whole_log(find_run(run, directory)) as log:
        if form == "mlflow":
            click.echo(send_to_mlflow(log, tracking_uri, experiment))
        else:
            told = send_to_otel(log, endpoint, out, force=force)
            if out == "-":
                write_exactly((told.encode(),))
            else:
                click.echo(told)


MARKER = ".skillopt-es-export.json"


def export_results(log: EventLog, out: Path) -> int:
    """Writes a run as the original's result folder; how many files it has."""
    before = _earlier_files(out)
    _mark(log, out, before)  # first, so that an export that is cut short can be done again
    written: set[str] = set()
    for path, text in result_files(log, out):
        write_file(out / path, text)
        written.add(path)
    for path in sorted(before - written):
        (out / path).unlink(missing_ok=True)
    _mark(log, out, written)
    return len(written)


def _mark(log: EventLog, out: Path, files: set[str]) -> None:
    """Says in the folder that an export wrote it, and which files are its own."""
    marker: Json = {"format": "skillopt", "run": log.run.name, "run_id": log.run.run_id, "files": [*sorted(files)]}
    write_file(out / MARKER, json.dumps(marker, indent=1, sort_keys=True) + "\n")


def _earlier_files(out: Path) -> set[str]:
    """What an earlier export wrote there; raises OutputRefused for a folder that holds anything else."""
    if not out.exists():
        return set()
    if not out.is_dir():
        raise OutputRefused(f"{out} is a file", hint="name a folder for the results")
    if not any(out.iterdir()):
        return set()
    try:
        files = json.loads((out / MARKER).read_bytes())["files"]
    except (OSError, ValueError, KeyError, TypeError):
        raise OutputRefused(
            f"{out} is not empty and was not written by an export", hint="name a folder that is new or empty"
        ) from None
    # These files may be removed, and anybody can have edited the marker: no path in it may point outside of the folder.
    return {path for path in files if isinstance(path, str) and ".." not in Path(path).parts and path[:1] != "/"}
