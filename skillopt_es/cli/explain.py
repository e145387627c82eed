"""`explain`: what led to a step's verdict, an epoch's guidance or one result; or one task through the whole run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from skillopt_es.cli.options import directory_option, json_option, two_words
from skillopt_es.cli.printing import as_found, print_json
from skillopt_es.cli.terminal import print_page
from skillopt_es.errors import NotInRun
from skillopt_es.presenting.documents import plain
from skillopt_es.presenting.words import fate_words

if TYPE_CHECKING:
    from skillopt_es.audit.targets import EpochTarget, EventTarget, Named, StepTarget
    from skillopt_es.runs.reading import Reading

_NAMED = ("step", "epoch", "event", "candidate")


@click.command("explain")
@click.argument("words", nargs=-1, metavar="[RUN] WHAT")
@click.option("--item", metavar="ID", help="One task through the whole run, instead of WHAT.")
@directory_option
@json_option
def explain_command(words: tuple[str, ...], item: str | None, directory: Path, as_json: bool) -> int:
    """
    What led to a verdict: trajectories, analysts, merges, ranking, edits, items won and lost. From the log alone.

    WHAT is `step N`, `epoch N` (its slow update), the number of an event, `candidate HASH`, or the id of a patch or an
    edit. RUN is a name or a folder; the newest run when left out.

    \b
    skillopt-es explain step 12
    skillopt-es explain my-run candidate 9c3355b5
    skillopt-es explain --item date-03
    """
    from skillopt_es.audit.targets import EpochTarget, StepTarget, target_of
    from skillopt_es.runs.folders import find_run
    from skillopt_es.runs.reading import Reading

    run, named, value = _parsed(two_words(words), item)
    folder = find_run(run, directory)
    with Reading.of(folder) as reading:
        if item is not None:
            from skillopt_es.cli.explain_pages import show_item

            show_item(item, reading, as_json=as_json)
            return as_found(reading)
        target = target_of(named, value, reading)
        if isinstance(target, StepTarget):
            _show_step(target, reading, as_json=as_json)
        elif isinstance(target, EpochTarget):
            _show_epoch(target, reading, as_json=as_json)
        else:
            _show_event(target, reading, as_json=as_json)
        return as_found(reading)


def _parsed(words: Sequence[str], item: str | None) -> tuple[str | None, Named, str]:
    """The run, and what is asked for."""
    if item is not None:
        if len(words) > 1:
            raise click.UsageError("--item takes the place of WHAT: explain [RUN] --item ID")
        return (words[0] if words else None), "anything", ""
    if not words:
        raise click.UsageError("explain what? A step (`step 3`), an event's number, `candidate HASH`, or --item ID")
    if len(words) >= 2 and words[-2] in _NAMED:
        named, rest = cast("Named", words[-2]), words[:-2]
    else:
        named, rest = "anything", words[:-1]
    if len(rest) > 1 or (named == "anything" and words[-1] in _NAMED):
        raise click.UsageError("explain takes a run and what to explain: explain [RUN] WHAT")
    return (rest[0] if rest else None), named, words[-1]


def _show_step(target: StepTarget, reading: Reading, *, as_json: bool) -> None:
    from skillopt_es.audit.comparisons import solved_in
    from skillopt_es.audit.tried import chain_of, tried_in
    from skillopt_es.cli.explain_pages import step_page, verdict_words
    from skillopt_es.engine.algorithms import planned_steps
    from skillopt_es.presenting.documents import step_json
    from skillopt_es.projections.fates import fates_of
    from skillopt_es.projections.summary import OVERVIEW, summarize

    chain = chain_of(target.step, reading)
    name, total = reading.run.name, planned_steps(summarize(each.event for each in reading.read(types=OVERVIEW)))
    tried = tried_in(chain, reading)
    solved = solved_in(() if chain.groups is None else chain.groups.event.groups, reading)
    if as_json:
        also = {"triggers": plain(tried.triggers), "parts": plain(tried.parts), "effect_errors": plain(tried.errors)}
        also |= {"refused_earlier": plain(tried.earlier)}
        also |= {"solved_for_comparison": {name: [*sorted(items)] for name, items in solved.items()}}
        print_json({"run": name, "problem": plain(reading.problem), **step_json(chain), **also})
        return
    about = f"{target.about} is of " if target.about else ""
    events = f"events {chain.events[0].seq} to {chain.events[-1].seq}"
    step = f"step {chain.step}" if total is None else f"step {chain.step} of {total}, epoch {chain.epoch}"
    click.echo(f"{name}: {about}{step}: {verdict_words(chain)}; {events}")
    if target.about in chain.proposals:
        for fate in fates_of(chain, target.about):
            click.echo(f"{target.about}: {fate_words(fate)}")
    print_page(step_page(chain, tried, solved))


def _show_epoch(target: EpochTarget, reading: Reading, *, as_json: bool) -> None:
    from skillopt_es.audit.tried import ONE_RESULT
    from skillopt_es.cli.explain_pages import epoch_page
    from skillopt_es.engine.algorithms import check_allowed
    from skillopt_es.presenting.documents import epoch_json
    from skillopt_es.projections.chains import END_TYPES, epoch_ends
    from skillopt_es.runs.lookup import not_in_run

    check_allowed("steps", reading.started, reading.run.name, NotInRun, hint=ONE_RESULT)
    started, name = reading.started, reading.run.name
    total = started.total_steps // max(1, started.steps_per_epoch)
    found = epoch_ends(reading.read(types=END_TYPES))
    end = found.get(target.epoch)
    if end is None:
        beyond = not_in_run(reading, "epoch", target.epoch, max(found, default=0))
        if beyond is not None:
            raise beyond
        far = f"the last epoch with one is {max(found)} of {total}" if found else "no epoch has one"
        raise NotInRun(f"nothing is recorded of the end of epoch {target.epoch} of {name}: {far}")
    if as_json:
        print_json({"run": name, "problem": plain(reading.problem), **epoch_json(end)})
        return
    about = f"{target.about} is of " if target.about else ""
    click.echo(f"{name}: {about}the end of epoch {end.epoch} of {total}")
    print_page(epoch_page(end))


def _show_event(target: EventTarget, reading: Reading, *, as_json: bool) -> None:
    """An event that stands for itself, or one result with what was made of it."""
    from skillopt_es.cli.explain_pages import unknown_words, use_lines
    from skillopt_es.events.catalog import RolloutCompleted
    from skillopt_es.events.places import Place
    from skillopt_es.presenting.documents import plain_event, use_json
    from skillopt_es.presenting.event_lines import event_line
    from skillopt_es.runs.items import history_of

    event = target.recorded.event
    history = history_of(event.item, reading) if isinstance(event, RolloutCompleted) else None
    place = Place(event.place if isinstance(event, RolloutCompleted) else "")
    uses = tuple(use for use in history.uses if place.holds(use.patch.event.patch)) if history else ()
    unknown = history.unknown if history is not None else ()
    unknown = tuple(step for step in unknown if step == place.step)
    if as_json:
        print_json(
            {
                "run": reading.run.name,
                "problem": plain(reading.problem),
                "event": plain_event(target.recorded),
                "uses": [use_json(use) for use in uses],
                "uses_unknown_in_steps": list(unknown),
            }
        )
        return
    click.echo(f"{reading.run.name}, event {event_line(target.recorded).strip()}")
    for use in uses:
        print_page(use_lines(use))
    if unknown:
        click.echo(f"not recorded: {unknown_words(unknown)}")
    elif not uses:
        click.echo("no analyst saw it" if isinstance(event, RolloutCompleted) else "no step led to it")
