"""Rollouts ahead of a verdict: the events of a run without them, no call twice, and waste that is counted."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from pathlib import Path

import pytest
from support.logs import decisions_of, events_of, rows_of
from support.params import parametrized
from support.scripted import ScriptedModel, ScriptedWorld, config, optimizer_reply, target_reply, unreachable

from skillopt_es.engine.calls import Seats
from skillopt_es.errors import Interrupted
from skillopt_es.events.catalog import CandidateGated, Event
from skillopt_es.events.journal import CallRow, Journal
from skillopt_es.events.log import EventLog
from skillopt_es.ports import CallFailed, ChatRequest, NotStarted
from skillopt_es.runs.overview import spent
from skillopt_es.runs.run_log import ahead_gave_up, logged_to
from skillopt_es.sessions.session import resume, start

LONG = ["train.batch_size=2", "train.num_epochs=2", "optimizer.learning_rate=1", "train.seed=1"]


def world_of(seed: int | None = None) -> ScriptedWorld:
    """The scripted world; a seed shuffles the order in which calls end."""
    shuffle = None if seed is None else random.Random(seed)
    return ScriptedWorld(
        target=ScriptedModel("scripted target", target_reply, shuffle=shuffle),
        optimizer=ScriptedModel("scripted optimizer", optimizer_reply, shuffle=shuffle),
    )


def trained(folder: Path, *, speculate: bool, workers: int = 8, seed: int | None = 1) -> Path:
    """The folder of a run."""
    limits = [f"env.workers={workers}", f"gradient.analyst_workers={workers}", f"train.speculate={speculate}"]
    run = folder / "same-name"
    asyncio.run(start(config(folder, [*LONG, *limits]), run, world_of(seed).session()))
    return run


def journal(run: Path) -> list[CallRow]:
    """All calls of a run."""
    with EventLog.open(run) as log:
        return list(Journal(log.reader).read())


def without_first(run: Path) -> list[tuple[object, ...]]:
    """The event rows but for the config in the first, and the hashes that cover it."""
    return [(*row[:5], row[-1]) for row in rows_of(run)[1:]]


def verdicts(events: list[Event]) -> dict[int, str]:
    """What became of each step's candidate."""
    return {event.step: event.verdict.action for event in events if isinstance(event, CandidateGated)}


@parametrized(("workers", "seed"), [(1, None), (8, 2), (64, 3)], by_default=1)
def test_the_events_are_those_of_a_run_without_it(workers: int, seed: int | None, tmp_path: Path) -> None:
    """Whatever was tried ahead, at any concurrency."""
    plain = trained(tmp_path / "plain", speculate=False)
    ahead = trained(tmp_path / "ahead", speculate=True, workers=workers, seed=seed)
    assert without_first(ahead) == without_first(plain)
    assert len({*verdicts(events_of(plain)).values()}) > 1


def test_what_was_tried_ahead_of_a_rejection_is_not_asked_again(tmp_path: Path) -> None:
    """The same calls as without it, and besides them only those whose skill was replaced."""
    plain, ahead = (trained(tmp_path / str(on), speculate=on, workers=64) for on in (False, True))
    asked, asked_plain = ({(row.call.slot, row.digest) for row in journal(run)} for run in (ahead, plain))
    assert asked_plain <= asked
    assert max(Counter((row.call.slot, row.digest) for row in journal(ahead)).values()) == 1
    replaced = {f"s{step + 1}" for step, action in verdicts(events_of(ahead)).items() if action != "reject"}
    assert {slot.split("/")[1] for slot, _ in asked - asked_plain} <= replaced
    rejected = [row for row in journal(ahead) if row.call.ahead and row.call.slot.split("/")[1] not in replaced]
    assert rejected


def test_waste_is_counted(tmp_path: Path) -> None:
    """Of the calls made ahead, those of steps whose predecessor was accepted."""
    run = trained(tmp_path, speculate=True, workers=64)
    rows = journal(run)
    accepted = {step for step, action in verdicts(events_of(run)).items() if action != "reject"}
    wasted = [row for row in rows if row.call.ahead and int(row.call.slot.split("/")[1][1:]) - 1 in accepted]
    used = spent(run)
    assert used.ahead.made.calls == sum(row.call.ahead for row in rows) > 0
    assert used.ahead.wasted.calls == len(wasted) > 0
    assert used.usage.total.calls == len(rows)
    assert used.usage.total.tries == len(rows)


def test_what_was_tried_for_a_step_that_never_came_is_waste(tmp_path: Path) -> None:
    """A stop rule ends the training while the next step was being tried."""
    run = tmp_path / "same-name"
    settings = config(tmp_path, [*LONG, "env.workers=64", "train.speculate=true", "train.patience=2"])
    asyncio.run(start(settings, run, world_of(1).session()))
    last = max(verdicts(events_of(run)))
    beyond = [row for row in journal(run) if row.call.ahead and int(row.call.slot.split("/")[1][1:]) > last]
    assert beyond
    assert spent(run).ahead.wasted.calls >= len(beyond)


@parametrized("calls", [30, 45, 60, 75], by_default=1)
def test_a_run_that_stops_while_it_is_ahead_goes_on_as_if_nothing_had_happened(calls: int, tmp_path: Path) -> None:
    """Interrupted after some calls, resumed: the same decisions, and no answered request asked again."""
    plain = trained(tmp_path / "plain", speculate=False)
    world = world_of(4)
    run = tmp_path / "run" / "same-name"
    settings = config(tmp_path / "run", [*LONG, "env.workers=64", "train.speculate=true"])
    with pytest.raises(Interrupted):
        asyncio.run(start(settings, run, world.session(stopping=lambda: world.calls >= calls)))
    asyncio.run(resume(run, world.session()))
    assert decisions_of(run)[1:] == decisions_of(plain)[1:]
    assert max(Counter((row.call.slot, row.digest) for row in journal(run)).values()) == 1


def test_an_outage_ahead_of_a_verdict_changes_nothing(tmp_path: Path) -> None:
    """What could not be asked ahead is asked again when it is wanted."""
    plain = trained(tmp_path / "plain", speculate=False)
    asked: Counter[str] = Counter()

    def sometimes_down(request: ChatRequest) -> str:
        asked[request.slot] += 1
        first_of_a_step = "/b0/" in request.slot and asked[request.slot] == 1
        return unreachable(request) if first_of_a_step and "/s1/" not in request.slot else target_reply(request)

    world = ScriptedWorld(target=ScriptedModel("scripted target", sometimes_down))
    settings = config(tmp_path / "run", [*LONG, "env.workers=64", "train.speculate=true"])
    run = tmp_path / "run" / "same-name"
    asyncio.run(start(settings, run, world.session()))
    gates = verdicts(events_of(run))
    first_rejection = min(step for step, action in gates.items() if action == "reject")
    assert gates[1] == verdicts(events_of(plain))[1]
    assert any(row.call.ahead and row.call.outcome == "failed" for row in journal(run))
    assert asked[next(slot for slot in asked if f"/s{first_rejection + 1}/b0/" in slot)] == 2


def test_what_broke_off_ahead_of_a_verdict_stands_in_the_runs_log_file(tmp_path: Path) -> None:
    """And nowhere else: the events are those of a run without it."""
    plain = trained(tmp_path / "plain", speculate=False)
    rejected = min(step for step, action in verdicts(events_of(plain)).items() if action == "reject")
    refused: list[str] = []

    def once_without_a_key(request: ChatRequest) -> str:
        if f"/s{rejected + 1}/b0/" in request.slot and not refused:
            refused.append(request.slot)
            raise CallFailed("auth", "no such key")
        return target_reply(request)

    world = ScriptedWorld(target=ScriptedModel("scripted target", once_without_a_key))
    settings = config(tmp_path / "run", [*LONG, "env.workers=64", "train.speculate=true"])
    run = tmp_path / "run" / "same-name"
    with logged_to(run):
        asyncio.run(start(settings, run, world.session(ahead_gave_up=ahead_gave_up)))
    [line] = [json.loads(line) for line in (run / "logs.jsonl").read_text(encoding="utf-8").splitlines()]
    assert (line["event"], line["run"], line["error"]) == ("ahead_gave_up", "same-name", "BackendError")
    assert line["message"] == f"the target model at {refused[0]}: no such key"
    assert decisions_of(run)[1:] == decisions_of(plain)[1:]


async def _entered(places: Seats, names: list[str], name: str, *, last: bool) -> None:
    await places.enter(last=last)
    names.append(name)


def test_who_comes_last_waits_for_all_others_and_can_be_sent_away() -> None:
    """First come, first served, but for those who only want what is left over."""

    async def scene() -> None:
        places, names = Seats(1), list[str]()
        await _entered(places, names, "first", last=False)
        ahead = asyncio.create_task(_entered(places, names, "ahead", last=True))
        other = asyncio.create_task(_entered(places, names, "another ahead", last=True))
        await asyncio.sleep(0)
        second = asyncio.create_task(_entered(places, names, "second", last=False))
        await asyncio.sleep(0)
        places.leave()
        await second
        assert not ahead.done()
        places.leave()
        await ahead
        assert names == ["first", "second", "ahead"]
        places.send_away()
        with pytest.raises(NotStarted):
            await other
        places.leave()
        await _entered(places, names, "third", last=False)

    asyncio.run(scene())


def test_who_is_sent_away_and_cancelled_gives_back_no_place() -> None:
    """It never had one: the only place stays with who is in it."""

    async def scene() -> None:
        places, names = Seats(1), list[str]()
        await _entered(places, names, "first", last=False)
        ahead = asyncio.create_task(_entered(places, names, "ahead", last=True))
        await asyncio.sleep(0)
        places.send_away()
        ahead.cancel()  # before it hears that it was sent away
        await asyncio.gather(ahead, return_exceptions=True)
        second = asyncio.create_task(_entered(places, names, "second", last=False))
        await asyncio.sleep(0)
        assert names == ["first"]
        places.leave()
        await second

    asyncio.run(scene())
