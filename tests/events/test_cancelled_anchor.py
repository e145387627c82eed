"""Who asks for an anchor may be cancelled at any moment; the writer goes on and can be closed."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from support.event_runs import create, resumed, with_writer
from support.ready import PATIENCE

from skillopt_es.events.verify import verify
from skillopt_es.events.writer import RunWriter


@pytest.mark.parametrize("begun", [False, True])
def test_a_cancelled_anchor_does_not_take_the_writer_with_it(tmp_path: Path, begun: bool) -> None:
    """Cancelled while it waits or while it is written: the next append and the closing work."""
    hold, at_it = threading.Event(), threading.Event()

    async def work(writer: RunWriter) -> None:
        real = writer._store.anchor

        def slow() -> None:
            at_it.set()
            assert hold.wait(PATIENCE)
            real()

        writer._store.anchor = slow  # type: ignore[method-assign]
        first = asyncio.create_task(writer.anchor())
        await asyncio.to_thread(at_it.wait, 10)
        second = asyncio.create_task(writer.anchor())
        await asyncio.sleep(0)
        (first if begun else second).cancel()
        await asyncio.sleep(0)
        hold.set()
        await asyncio.gather(first, second, return_exceptions=True)
        assert await writer.append([resumed(1)], expected=0) == 1

    create(tmp_path / "run").close()
    with_writer(tmp_path / "run", work)
    assert verify(tmp_path / "run").ok
