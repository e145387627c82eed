"""The one logger, its listeners, and what the command makes of it on stderr."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import click
import pytest
import structlog
from support.in_process import called
from support.scripted import ScriptedWorld, config

from skillopt_es.cli.terminal import Toned, print_error, safe_streams, shown_by, tell, telling_on_stderr
from skillopt_es.logs import as_json, bound, listening, logger
from skillopt_es.runs.run_log import RunLog, logged_to
from skillopt_es.sessions.session import start


def test_a_line_carries_what_is_bound_around_it_and_only_who_listens_there_hears_it() -> None:
    """Two runs in one process do not hear each other, whatever their tasks log at the same time."""
    heard: dict[str, list[Mapping[str, object]]] = {"a": [], "b": []}

    async def run(name: str) -> None:
        with bound(run=name), listening(heard[name].append):
            for number in range(3):
                await asyncio.sleep(0)
                with bound(place=f"e1/s{number}"):
                    logger().info("step", number=number)

    async def both() -> None:
        await asyncio.gather(run("a"), run("b"))

    logger().info("unheard")
    asyncio.run(both())
    for name, lines in heard.items():
        assert [(line["run"], line["place"]) for line in lines] == [(name, f"e1/s{number}") for number in range(3)]
        assert all(line["level"] == "info" and line["event"] == "step" for line in lines)


def test_what_was_bound_before_a_block_is_bound_again_after_it() -> None:
    """Also where the block ends by an error; what was not bound is not bound then."""
    lines: list[Mapping[str, object]] = []
    with listening(lines.append), bound(run="a"):
        with suppress(KeyError), bound(run="b", place="e1"):
            logger().info("inside")
            raise KeyError
        logger().info("after")
    assert [(line["run"], line.get("place")) for line in lines] == [("b", "e1"), ("a", None)]


def test_the_set_up_of_structlog_in_a_program_that_imports_us_stays_its_own() -> None:
    """We wrap a logger of our own and configure nothing for others."""
    before = structlog.get_config()
    with listening(lambda line: None):
        logger().info("ours")
    assert structlog.get_config() == before


def test_what_only_people_are_shown_is_not_in_the_json() -> None:
    """Tones and indents are for a terminal."""
    assert as_json({"event": "x", "level": "info", "_said": (Toned("x", "bad"),)}) == '{"event": "x", "level": "info"}'


def test_people_read_sentences_and_programs_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """The same line twice; what anybody else writes to stderr becomes a line, too."""
    with safe_streams(), telling_on_stderr() as stderr:
        print_error("it broke", "fix it")
        logger().info("only for programs")
        assert capsys.readouterr().err == "error: it broke\n  fix it\n"
        stderr.switch_to_json()
        print_error("it broke\x1b[2J", "fix it")
        print("a stranger's\nline", file=sys.stderr)
        click.echo(click.style("coloured", fg="red"), err=True)
        with shown_by(quiet=True):
            tell("note", "not worth it")
            tell("careful", "worth it", level="warning")
        print("a line without an end", end="", file=sys.stderr)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    told = [(line["level"], line["event"], line["message"]) for line in lines]
    assert told == [
        ("error", "error", "it broke\x1b[2J"),
        ("info", "output", "a stranger's"),
        ("info", "output", "line"),
        ("info", "output", "coloured"),
        ("warning", "careful", "worth it"),
        ("info", "output", "a line without an end"),
    ]
    assert lines[0]["hint"] == "fix it"
    assert all(line["timestamp"].endswith("Z") for line in lines)


def test_a_runs_log_has_a_line_an_event_with_its_place(tmp_path: Path) -> None:
    """The keys are those of stderr; `seq` finds the event."""
    run = tmp_path / "run"
    with logged_to(run):
        asyncio.run(start(config(tmp_path), run, ScriptedWorld().session(observers=(RunLog(),))))
    lines = [json.loads(line) for line in (run / "logs.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert {line["run"] for line in lines} == {"run"}
    places = {line["event"]: line.get("place") for line in lines}
    assert places["RunStarted"] is places["RunCompleted"] is None
    assert places["CandidateGated"].startswith("e")
    assert "/s" in places["CandidateGated"]


def test_a_usage_error_is_a_line_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    """Before any command has begun."""
    done = called(capsys)("--log-format", "json", "rum")
    [line] = [json.loads(line) for line in done.err.splitlines()]
    assert (done.code, line["level"]) == (2, "error")
    assert line["message"] == "there is no command rum"
    assert line["hint"].startswith("did you mean `run`")


def test_a_list_of_runs_says_nothing_and_needs_no_logger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Results stay on stdout; stderr has a line where there is something to tell."""
    done = called(capsys)("--log-format", "json", "runs", "--dir", tmp_path, "--json")
    assert done.json == []
    assert not done.err
