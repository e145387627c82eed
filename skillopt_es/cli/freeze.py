"""`freeze` and `thaw`: a run in one file for tests and for others, and back."""

from __future__ import annotations

from pathlib import Path

import click

from skillopt_es.cli.options import directory_option, json_option, run_argument
from skillopt_es.cli.printing import print_json
from skillopt_es.cli.terminal import print_warning
from skillopt_es.counting import counted
from skillopt_es.presenting.documents import some_of


@click.command("freeze")
@run_argument
@click.option("--out", type=click.Path(path_type=Path), help="The file; by default RUN.cassette, here.")
@click.option("--force", is_flag=True, help="Replace a file that exists.")
@directory_option
@json_option
def freeze_command(run: str | None, out: Path | None, force: bool, directory: Path, as_json: bool) -> None:
    """
    Pack a run with its journal into one file, a cassette, without names of machines and of home folders.

    The same run gives the same bytes; a damaged run is refused. RUN is a name or a folder; the newest run when left
    out.

    \b
    skillopt-es freeze my-run --out tests/my-run.cassette
    pytest --skillopt-cassette tests/my-run.cassette
    """
    from skillopt_es.cassettes.file import packed
    from skillopt_es.cassettes.freezing import freeze
    from skillopt_es.deploy.files import refuse_existing, writing
    from skillopt_es.runs.folders import find_run

    folder = find_run(run, directory)
    file = Path(f"{folder.resolve().name}.cassette") if out is None else out
    refuse_existing(file, force=force)
    cassette = freeze(folder)
    content = packed(cassette)
    with writing(file, force=force) as draft:
        draft.write_bytes(content)
    log = cassette.log
    if as_json:
        print_json(
            {
                "run": log.run.name,
                "file": str(file),
                "bytes": len(content),
                "events": len(log.events),
                "calls": len(log.calls),
                **some_of(cassette, "source_head", "redactions", "left"),
            }
        )
        return
    size = f"{counted(len(log.events), 'event')}, {counted(len(log.calls), 'call')}, {counted(len(content), 'byte')}"
    click.echo(f"cassette    {file} ({size})")
    replaced = ", ".join(f"{name} {counted(count, 'time')}" for name, count in cassette.redactions.items())
    click.echo(f"left out    {replaced or 'nothing: it names no machine and no home folder'}")
    for kind, what in _LEFT.items():
        if kind in cassette.left:
            count = cassette.left[kind]
            texts = counted(count, "text")
            print_warning(f"{texts} that were asked or answered hold {what}; they stay word for word")


_LEFT = {"home": "a home folder", "hosts": "the name of a machine", "keys": "what looks like a key"}


@click.command("thaw")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--name", help="The run's name here; by default its own.")
@directory_option
def thaw_command(file: Path, name: str | None, directory: Path) -> None:
    """
    Lay a cassette out as a run folder that every reading command understands.

    \b
    skillopt-es thaw my-run.cassette --name theirs
    skillopt-es explain theirs step 3
    """
    from skillopt_es.cassettes.file import read_cassette
    from skillopt_es.cassettes.freezing import thaw
    from skillopt_es.runs.folders import checked_name

    cassette = read_cassette(file)
    folder = directory / checked_name("--name", cassette.log.run.name if name is None else name)
    thaw(cassette, folder)
    events, calls = counted(len(cassette.log.events), "event"), counted(len(cassette.log.calls), "call")
    click.echo(f"run         {folder} ({events}, {calls})")
