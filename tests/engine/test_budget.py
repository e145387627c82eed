"""A budget is a promise: no schedule of calls ever comes to more, and what was bought is kept."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from itertools import count
from pathlib import Path

import pytest
from attrs import define, evolve, field
from support.crashes import in_child
from support.logs import call_slots, decisions_of, events_of
from support.params import parametrized
from support.scripted import NOON, ScriptedModel, ScriptedWorld, config, optimizer_reply, target_reply, ticking

from skillopt_es.audit.check import check
from skillopt_es.config import recorded_config
from skillopt_es.engine.budget import NOTHING, Amount, Bound, Caps, CutShort, OwnAccount, Payment, Purse, Tariff
from skillopt_es.errors import BudgetReached, ConfigError
from skillopt_es.events.catalog import RunPaused, RunResumed
from skillopt_es.events.journal import Journal
from skillopt_es.events.log import EventLog
from skillopt_es.ports import ALONE, CallFailed, ChatReply, ChatRequest, Course, NotStarted, Try, Usage
from skillopt_es.projections.prices import Price
from skillopt_es.sessions.accounts import FILE, spent_before, tariffs_of
from skillopt_es.sessions.forking import make_fork
from skillopt_es.sessions.session import read_state, resume, start

PRICE = Price(input=Decimal(2), output=Decimal(8), cached_input=Decimal("0.5"))
PRICED = [
    "prices.unit=USD per 1M tokens",
    "prices.models={t: {input: 1, output: 4}, o: {input: 2, output: 8}}",
]


@define
class Provider:
    """A provider that really charges: what it says of that, and when, is up to chance."""

    draw: random.Random
    price: Price
    sent: int = 0
    tokens: int = 0
    cost: Decimal = Decimal(0)
    check: Callable[[], None] = field(default=lambda: None)

    async def answer(self, course: Course, bound: Bound) -> ChatReply:
        """Some tries fail, with or without a charge and a report of it; a call may fail for good."""
        tries: tuple[Try, ...] = ()
        for last in (False, False, True):
            self.sent += 1
            for _ in range(self.draw.randrange(4)):
                await asyncio.sleep(0)
            fails = self.draw.random() < 0.3
            free = fails and self.draw.random() < 0.5
            used = NOTHING if free else self._charge(bound)
            self.check()
            usage = self._told(used, bound) if self.draw.random() < 0.7 and not free else Usage()
            if not fails:
                return ChatReply(text="ok", finish="stop", usage=usage, tries=tries)
            failed = Try(kind="x", status=429 if free else 500, message="", waited_ms=0, usage=usage)
            tries = (*tries, failed)
            if last or not await course.may_try_again(failed):
                raise CallFailed("server", "no", tries=tries)
        raise AssertionError

    def _charge(self, bound: Bound) -> Amount:
        inputs, outputs = self.draw.randint(0, bound.input), self.draw.randint(0, bound.output)
        self.tokens += inputs + outputs
        self.cost += (inputs * self.price.input + outputs * self.price.output) / Decimal(1_000_000)
        self._last = (inputs, outputs)
        return Amount(tokens=inputs + outputs)

    _last: tuple[int, int] = (0, 0)

    def _told(self, used: Amount, bound: Bound) -> Usage:
        inputs, outputs = self._last
        kind = self.draw.randrange(3)
        return (
            Usage(input=inputs, output=outputs, cached=0),
            Usage(input=inputs),
            Usage(input=inputs, output=outputs),
        )[kind]


async def schedule(seed: int) -> tuple[Provider, Purse, int]:
    """Many calls at once against random caps."""
    draw = random.Random(seed)
    caps = Caps(
        cost=draw.choice([None, Decimal(draw.randint(1, 4000)) / 1_000_000]),
        tokens=draw.choice([None, draw.randint(1, 3000)]),
        calls=draw.choice([None, draw.randint(1, 40)]),
    )
    account = OwnAccount(caps)
    purse = Purse([account], {"target": Tariff(price=PRICE), "optimizer": Tariff(price=PRICE)})
    provider = Provider(draw, PRICE)

    def never_above() -> None:
        held = account.spent + account.reserved
        assert not caps.exceeded_by(held)
        real = Amount(cost=provider.cost, tokens=provider.tokens, calls=provider.sent)
        assert not caps.exceeded_by(real)
        assert all(getattr(real, name) <= getattr(held, name) for name in ("cost", "tokens", "calls"))

    provider.check = never_above
    answered = 0

    async def call(number: int) -> None:
        nonlocal answered
        await asyncio.sleep(0)
        bound = Bound(input=draw.randint(1, 100), output=draw.randint(1, 100))
        call = Payment(purse, "target", f"s{number}", ALONE, bound)
        try:
            await call.pay(lambda course: provider.answer(course, bound))
            answered += 1
        except (CallFailed, CutShort, NotStarted):
            pass
        never_above()

    await asyncio.wait_for(asyncio.gather(*(call(number) for number in range(draw.randint(1, 30)))), 10)
    assert account.reserved == NOTHING
    assert account.in_flight == 0
    return provider, purse, answered


@pytest.mark.parametrize("block", range(4))
def test_no_schedule_of_calls_exceeds_a_cap(block: int) -> None:
    """1,000 random schedules with retries, failures and unreported usage; nothing waits for ever."""

    async def all_of_them() -> tuple[int, int]:
        reached = answered = 0
        for seed in range(block * 250, block * 250 + 250):
            _, purse, count = await schedule(seed)
            reached += bool(purse.reached)
            answered += count
        return reached, answered

    reached, answered = asyncio.run(all_of_them())
    assert 50 < reached < 250
    assert answered > 500


def paused_at(folder: Path, overrides: list[str], *, workers: int = 64, seed: int = 1) -> ScriptedWorld:
    """A scripted run that reaches its budget."""
    shuffle = random.Random(seed)
    world = ScriptedWorld(
        target=ScriptedModel("scripted target", target_reply, shuffle=shuffle),
        optimizer=ScriptedModel("scripted optimizer", optimizer_reply, shuffle=shuffle),
    )
    limits = [f"env.workers={workers}", f"gradient.analyst_workers={workers}", "env.max_completion_tokens=100"]
    asyncio.run(
        start(
            config(folder, [*limits, "optimizer.max_completion_tokens=2000", *overrides]),
            folder / "run",
            world.session(),
        )
    )
    return world


@parametrized("cap", [1, 20, 33, 60], by_default=1)
def test_a_run_pauses_at_its_budget_and_goes_on_as_if_it_had_none(cap: int, tmp_path: Path) -> None:
    """Exactly so many requests; what was decided is a beginning of the whole; no call is made twice."""
    whole = paused_at(tmp_path / "whole", [])
    world = paused_at(tmp_path / "cut", [f"budget.max_calls={cap}"])
    run = tmp_path / "cut" / "run"
    assert world.calls == cap
    [*_, last] = events_of(run)
    assert isinstance(last, RunPaused)
    assert (last.reason, f"budget.max_calls is {cap}" in last.message) == ("budget", True)
    first, wanted = decisions_of(run), decisions_of(tmp_path / "whole" / "run")
    assert first[1:] == wanted[1 : len(first)]
    more = ScriptedWorld()
    asyncio.run(resume(run, more.session(overrides=("budget.max_calls=null",))))
    assert decisions_of(run)[1:] == wanted[1:]
    assert world.calls + more.calls == whole.calls
    with EventLog.open(run) as log:
        assert asyncio.run(check(log, Journal(log.reader), run)).mismatch is None


@parametrized("more", [["train.speculate=true"], ["train.reuse=identical", "model.temperature=0"]], by_default=1)
def test_calls_ahead_count_and_repeated_ones_do_not(more: list[str], tmp_path: Path) -> None:
    """Neither exceeds the budget, and what is decided is the same."""
    paused_at(tmp_path / "whole", more)
    wanted = decisions_of(tmp_path / "whole" / "run")
    run, caps = tmp_path / "cut" / "run", iter(["budget.max_calls=90", "budget.max_calls=130", "budget.max_calls=null"])
    world = paused_at(tmp_path / "cut", [*more, "budget.max_calls=50"], workers=16)
    assert world.calls == 50 == spent_of(run).calls
    while read_state(run).status == "paused":
        cap = next(caps)
        again = ScriptedWorld()
        asyncio.run(resume(run, again.session(overrides=(cap,))))
        world.target.asked += again.target.asked
        world.optimizer.asked += again.optimizer.asked
        assert world.calls == spent_of(run).calls
        assert "null" in cap or world.calls <= int(cap.split("=")[1])
    assert [event for event in decisions_of(run)[1:] if event not in wanted] == []
    assert len(decisions_of(run)) == len(wanted)


@pytest.mark.parametrize("cap", ["budget.max_tokens=15000", "budget.max_cost=0.03"])
def test_what_is_reported_stays_below_the_cap(cap: str, tmp_path: Path) -> None:
    """And most of it is used: what was set aside is given back."""
    paused_at(tmp_path, [*PRICED, cap])
    run = tmp_path / "run"
    state = read_state(run)
    assert state.paused is not None
    assert state.paused.reason == "budget"
    spent, limit = spent_of(run), float(cap.split("=")[1])
    used = spent.tokens if "tokens" in cap else float(spent.cost)
    assert 0.2 * limit < used <= limit


def spent_of(run: Path) -> Amount:
    """What a run has used, by its journal."""
    with EventLog.open(run) as log:
        started = next(log.read(until=1)).event
        settings_ = recorded_config(dict(started.config), run)  # type: ignore[attr-defined]
        assert tariffs_of(settings_)
        return spent_before(settings_, log, Journal(log.reader), ()).amount


def test_a_cap_below_what_is_spent_is_refused(tmp_path: Path) -> None:
    """And nothing is recorded; so is money without prices."""
    paused_at(tmp_path, ["budget.max_calls=20"])
    run, before = tmp_path / "run", len(events_of(tmp_path / "run"))
    with pytest.raises(BudgetReached, match=r"budget\.max_calls is 10, with 20 requests sent so far"):
        asyncio.run(resume(run, ScriptedWorld().session(overrides=("budget.max_calls=10",))))
    with pytest.raises(ConfigError, match="price of every model, and o has none"):
        asyncio.run(resume(run, ScriptedWorld().session(overrides=("budget.max_cost=10",))))
    assert len(events_of(run)) == before


def test_failed_calls_and_their_tries_count(tmp_path: Path) -> None:
    """Each request that was sent, as recorded."""

    def refused(request: ChatRequest) -> ChatReply:
        tries = tuple(Try(kind="server", status=500, message="", waited_ms=0) for _ in range(2))
        raise CallFailed("server", "down", tries=tries)

    world = ScriptedWorld(target=ScriptedModel("scripted target", refused))
    run = tmp_path / "run"
    asyncio.run(start(config(tmp_path, ["budget.max_calls=8", "env.workers=1"]), run, world.session()))
    assert spent_of(run).calls >= 8
    with EventLog.open(run) as log:
        assert len(Journal(log.reader)) == 4


def test_an_agent_cannot_have_a_budget_of_tokens(tmp_path: Path) -> None:
    """It asks its model as often as it likes."""
    world = ScriptedWorld()
    world.target.unbounded = True  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="cannot be kept: the target is a coding agent"):
        asyncio.run(start(config(tmp_path, ["budget.max_tokens=1000"]), tmp_path / "run", world.session()))
    assert not (tmp_path / "run").exists()


def passing(step: float) -> Callable[[], float]:
    """Seconds that go on a little each time they are read."""
    seconds = count(step=step)
    return lambda: float(next(seconds))


def test_minutes_count_while_the_run_goes_on(tmp_path: Path) -> None:
    """Over its sessions, and not between them."""
    world, read = ScriptedWorld(), ticking(10.0)
    moments = [read()]

    def now() -> datetime:
        moments.append(read())
        return moments[-1]

    def clock() -> float:
        """What the last event says: how often others look at it must not matter here."""
        return (moments[-1] - moments[0]).total_seconds()

    session = evolve(world.session(), now=now, clock=clock)
    asyncio.run(start(config(tmp_path, ["budget.max_minutes=1"]), tmp_path / "run", session))
    paused = read_state(tmp_path / "run").paused
    assert paused is not None
    assert "budget.max_minutes is 1" in paused.message
    with pytest.raises(BudgetReached, match=r"max_minutes is 0\.5, with "):
        asyncio.run(resume(tmp_path / "run", world.session(overrides=("budget.max_minutes=0.5",))))


@pytest.mark.parametrize(
    ("set_by", "passes", "ends"), [(-60.0, 2.0, "paused"), (7200.0, 0.0, "completed")], ids=["back", "ahead"]
)
def test_minutes_do_not_follow_a_clock_that_somebody_sets(
    set_by: float, passes: float, ends: str, tmp_path: Path
) -> None:
    """Set back, the limit comes all the same; put ahead, it does not come early."""
    session = evolve(ScriptedWorld().session(), now=ticking(set_by), clock=passing(passes))
    asyncio.run(start(config(tmp_path, ["budget.max_minutes=1"]), tmp_path / "run", session))
    assert read_state(tmp_path / "run").status == ends


def test_calls_in_flight_at_a_crash_count_as_paid(tmp_path: Path) -> None:
    """They are in no journal: the resumed run records them and asks again, within the same budget."""
    run = tmp_path / "run"

    def work() -> None:
        answered = count(1)

        def killed(request: ChatRequest) -> str:
            if next(answered) == 6:
                os.kill(os.getpid(), signal.SIGKILL)
            return target_reply(request)

        world = ScriptedWorld(target=ScriptedModel("scripted target", killed, shuffle=random.Random(3)))
        asyncio.run(start(config(tmp_path, ["budget.max_calls=40", "env.workers=8"]), run, world.session()))

    assert in_child(work) == 9
    started = [line for line in (run / FILE).read_text().splitlines() if "slot" in line]
    recorded = len(call_slots(run))
    world = ScriptedWorld()
    asyncio.run(resume(run, world.session()))
    resumed = [event for event in events_of(run) if isinstance(event, RunResumed)]
    assert len(resumed[0].lost) == len(started) - recorded > 0
    assert world.calls == 40 - len(started)
    assert read_state(run).status == "paused"
    assert not (run / FILE).exists()
    asyncio.run(resume(run, ScriptedWorld().session(overrides=("budget.max_calls=1000",))))
    assert read_state(run).status == "completed"
    assert [event.lost for event in events_of(run) if isinstance(event, RunResumed)][1] == ()
    paused_at(tmp_path / "whole", ["env.workers=8"])
    assert len(decisions_of(run)) == len(decisions_of(tmp_path / "whole" / "run"))


def test_a_fork_begins_with_nothing_spent(tmp_path: Path) -> None:
    """What came along is its parent's."""
    paused_at(tmp_path, ["budget.max_calls=60"])
    run = tmp_path / "run"
    child = make_fork(run, len(events_of(run)), tmp_path / "child", now=lambda: NOON).folder
    world = ScriptedWorld()
    asyncio.run(resume(child, world.session()))
    assert world.calls == 60
