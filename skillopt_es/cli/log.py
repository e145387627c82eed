"""`log` and `show`: the events of a run, one line each, and one event, call or skill in full."""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillopt_es.cli.options import directory_option, json_option, print_json, run_argument
from skillopt_es.cli.terminal import print_hanging
from skillopt_es.events.catalog import BY_NAME, Recorded, RunCompleted
from skillopt_es.events.errors import RunNotFound
from skillopt_es.events.log import EventLog

if TYPE_CHECKING:
    from skillopt_es.runs.reading import Reading

_ENDS = ("RunForked", "RunResumed", "RunCompleted")
_OFTEN_SECONDS = 0.2
_NAMES = {name.lower(): name for name in BY_NAME}


class _EventType(click.ParamType[str]):
    name = "type"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The type's own spelling."""
        known = _NAMES.get(value.lower())
        if known is None:
            close = [name for name in _NAMES if value.lower() in name] or difflib.get_close_matches(
                value.lower(), _NAMES
            )
            said = f"did you mean {_NAMES[close[0]]}?" if close else f"the types are {', '.join(BY_NAME)}"
            self.fail(f"there is no event of type {value}; {said}", param, ctx)
        return known


@click.command("log")
@run_argument
@click.option(
    "--type", "types", multiple=True, type=_EventType(), metavar="TYPE", help="Only this type; may be repeated."
)
@click.option("--after", type=click.IntRange(min=0), default=0, metavar="SEQ", help="Only what follows event SEQ.")
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the last N events.")
@click.option(
    "--follow", is_flag=True,
    help="Go on with each new event until the run is complete; wait for a run that is not there yet. Ctrl-C ends it.",
)  # fmt: skip
@directory_option
@json_option
def log_command(
    run: str | None,
    types: tuple[str, ...],
    after: int,
    last: int | None,
    follow: bool,
    directory: Path,
    as_json: bool,
) -> int:
    """
    The events of a run, one line each. RUN is a name or a folder; the newest run when left out.

    With --type, --last counts the events of that type. Times are UTC.
    """
    from skillopt_es.cli.audit_words import as_found
    from skillopt_es.events.codec import canonical_json
    from skillopt_es.presenting.event_lines import event_line
    from skillopt_es.projections.plain import plain_event
    from skillopt_es.runs.folders import find_run
    from skillopt_es.runs.reading import Reading

    with Reading.of(_awaited(run, directory) if follow else find_run(run, directory)) as reading:
        for recorded in reading.whole(_events(reading, types, after, last, follow=follow)):
            if as_json:
                click.echo(canonical_json(plain_event(recorded)))
            else:
                print_hanging(event_line(recorded), hang=8)
        return as_found(reading, shown=False)


def _awaited(run: str | None, directory: Path) -> Path:
    """The run's folder, as soon as there is one."""
    from skillopt_es.runs.folders import find_run

    told = False
    while True:
        with suppress(RunNotFound):
            return find_run(run, directory)
        if not told:
            click.echo(f"waiting for {'a run' if run is None else f'run {run}'} in {directory}", err=True)
            told = True
        time.sleep(_OFTEN_SECONDS)


def _events(
    reading: Reading, types: tuple[str, ...], after: int, last: int | None, *, follow: bool
) -> Iterator[Recorded]:
    wanted, log = types or None, reading.log
    start = after if last is None else max(after, _before_last(log, types, last))
    head = reading.head().seq
    over = not follow or _is_complete(log, head)  # before anything is shown: what comes meanwhile is to be followed
    # What is wanted from the end may be whole although something before it is not.
    yield from reading.read(start, head, wanted) if last is None else log.read(start, head, wanted)
    if over:
        return
    for recorded in log.follow(max(head, start)):
        if not types or type(recorded.event).__name__ in types:
            yield recorded
        if isinstance(recorded.event, RunCompleted):
            return


def _is_complete(log: EventLog, head: int) -> bool:
    """Whether the run came to its end by event `head`; a command may have recorded something after that."""
    last = list(log.read(after=_before_last(log, _ENDS, 1), until=head, types=_ENDS))
    return any(isinstance(recorded.event, RunCompleted) for recorded in last)


def _before_last(log: EventLog, types: tuple[str, ...], count: int) -> int:
    """The number of the event before the last `count` of these types."""
    marks = ", ".join("?" * len(types))
    where = f"where type in ({marks})" if types else ""
    rows = log.reader.rows(f"select seq from events {where} order by seq desc limit ?", (*types, count))  # noqa: S608
    return int(str(rows[-1][0])) - 1 if rows else 0


@click.command("show")
@click.argument("words", nargs=-1, required=True, metavar="[RUN] WHAT")
@directory_option
@json_option
def show_command(words: tuple[str, ...], directory: Path, as_json: bool) -> None:
    """
    One event, call or skill of a run, in full.

    WHAT is the number of an event, the slot of a call (e1/s1/b0/failure-0), or the first letters of the hash of a skill
    or of the digest of a call. RUN is a name or a folder; the newest run when left out.
    """
    from skillopt_es.cli.showing import found_json, print_found
    from skillopt_es.events.journal import Journal
    from skillopt_es.runs.folders import find_run
    from skillopt_es.runs.lookup import find

    if len(words) > 2:
        raise click.UsageError("show takes a run and one thing of it: show [RUN] WHAT")
    with EventLog.open(find_run(words[0] if len(words) == 2 else None, directory)) as log:
        found = find(words[-1], log, Journal(log.reader))
        if as_json:
            print_json(found_json(found, log))
        else:
            print_found(found, log)
