"""What open pages are told: every later event once, in order, by its number."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.asking import serving
from support.ready import PATIENCE
from support.scripted import ScriptedWorld, config

from skillopt_es.events.log import EventLog
from skillopt_es.sessions.session import start
from skillopt_es.ui.stream import message, run_stream, until_it_fails


def parsed(text: str) -> tuple[int | None, str, Any]:
    """Number, kind and data of a message."""
    fields = dict(line.split(": ", 1) for line in text.strip().splitlines())
    number = fields.get("id")
    return (None if number is None else int(number)), fields.get("event", ""), json.loads(fields.get("data", "null"))


async def first(messages: AsyncIterator[str], count: int) -> list[tuple[int | None, str, Any]]:
    """So many messages that say what happened."""
    found = []
    async for each in messages:
        said = parsed(each)
        if said[1] == "happened":
            found.append(said)
        if len(found) == count:
            break
    return found


def test_every_later_event_is_told_once_and_in_order(demo_run: Path) -> None:
    """From wherever the page stands."""
    with EventLog.open(demo_run) as log:
        head = log.head().seq
    told = asyncio.run(first(run_stream(demo_run, head - 250), 250))
    assert [number for number, _, _ in told] == list(range(head - 249, head + 1))
    assert told[-1][2]["type"] == "RunCompleted"
    assert told[-1][2]["turned"]


def test_a_page_that_was_open_all_the_time_is_told_of_a_run_as_it_goes(tmp_path: Path) -> None:
    """A writer in the same folder, and a reader that began before it had written anything else."""

    async def both() -> list[tuple[int | None, str, Any]]:
        training = asyncio.create_task(
            start(config(tmp_path, ["train.num_epochs=1"]), tmp_path / "run", ScriptedWorld().session())
        )
        while not (tmp_path / "run" / "log.db").exists():  # noqa: ASYNC110 -- a file tells nobody that it is there
            await asyncio.sleep(0.01)
        told = []
        async for each in run_stream(tmp_path / "run", 0):
            said = parsed(each)
            if said[1] == "state":
                states.append(said[2]["written"])
            if said[1] == "happened":
                told.append(said)
                if said[2]["type"] == "RunCompleted":
                    break
        await training
        return told

    states: list[bool] = []
    told = asyncio.run(both())
    assert states[0]
    with EventLog.open(tmp_path / "run") as log:
        head = log.head().seq
    assert [number for number, _, _ in told] == list(range(1, head + 1))


def test_a_lost_connection_goes_on_where_it_ended(demo_run: Path) -> None:
    """By the number that the browser had last, whatever the page said when it was loaded."""
    with serving(demo_run.parent) as rules:
        address = f"http://127.0.0.1:{rules.port}/run/demo/stream?after=3"
        for headers, expected in (({}, 4), ({"last-event-id": "40"}, 41)):
            signed_in = {"authorization": f"Bearer {rules.token}", **headers}
            with httpx.stream("GET", address, headers=signed_in, timeout=PATIENCE) as answer:
                assert answer.headers["content-type"].startswith("text/event-stream")
                ids = (line for line in answer.iter_lines() if line.startswith("id: "))
                assert next(ids) == f"id: {expected}"


def test_an_error_of_a_stream_is_told_before_it_ends() -> None:
    """And raised again, for the terminal."""

    async def failing() -> AsyncIterator[str]:
        yield message("state", {})
        raise OSError("the disk is gone")

    async def read() -> None:
        async for each in until_it_fails(failing()):
            told.append(each)  # noqa: PERF401 -- what came before the error counts

    told: list[str] = []
    with pytest.raises(OSError, match="the disk is gone"):
        asyncio.run(read())
    _, kind, said = parsed(told[-1])
    assert (kind, said) == ("failed", {"says": "OSError: the disk is gone"})


def test_a_run_that_is_removed_ends_its_stream_with_a_sentence(demo_run: Path, tmp_path: Path) -> None:
    """An open page does not wait for what will not come."""
    shutil.copytree(demo_run, tmp_path / "gone")

    async def read() -> list[tuple[int | None, str, Any]]:
        told = []
        async for each in until_it_fails(run_stream(tmp_path / "gone", 0)):
            told.append(parsed(each))
            if told[-1][2].get("type") == "RunCompleted":
                shutil.rmtree(tmp_path / "gone")
        return told

    _, kind, said = asyncio.run(read())[-1]
    assert (kind, said) == ("failed", {"says": "there is no run gone here any more"})
