"""`data`: what to download for a benchmark, splits built from it, and a check of any data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillopt_es.cli.options import json_option
from skillopt_es.cli.printing import print_json
from skillopt_es.cli.terminal import print_note
from skillopt_es.events.values import Json
from skillopt_es.presenting.documents import plain, some_of

if TYPE_CHECKING:
    from skillopt_es.sessions.benchmarks import Benchmark


@click.group("data")
def data_command() -> None:
    """Data of public benchmarks: what to download, splits built from it, and a check. Nothing here uses a network."""


@data_command.command("fetch-plan")
@click.argument("benchmark", required=False)
@json_option
def fetch_plan_command(benchmark: str | None, as_json: bool) -> int:
    """Say what to download for BENCHMARK, from where and on what terms; without one, list the benchmarks."""
    from skillopt_es.sessions.benchmarks import BENCHMARKS, benchmark_named

    if benchmark is None:
        if as_json:
            print_json([{"name": each.name, "about": each.about} for each in BENCHMARKS.values()])
        else:
            for each in BENCHMARKS.values():
                click.echo(f"{each.name:<24}{each.about}")
        return 0
    found = benchmark_named(benchmark)
    if as_json:
        print_json(_plan_json(found))
    else:
        _print_plan(found)
    return 0


def _plan_json(benchmark: Benchmark) -> dict[str, Json]:
    return {
        "benchmark": benchmark.name,
        "about": benchmark.about,
        "sources": [plain(each) for each in benchmark.sources],
        "split": dict(zip(("train", "val", "test"), benchmark.sizes, strict=True)),
        "needs_id_lists": benchmark.divide is None,
        "id_lists": benchmark.id_folder,
        "warning": benchmark.warning or None,
        "build": _build_line(benchmark),
    }


def _print_plan(benchmark: Benchmark) -> None:
    click.echo(f"{benchmark.name}: {benchmark.about}")
    for source in benchmark.sources:
        click.echo(f"\nget      {source.what}")
        click.echo(f"from     {source.where}")
        click.echo(f"licence  {source.licence}")
        click.echo(f"such as  {source.get}")
        if source.note:
            click.echo(f"note     {source.note}")
    sizes = "/".join(map(str, benchmark.sizes))
    click.echo(f"\nsplit    {sizes} items for training, validation and test, as released")
    if benchmark.divide is None:
        click.echo(f"         their ids are in data/{benchmark.id_folder} of a checkout of the original SkillOpt")
        click.echo("         (https://github.com/microsoft/SkillOpt, MIT)")
    if benchmark.warning:
        click.echo(f"\nwarning  {benchmark.warning}")
    click.echo(f"\nnext     {_build_line(benchmark)}")


def _build_line(benchmark: Benchmark) -> str:
    ids = " --ids SKILLOPT_CHECKOUT" if benchmark.divide is None else ""
    name = benchmark.name
    return f"skillopt-es data build {name} --from DOWNLOADS/{name}{ids} --out data/{name}_split"


@data_command.command("build")
@click.argument("benchmark")
@click.option("--from", "source", required=True, type=click.Path(path_type=Path), help="What you have downloaded.")
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The new folder for the splits.")
@click.option("--ids", type=click.Path(path_type=Path), help="A checkout of the original, for its lists of ids.")
@json_option
def build_command(benchmark: str, source: Path, out: Path, ids: Path | None, as_json: bool) -> int:
    """
    Build train, val and test of BENCHMARK from downloaded files.

    Everything is checked before OUT is made; an error lists the first ids that are missing or there twice.
    """
    from skillopt_es.sessions.benchmarks import build_data

    built = build_data(benchmark, source=source, out=out, ids=ids)
    if as_json:
        print_json({"benchmark": benchmark, "out": str(out), "counts": dict(built.counts), "notes": [*built.notes]})
        return 0
    for note in built.notes:
        print_note(note)
    click.echo(f"built  {out}  {_sizes(built.counts)}")
    click.echo(f"check  skillopt-es data check {out}")
    return 0


@data_command.command("check")
@click.argument("what", metavar="CONFIG|DIR", type=click.Path(path_type=Path, exists=True))
@json_option
def check_command(what: Path, as_json: bool) -> int:
    """
    Check data: of a CONFIG as its environment reads it, or a DIR with train, val and test.

    A folder that `data build` made must be as it was built. Exit codes: 0 nothing is wrong, 1 something is.
    """
    from skillopt_es.sessions.benchmarks import check_data

    found = check_data(what)
    if as_json:
        document = some_of(found, "counts", "notes", "problems")
        print_json({"ok": not found.problems, "data": found.of, **document})
    else:
        for problem in found.problems:
            click.echo(f"problem  {problem}")
        for note in found.notes:
            click.echo(f"note     {note}")
        click.echo(f"{'wrong' if found.problems else 'ok':<8} {found.of}  {_sizes(found.counts)}".rstrip())
    return 1 if found.problems else 0


def _sizes(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{split} {count}" for split, count in counts.items())
