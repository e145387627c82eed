"""`harvest propose`: a model makes tasks of candidates, for a person to look at."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from skillopt_es.cli.options import budget_options, budget_settings, json_option, set_option
from skillopt_es.cli.printing import print_json, tell_of
from skillopt_es.cli.terminal import print_warning, tell
from skillopt_es.counting import counted
from skillopt_es.errors import DataError
from skillopt_es.events.values import Json

if TYPE_CHECKING:
    from skillopt_es.config import RunConfig
    from skillopt_es.harvest.mining import Candidate
    from skillopt_es.harvest.review import Reviewed

FILE = Path("harvest.jsonl")


@click.command("propose")
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--file", type=click.Path(path_type=Path), default=FILE, show_default=True, help="The harvest's file.")
@click.option("--model", metavar="NAME", help="Ask this one in the place of the config's optimizer.")
@click.option("--most", type=click.IntRange(min=1), help="Ask about so many candidates at most.")
@set_option("Set a config key, such as model.optimizer=NAME.")
@budget_options
@json_option
def propose_command(
    config: Path,
    file: Path,
    model: str | None,
    most: int | None,
    overrides: tuple[str, ...],
    as_json: bool,
    **budget: float | None,
) -> None:
    """
    Have the optimizer's model of CONFIG make a task, with checks or a rubric, of each candidate that is open.

    It gets what `scan` has cleaned, and nothing else. Rules look at what it proposes, and `review` shows you what is
    left; nothing becomes a task without you. Calls are journaled beside the harvest's file, so that each is paid for
    once (`usage harvest.calls`). The config's budget is for its training: --max-calls and the like limit this.
    """
    from skillopt_es.config import load_config
    from skillopt_es.harvest.review import read_harvest
    from skillopt_es.sessions.evaluation import OWN_BUDGET

    named = () if model is None else (f"model.optimizer={model}",)
    loaded = load_config(config, (*OWN_BUDGET, *overrides, *named, *budget_settings(budget)), os.environ)
    tell_of(loaded)
    harvest = there(file, read_harvest(file))
    open_ones = [each.candidate for each in harvest.values() if each.decision == "open" and each.proposal is None]
    waiting = open_ones[:most]
    calls = file.with_suffix(".calls")
    if waiting and not as_json:
        role = loaded.optimizer_model
        where = role.base_url or role.backend
        tell("harvest", f"{counted(len(waiting), 'candidate')}, cleaned, to {role.model} at {where}; calls in {calls}")
    found = _proposed(loaded, file, calls, waiting)
    if as_json:
        print_json(found)
        return
    _tell_proposed(found, file, len(open_ones))


def _proposed(loaded: RunConfig, file: Path, calls: Path, waiting: list[Candidate]) -> dict[str, Json]:
    """What became of each candidate; each proposal is in the file as soon as it is there."""
    from skillopt_es.cli.process import command_watch, prepare_process
    from skillopt_es.harvest.review import appended
    from skillopt_es.sessions.harvesting import Answered, propose

    tasks, none, unread = list[Json](), list[Json](), list[Json]()

    def told(each: Answered) -> None:
        if each.proposal is None:
            unread.append({"id": each.candidate, "why": each.why})
            return
        appended(file, [each.proposal])
        to = none if each.proposal.proposed is None else tasks
        to.append({"id": each.candidate, "why": each.proposal.why, "dropped": [*each.proposal.dropped]})

    async def go() -> None:
        async with command_watch() as watch:
            await propose(loaded, calls, waiting, watch.session(), told)

    if waiting:
        prepare_process()
        asyncio.run(go())
    return {"file": str(file), "calls": str(calls), "tasks": tasks, "no_task": none, "no_answer": unread}


def _tell_proposed(found: dict[str, Json], file: Path, waiting: int) -> None:
    tasks, none, unread = (cast("list[dict[str, Json]]", found[key]) for key in ("tasks", "no_task", "no_answer"))
    if not waiting:
        click.echo(f"nothing     every candidate in {file} is decided, or has been asked about")
        return
    click.echo(f"proposed    {counted(len(tasks), 'task')}")
    for each in none:
        click.echo(f"no task     {each['id']}: {each['why']}")
    for each in (*tasks, *none):
        for dropped in cast("list[str]", each["dropped"]):
            click.echo(f"taken out   {each['id']}: {dropped}")
    for each in unread:
        print_warning(f"{each['id']}: no answer that can be used ({each['why']}); ask again later")
    if tasks or none:
        click.echo(f"next        skillopt-es harvest review {file}")


def there(file: Path, harvest: dict[str, Reviewed]) -> dict[str, Reviewed]:
    """A harvest that has candidates; raises DataError for one that has none."""
    if not harvest:
        raise DataError(f"{file} has no candidates", hint="`skillopt-es harvest scan` looks for some")
    return harvest
