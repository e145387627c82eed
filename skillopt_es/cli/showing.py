"""How `show` prints an event, a call or a skill: all of it, long texts as they are."""

from __future__ import annotations

import json

import click

from skillopt_es.cli.score_tables import Scored, print_by_type, print_test_types, tests_by_name, tests_json
from skillopt_es.cli.terminal import Toned, say, width
from skillopt_es.engine.call_records import shown_step, steps_of
from skillopt_es.engine.evidence import Evidence
from skillopt_es.engine.trajectories import unpacked
from skillopt_es.events.catalog import Recorded, RolloutCompleted, RunCompleted, RunStarted, SkillScored
from skillopt_es.events.erasures import ErasedText
from skillopt_es.events.journal import CallRow, Journal
from skillopt_es.events.log import EventLog
from skillopt_es.events.values import Json, SkillTree
from skillopt_es.presenting.escaping import shown_inline
from skillopt_es.presenting.numbers import shown_time
from skillopt_es.projections.plain import plain_call, plain_event
from skillopt_es.runs.lookup import Found, FoundCalls, FoundSkill

_ONE_LINE = 100


def print_found(found: Found, log: EventLog) -> None:
    """Prints it for people."""
    match found:
        case Recorded():
            _print_event(found, log)
        case FoundCalls(calls):
            for row in calls:
                _print_call(row, log)
        case FoundSkill(skill, seq):
            _print_skill(skill, seq)


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
    first = next(log.read(until=1)).event
    assert isinstance(first, RunStarted)
    scored = [each.event for each in log.read(types=("SkillScored",)) if isinstance(each.event, SkillScored)]
    tests = [each for each in scored if each.purpose == "test"]
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
        for kind, text in unpacked(recorded.event, Evidence(log, Journal(log.reader))).records:
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
    for one in json.loads(call.tries):
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


def _print_skill(skill: SkillTree, seq: int) -> None:
    click.echo(f"skill {skill.hash}, first in event {seq}")
    for path, text in sorted(skill.files.items()):
        _print_text(path, text)


def _print_text(title: str, text: str) -> None:
    say()
    say(Toned(f"--- {shown_inline(title)} {'-' * max(3, (width() or 95) - 5 - len(title))}", "place"))
    click.echo(text if text.endswith("\n") or not text else f"{text}\n", nl=False)
