"""`log` and `show`: the events of a run, one line each, and one event, call or skill in full."""

from __future__ import annotations

import difflib
import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from skillopt_es.cli.options import directory_option, json_option, run_argument
from skillopt_es.cli.printing import print_json
from skillopt_es.cli.score_tables import Scored, print_by_type, print_test_types, tests_by_name, tests_json
from skillopt_es.cli.terminal import Toned, print_hanging, say, tell, width
from skillopt_es.engine.call_records import shown_step, steps_of
from skillopt_es.engine.evidence import RecordedTexts
from skillopt_es.engine.trajectories import unpacked
from skillopt_es.events.catalog import BY_NAME, Recorded, RolloutCompleted, RunCompleted, RunStarted, SkillScored, only
from skillopt_es.events.erasures import ErasedText
from skillopt_es.events.errors import RunNotFound
from skillopt_es.events.journal import CallRow, Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.requests import TOLD_COST
from skillopt_es.events.values import Json
from skillopt_es.presenting.documents import plain_call, plain_event
from skillopt_es.presenting.escaping import shown_inline
from skillopt_es.presenting.numbers import shown_time
from skillopt_es.runs.lookup import Found, FoundCalls, FoundSkill

if TYPE_CHECKING:
    from skillopt_es.runs.reading import Reading


# The last of these tells whether a run is over: after RunForked and RunResumed it goes on.
_ENDS = ("RunForked", "RunResumed", "RunCompleted")
_OFTEN_SECONDS = 0.2  # a person sees the run at once, and a look is one listing of a folder
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
    help="Keep printing new events until the run is complete; wait for a run that does not exist yet. Ctrl-C ends it.",
)  # fmt: skip
@directory_option
@json_option
def log_command(
    run: str | None, types: tuple[str, ...], after: int, last: int | None, follow: bool, directory: Path, as_json: bool
) -> int:
    """
    The events of a run, one line each. RUN is a name or a folder; the newest run when left out.

    With --type, --last counts the events of that type. Times are UTC.
    """
    from skillopt_es.cli.printing import as_found
    from skillopt_es.events.codec import canonical_json
    from skillopt_es.presenting.event_lines import event_line
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
            tell("waiting", f"waiting for {'a run' if run is None else f'run {run}'} in {directory}")
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
    """Whether the run had ended by event `head`; a command may have recorded something after that."""
    last = list(log.read(after=_before_last(log, _ENDS, 1), until=head, types=_ENDS))
    return any(isinstance(recorded.event, RunCompleted) for recorded in last)


def _before_last(log: EventLog, types: tuple[str, ...], count: int) -> int:
    """The number of the event before the last `count` of these types."""
    marks = ", ".join("?" * len(types))
    where = f"where type in ({marks})" if types else ""
    # Nothing but question marks is put into the statement.
    rows = log.reader.rows(f"select seq from events {where} order by seq desc limit ?", (*types, count))  # noqa: S608
    return int(str(rows[-1][0])) - 1 if rows else 0


@click.command("show")
@click.argument("words", nargs=-1, required=True, metavar="[RUN] WHAT")
@directory_option
@json_option
def show_command(words: tuple[str, ...], directory: Path, as_json: bool) -> int:
    """
    One event, call or skill of a run, in full.

    WHAT is the number of an event, the slot of a call (e1/s1/b0/failure-0), or the first letters of the hash of a skill
    or of the digest of a call. RUN is a name or a folder; the newest run when left out.
    """
    from skillopt_es.cli.printing import as_found
    from skillopt_es.runs.folders import find_run
    from skillopt_es.runs.lookup import find
    from skillopt_es.runs.reading import Reading

    if len(words) > 2:
        raise click.UsageError("show takes a run and what to show: show [RUN] WHAT")
    with Reading.of(find_run(words[0] if len(words) == 2 else None, directory)) as reading:
        found = find(words[-1], reading.log, Journal(reading.log.reader))
        if as_json:
            print_json(found_json(found, reading.log))
        else:
            print_found(found, reading.log)
        return as_found(reading, shown=False)


_ONE_LINE = 100  # characters, as many as a terminal shows of one line after its key


def print_found(found: Found, log: EventLog) -> None:
    """Prints it for people."""
    match found:
        case Recorded():
            _print_event(found, log)
        case FoundCalls(calls):
            for row in calls:
                _print_call(row, log)
        case FoundSkill(skill, seq):
            click.echo(f"skill {skill.hash}, first in event {seq}")
            for path, text in sorted(skill.files.items()):
                _print_text(path, text)


def found_json(found: Found, log: EventLog) -> Json:
    """It as JSON; a call with its messages and its answer."""
    match found:
        case Recorded():
            if isinstance(found.event, RunCompleted):
                return {**plain_event(found), "tests": tests_json(_tests(found.event, log))}
            return plain_event(found)
        case FoundCalls(calls):
            return [_whole_call(row, log) for row in calls]
        case FoundSkill(skill, seq):
            return {"hash": skill.hash, "seq": seq, "main": skill.main, "files": dict(skill.files)}


def _tests(event: RunCompleted, log: EventLog) -> dict[str, Scored]:
    """The run's tests, with each type's."""
    [(_, first)] = only(RunStarted, log.read(until=1))
    tests = (each for _, each in only(SkillScored, log.read(types=("SkillScored",))) if each.purpose == "test")
    return tests_by_name(tests, initial=first.skill.hash, best=event.best, final=event.final)


def _whole_call(row: CallRow, log: EventLog) -> Json:
    answer = None if row.call.response is None else log.text(row.call.response)
    messages: list[Json] = [{"role": role, "content": log.text(digest)} for role, digest in row.call.request.messages]
    did = None if row.call.trace is None else log.text(row.call.trace)
    steps: list[Json] = [] if did is None else [did] if isinstance(did, ErasedText) else json.loads(did)
    return {**plain_call(row), "messages": messages, "steps": steps, "answer": answer}


def _print_event(recorded: Recorded, log: EventLog) -> None:
    plain = plain_event(recorded)
    click.echo(f"event {recorded.seq}: {plain['type']}, {shown_time(recorded.recorded_at)} UTC")
    click.echo(f"hash {recorded.hash}")
    click.echo()
    click.echo("\n".join(_outline(plain["data"])))
    if isinstance(recorded.event, SkillScored):
        click.echo()
        print_by_type(recorded.event.by_type)
    if isinstance(recorded.event, RunCompleted):
        print_test_types(_tests(recorded.event, log))
    if isinstance(recorded.event, RolloutCompleted) and recorded.event.trajectory:
        for kind, text in unpacked(recorded.event, RecordedTexts(log, Journal(log.reader))).records:
            _print_text(kind, text)


def _outline(value: Json) -> list[str]:
    """A JSON value as indented lines; texts of several lines stand as they are."""
    match value:
        case dict() if value:
            return [line for key, each in value.items() for line in _entry(key, each)]
        case list() if value and not _fits(value):
            return [line for each in value for line in _item(_outline(each))]
        case str() if "\n" in value:
            return value.splitlines()
        case str() if value:
            return [value]
        case _:
            return [json.dumps(value, ensure_ascii=False)]


def _entry(key: str, value: Json) -> list[str]:
    lines = _outline(value)
    if len(lines) == 1 and not (isinstance(value, dict) and value):
        return [f"{key}: {lines[0]}"]
    return [f"{key}:", *(f"  {line}".rstrip() for line in lines)]


def _item(lines: list[str]) -> list[str]:
    return [f"- {lines[0]}", *(f"  {line}".rstrip() for line in lines[1:])]


def _fits(values: list[Json]) -> bool:
    """Whether a list of plain values is short enough for one line."""
    plain = all(isinstance(one, str | int | float) for one in values)
    return plain and len(json.dumps(values, ensure_ascii=False)) <= _ONE_LINE


def _print_call(row: CallRow, log: EventLog) -> None:
    call = row.call
    click.echo(f"call {call.slot}, attempt {row.attempt}: {call.outcome}, {shown_time(row.recorded_at)} UTC")
    click.echo(f"{call.role} for {call.stage}; {call.model}")
    click.echo(f"{_tokens(row)}; {call.latency_ms} ms; digest {row.digest}")
    if call.ahead:
        click.echo("asked ahead of its time, while a candidate was judged")
    if call.repeats:
        click.echo(f"not asked: it has the answer of {call.repeats}")
    for one in json.loads(call.tries):
        if one["kind"] == TOLD_COST:
            click.echo(f"it reports a cost of {one['message']}")
            continue
        click.echo(f"tried before: {one['kind']} {one['status'] or ''}: {one['message']}")
    for role, digest in row.call.request.messages:
        _print_text(role, log.text(digest))
    if call.trace is not None:
        for step in steps_of(log.text(call.trace)):
            _print_text(f"step: {step.kind}", shown_step(step))
    if call.response is not None:
        _print_text(f"answer ({call.finish})", log.text(call.response))
    else:
        _print_text(f"failed: {call.error_kind}", call.error_message)
    click.echo()


def _tokens(row: CallRow) -> str:
    call = row.call
    counts = (("in", call.input_tokens), ("out", call.output_tokens))
    return ", ".join(f"{'?' if count is None else f'{count:,}'} tokens {name}" for name, count in counts)


def _print_text(title: str, text: str) -> None:
    say()
    say(Toned(f"--- {shown_inline(title)} {'-' * max(3, (width() or 95) - 5 - len(title))}", "place"))
    click.echo(text if text.endswith("\n") or not text else f"{text}\n", nl=False)
