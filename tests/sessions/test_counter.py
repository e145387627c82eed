"""Limits that runs on other machines share: counted as those of runs here, whoever is away for a while."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from decimal import Decimal
from pathlib import Path

import httpx
import pytest
from attrs import define

from skillopt_es.engine.budget import Amount, Reached
from skillopt_es.errors import BackendError
from skillopt_es.sessions.commons import ADDRESS, Commons, Full, Granted, Limits
from skillopt_es.sessions.counter import Counter, Elsewhere

HERE = "host:80"
ONE = Amount(calls=1, tokens=100, cost=Decimal("0.25"))


@define
class Sweep:
    """A sweep's folder with its limits; the counter may come and go."""

    folder: Path
    counter: Counter | None = None

    def limits(self, **limits: int) -> None:
        """What all runs together may do."""
        commons = Commons(self.folder / "limits.db", self.folder)
        commons.set_limits({HERE: Limits(**limits)})
        commons.close()

    def open(self) -> None:
        """A process of the sweep begins."""
        self.counter = Counter(self.folder / "limits.db", self.folder / ADDRESS, "127.0.0.1")

    def close(self) -> None:
        """It ends."""
        if self.counter is not None:
            self.counter.close()
        self.counter = None

    def run(self, name: str, clock: Callable[[], float] = lambda: 0.0) -> Elsewhere:
        """A run on another machine, whose log somebody writes there."""
        (self.folder / name).mkdir(exist_ok=True)
        (self.folder / name / "lock").write_text(json.dumps({"host": "elsewhere", "pid": 1, "start": ""}))
        return Elsewhere(self.folder / ADDRESS, self.folder / name, clock, patience=60.0)

    @property
    def spent(self) -> Amount:
        """By all runs."""
        commons = Commons(self.folder / "limits.db", self.folder)
        try:
            return commons.spent(HERE)
        finally:
            commons.close()


@pytest.fixture
def sweep(tmp_path: Path) -> Iterator[Sweep]:
    """A sweep at work, without limits."""
    made = Sweep(tmp_path)
    made.limits()
    made.open()
    yield made
    made.close()


def play(scene: Callable[[], Awaitable[None]]) -> None:
    """A scene."""

    async def played() -> None:
        await asyncio.wait_for(scene(), 20)

    asyncio.run(played())


def test_a_call_elsewhere_is_counted_as_one_here(sweep: Sweep) -> None:
    """What it came to, when it is told, in whatever currency fractions."""

    async def scene() -> None:
        run = sweep.run("one")
        grant = await run.take(HERE, ONE, 100)
        assert isinstance(grant, Granted)
        again = await run.take(HERE, ONE, 100, grant.number)
        assert again == Granted(grant.number, 0.0)
        run.settle(HERE, grant.number, Amount(calls=2, tokens=30, cost=Decimal("0.125")), 70)
        await run.aclose()
        assert sweep.spent == Amount(calls=2, tokens=30, cost=Decimal("0.125"))

    play(scene)


def test_runs_share_what_there_is(sweep: Sweep) -> None:
    """One waits while the other holds the rest, and is told when nothing is left."""
    sweep.limits(max_calls=1)

    async def scene() -> None:
        one, two = sweep.run("one"), sweep.run("two")
        grant = await one.take(HERE, ONE, 100)
        assert isinstance(grant, Granted)
        assert await two.take(HERE, ONE, 100) == Full()
        one.settle(HERE, grant.number, ONE, 0)
        await one.aclose()
        reached = await two.take(HERE, ONE, 100)
        assert isinstance(reached, Reached)
        assert reached.key == f"limits.{HERE}.max_calls"
        await two.aclose()

    play(scene)


def test_while_the_sweep_is_away_nothing_is_sent_and_nothing_is_lost(sweep: Sweep) -> None:
    """The next process, at another port, is told what is owed; a live run keeps what it holds."""

    async def scene() -> None:
        run = sweep.run("one")
        first, second = await run.take(HERE, ONE, 100), await run.take(HERE, ONE, 100)
        assert isinstance(first, Granted)
        assert isinstance(second, Granted)
        await asyncio.to_thread(sweep.close)
        run.settle(HERE, first.number, Amount(calls=1, tokens=7), 0)
        assert await run.take(HERE, ONE, 100) == Full()
        await asyncio.to_thread(sweep.open)
        third = await run.take(HERE, ONE, 100)
        assert isinstance(third, Granted)
        assert sweep.spent == Amount(calls=1, tokens=7)
        for each in (second, third):
            run.settle(HERE, each.number, Amount(calls=1, tokens=1), 0)
        await run.aclose()
        assert sweep.spent == Amount(calls=3, tokens=9)

    play(scene)


def test_a_run_pauses_when_nobody_comes_back(sweep: Sweep) -> None:
    """After a while, with why."""
    sweep.close()
    now = [0.0]

    async def scene() -> None:
        run = sweep.run("one", lambda: now[0])
        assert await run.take(HERE, ONE, 100) == Full()
        now[0] = 60.0
        assert await run.take(HERE, ONE, 100) == Reached(
            "limits", "the sweep that shares out limits has not answered for 60 seconds"
        )
        await run.aclose()

    play(scene)


def test_what_a_run_held_when_it_was_lost_is_spent(sweep: Sweep) -> None:
    """Once the sweep knows that nobody works on it; what is told late counts once."""

    async def scene() -> None:
        run = sweep.run("one")
        grant = await run.take(HERE, ONE, 100)
        assert isinstance(grant, Granted)
        assert sweep.counter is not None
        await asyncio.to_thread(sweep.counter.over, sweep.folder / "one")
        assert sweep.spent == ONE
        run.settle(HERE, grant.number, ONE, 0)
        await run.aclose()
        assert sweep.spent == ONE

    play(scene)


def test_a_process_that_goes_on_with_a_run_spends_what_the_one_before_held(sweep: Sweep) -> None:
    """It may have been paid for."""

    async def scene() -> None:
        before, after = sweep.run("one"), sweep.run("one")
        await before.take(HERE, ONE, 100)
        await after.take(HERE, ONE, 100)
        assert sweep.spent == ONE
        for run in (before, after):
            await run.aclose()

    play(scene)


def test_nobody_is_served_without_the_word(sweep: Sweep) -> None:
    """It lies in a file that only its owner can read."""
    where = json.loads((sweep.folder / ADDRESS).read_text())
    assert (sweep.folder / ADDRESS).stat().st_mode & 0o777 == 0o600
    asked = {"folder": "x", "begins": True, "owed": []}
    assert httpx.post(where["url"], json=asked, headers={"Authorization": "Bearer other"}).status_code == 401
    good = {"Authorization": f"Bearer {where['word']}"}
    assert httpx.post(where["url"], json=asked, headers=good).status_code == 200


def test_an_address_that_is_not_ours_is_told(tmp_path: Path) -> None:
    """Before any run begins."""
    with pytest.raises(BackendError, match="runs cannot reach this machine: no port can be opened at"):
        Counter(tmp_path / "limits.db", tmp_path / ADDRESS, "192.0.2.200")
